// The engine's thread: Python starts once and answers the questions of every page and frame that share it.

import { loadPyodide } from "./runtime/pyodide.mjs";

const HOME = new URL(".", import.meta.url).href;
const ASK = `
def ask(path, query, body):
    from app.site.tab import answer_in_tab
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
    env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" },
  });
  python.unpackArchive(new Uint8Array(await archive), "zip", { extractDir: "/engine" });
  python.runPython("import sys; sys.path.insert(0, '/engine')\n" + ASK);
  const ask = python.globals.get("ask");
  // What every question imports is imported before the first one.
  ask("/api/presets", "", undefined).destroy();
  return ask;
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
