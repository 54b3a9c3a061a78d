// Files to send along, dropped or chosen, a folder too: packed here, sent with each question, kept nowhere.

import { make } from "../shell/dom.js";

const MEGABYTE = 1 << 20;

export function filesControl(page, control) {
  const said = make("span", { class: "help", role: "status", text: inUse(page, control.key) });
  const take = (files) => sendAll(page, control, files, said);
  const picker = (label, more) =>
    make("label", { class: "pick" }, [
      make("input", {
        class: "unseen",
        type: "file",
        multiple: true,
        "data-key": control.key,
        onchange: ({ target }) => take([...target.files].map((file) => ({ file, name: pathOf(file) }))),
        ...more,
      }),
      label,
    ]);
  return make("div", { class: "drop", role: "group", "aria-label": control.label, ...dropping(take) }, [
    make("span", { class: "drop-words", text: "Drop files or a folder, or open" }),
    picker("files", {}),
    picker("a folder", { webkitdirectory: true }),
    said,
  ]);
}

function inUse(page, key) {
  const sent = page.sent[key];
  return sent ? sent.name + ": in use. They stay in this tab: a link to the page does not hold them." : "";
}

function pathOf(file) {
  return file.webkitRelativePath || file.name;
}

function dropping(take) {
  const over = (event) => {
    event.preventDefault();
    event.currentTarget.classList.add("over");
  };
  return {
    ondragover: over,
    ondragleave: (event) => event.currentTarget.classList.remove("over"),
    ondrop: async (event) => {
      event.preventDefault();
      event.currentTarget.classList.remove("over");
      take(await droppedFiles(event.dataTransfer));
    },
  };
}

// What was dropped: files as they are, folders with all below them.
async function droppedFiles({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...files].map((file) => ({ file, name: file.name }));
  return (await Promise.all(entries.map(filesBelow))).flat();
}

async function filesBelow(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [{ file, name: entry.fullPath.replace(/^\//, "") }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break;
    found.push(...some);
  }
  return (await Promise.all(found.map(filesBelow))).flat();
}

async function sendAll(page, control, files, said) {
  if (!files.length) return;
  const size = files.reduce((sum, { file }) => sum + file.size, 0);
  if (size > control.most_unpacked) return refuse(said, size, control.most_unpacked);
  said.textContent = "packing " + files.length + " files …";
  const packed = await Promise.all(files.map(({ file }) => packedFile(file)));
  const head = JSON.stringify({ files: files.map(({ name }, i) => [name, packed[i].size]) }) + "\n";
  const body = new Blob([head, ...packed]);
  if (body.size > control.most_bytes) return refuse(said, body.size, control.most_bytes);
  body.name = files.length === 1 ? files[0].name : files.length + " files";
  page.sent = { [control.key]: body };
  page.query = { ...page.query, recording: "" };
  said.textContent = inUse(page, control.key);
  page.load();
}

function refuse(said, size, most) {
  const [large, limit] = [size, most].map((bytes) => Math.ceil(bytes / MEGABYTE).toLocaleString("en"));
  said.textContent =
    large +
    " MB are over " +
    limit +
    " MB; send fewer files, or read them where they lie: tokentrip run FILES";
}

// Gzipped, where the browser can and the file is not: dumps shrink to a tenth.
async function packedFile(file) {
  if (!globalThis.CompressionStream || file.name.endsWith(".gz")) return file;
  return new Response(file.stream().pipeThrough(new CompressionStream("gzip"))).blob();
}
