// The engine's thread: Python starts once and answers the questions of every page and frame that share it.

import { loadPyodide } from "./runtime/pyodide.mjs";

const HOME = new URL(".", import.meta.url).href;
const WARM_UP_MS = 50;
const ASK = `
from app.site.tab import answer_in_tab

def ask(path, query, body):
    found = answer_in_tab(path, query, None if body is None else bytes(body))
    return found.status, found.kind, found.body, found.name
`;

const ports = new Set();
let said = { progress: 0 };
let engine = null;

if ("onconnect" in self) self.onconnect = (event) => listen(event.ports[0]);
else listen(self);

function listen(port) {
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data.start) engine ||= start(data.start);
    else reply(port, data);
  };
  port.postMessage(said);
}

function tell(words) {
  said = words;
  for (const port of ports) port.postMessage(words);
}

async function reply(port, { id, path, query, body }) {
  try {
    const ask = await engine;
    const found = ask(path, query, body ? new Uint8Array(body) : undefined);
    const [status, kind, bytes, name] = found.toJs();
    found.destroy();
    port.postMessage({ id, status, kind, bytes, name: name ?? "" });
  } catch (error) {
    port.postMessage({ id, failed: String(error.message ?? error) });
  }
}

async function start(site) {
  try {
    const python = await load(site);
    tell({ progress: 1 });
    // The first change would wait for what a trip imports: it is imported while the reader looks.
    setTimeout(() => python("/api/trip", "", undefined).destroy(), WARM_UP_MS);
    return python;
  } catch (error) {
    tell({ failed: String(error.message ?? error) });
    throw error;
  }
}

async function load({ parts, cache, sizes, lock }) {
  const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
  let arrived = 0;
  const counter = () =>
    new TransformStream({
      transform(chunk, controller) {
        arrived += chunk.length;
        tell({ progress: Math.min(0.9, (0.9 * arrived) / total) });
        controller.enqueue(chunk);
      },
    });
  const fetched = async (name, type) => {
    const packed = await open(parts[name], cache);
    const body = packed.pipeThrough(counter()).pipeThrough(new DecompressionStream("gzip"));
    return new Response(body, { headers: { "Content-Type": type } });
  };
  const wasm = fetched("wasm", "application/wasm");
  const library = fetched("stdlib", "application/zip");
  const archive = fetched("engine", "application/zip").then((response) => response.arrayBuffer());
  const script = fetched("asm", "text/javascript").then((response) => response.blob());
  // The runtime asks for its two large files by address: they are on their way already.
  const network = self.fetch.bind(self);
  self.fetch = (address, options) => {
    const url = String(address.url ?? address);
    if (url.endsWith("/pyodide.asm.wasm")) return wasm;
    if (url.endsWith("/python_stdlib.zip")) return library;
    return network(address, options);
  };
  const address = URL.createObjectURL(await script);
  const { default: createPyodideModule } = await import(address);
  URL.revokeObjectURL(address);
  const python = await loadPyodide({
    indexURL: HOME + "runtime/",
    createPyodideModule,
    lockFileContents: lock,
    env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1", PYTHONPATH: "/engine" },
    fsInit: async (FS) => unpack(new Uint8Array(await archive), FS, "/engine"),
  });
  python.runPython(ASK);
  return python.globals.get("ask");
}

// The files of a zip without compression, written where Python finds them. It could do so itself, more slowly.
function unpack(zip, FS, folder) {
  const view = new DataView(zip.buffer, zip.byteOffset, zip.byteLength);
  const text = new TextDecoder();
  const end = zip.length - 22;
  const made = new Set();
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left -= 1) {
    const size = view.getUint32(at + 24, true);
    const length = view.getUint16(at + 28, true);
    const head = view.getUint32(at + 42, true);
    const from = head + 30 + view.getUint16(head + 26, true) + view.getUint16(head + 28, true);
    const path = folder + "/" + text.decode(zip.subarray(at + 46, at + 46 + length));
    const parent = path.slice(0, path.lastIndexOf("/"));
    if (!made.has(parent)) FS.mkdirTree(parent);
    made.add(parent);
    FS.writeFile(path, zip.subarray(from, from + size), { canOwn: true });
    at += 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
}

// A part from the site's own cache, where the browser gives one; else from its server, and kept.
async function open(name, cache) {
  const address = HOME + name;
  const kept = await self.caches?.open(cache).catch(() => null);
  const found = await kept?.match(address);
  if (found) return found.body;
  const response = await fetch(address);
  if (!response.ok) throw new Error(name + " could not be loaded (" + response.status + ")");
  kept?.put(address, response.clone()).catch(() => {});
  return response.body;
}
