// The one door of every page: whatever launches a framework, pasted or dropped, becomes the page's mesh.

import { withoutModel } from "../core/address.js";
import { UNREACHABLE } from "../core/errors.js";
import { alertBox, labelled, make, option } from "./dom.js";
import { fetchJson } from "./fetch.js";

const MAX_BYTES = 262_144;
const KINDS = ".json,.toml,.yaml,.yml,.sh,.bash,.sbatch,.slurm,.txt,.md,.npy,.npz,.pt,.pth";
const PLACEHOLDER = "Paste a launch line (vllm serve …, torchrun …), or drop config.json";
const NAME = "Paste a launch line, or what launches it: a script, a manifest, a config";

// `page.read` is where what was read is said. A last paste is read again when its model is chosen.
export function launchBox(page) {
  page.read ??= make("section", { class: "launch-read", "aria-label": "What was read" });
  const box = {
    page,
    line: make("textarea", {
      class: "line",
      rows: 1,
      spellcheck: "false",
      placeholder: PLACEHOLDER,
      "aria-label": NAME,
    }),
    gpus: make("input", { type: "number", min: 1, inputmode: "numeric", placeholder: "as said" }),
    model: "",
    last: null,
  };
  const file = make("input", {
    type: "file",
    accept: KINDS,
    onchange: () => {
      const chosen = file.files[0];
      file.value = "";
      if (chosen) sendFile(box, chosen);
    },
  });
  const onsubmit = (event) => {
    event.preventDefault();
    box.model = "";
    send(box, "/api/launch", "", box.line.value);
  };
  // One line is sent with Enter; a script has lines of its own.
  box.line.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || box.line.value.includes("\n")) return;
    event.preventDefault();
    box.line.form.requestSubmit();
  });
  return make(
    "form",
    { class: "one-box", onsubmit, ondragover: accept, ondrop: (event) => drop(box, event) },
    [
      make("div", { class: "box-line" }, [box.line, make("button", { type: "submit", text: "Read" })]),
      make("div", { class: "box-hints" }, [
        make("label", { class: "file" }, [make("span", { text: "choose a file" }), file]),
        make("label", { class: "gpus" }, [make("span", { text: "GPUs" }), box.gpus]),
      ]),
    ],
  );
}

function accept(event) {
  if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
}

function drop(box, event) {
  const chosen = event.dataTransfer?.files[0];
  if (!chosen) return;
  event.preventDefault();
  sendFile(box, chosen);
}

function sendFile(box, chosen) {
  box.model = "";
  if (chosen.size > MAX_BYTES) {
    const limit = MAX_BYTES.toLocaleString("en");
    refuse(
      box,
      chosen.name + " is over " + limit + " bytes: send a scenario, a config.json or what launches.",
    );
    return;
  }
  send(box, "/api/upload", chosen.name, chosen);
}

async function send(box, path, name, body) {
  box.last = { path, name, body };
  const address = new URLSearchParams(box.page.query);
  const asked = new URLSearchParams({ name, gpus: box.gpus.value, model: box.model, address });
  let found;
  try {
    found = await fetchJson(path + "?" + asked, undefined, { method: "POST", body });
  } catch {
    found = { error: { text: UNREACHABLE } };
  }
  if (found.error) refuse(box, found.error.text);
  else if (found.meshes) show(box, found, 0);
  else showFile(box, found, name);
}

function refuse(box, text) {
  box.page.read.replaceChildren(alertBox([make("h2", { text: "This is not read" }), make("p", { text })]));
  box.page.unread?.();
}

function showFile(box, found, name) {
  const { page } = box;
  page.read.replaceChildren(
    status("Read " + name + "."),
    list(found.warnings.map((text) => ({ message: text }))),
  );
  page.reset(found.reset ? found.keys : { ...withoutModel(page.query), ...found.keys });
}

function show(box, found, chosen) {
  const mesh = found.meshes[chosen];
  const others = found.meshes.map((each, i) => otherMesh(box, found, each, i, i === chosen));
  const unknown = mesh.unknown.map((flag) => ({ message: flag + " is not known here" }));
  box.page.read.replaceChildren(
    status("Read as " + (mesh.role ? mesh.role + ": " : "") + mesh.said + " (" + found.given + ")."),
    ...(others.length > 1 ? [make("div", { class: "options" }, others)] : []),
    ...(mesh.asks ? [askModel(box, found, mesh)] : []),
    list([...mesh.warnings, ...unknown]),
  );
  box.page.reset(mesh.keys);
}

function status(text) {
  return make("p", { role: "status", text });
}

function otherMesh(box, found, mesh, i, pressed) {
  const text = (mesh.role || mesh.framework) + ": " + mesh.said;
  return make("button", {
    type: "button",
    text,
    "aria-pressed": String(pressed),
    onclick: () => show(box, found, i),
  });
}

// A launch without a model that is known here gets the one that its reader names, never another.
function askModel(box, found, mesh) {
  const select = make("select", {}, [
    option("", "choose"),
    ...found.models.map((name) => option(name, name)),
  ]);
  select.addEventListener("change", () => {
    if (!select.value) return;
    box.model = select.value;
    send(box, box.last.path, box.last.name, box.last.body);
  });
  return alertBox([make("p", { text: mesh.asks }), labelled("Model of the launch", select)]);
}

function list(notes) {
  if (!notes.length) return "";
  const rows = notes.map((note) =>
    make("li", { text: note.message + (note.fix ? " — " + note.fix : "") + "." }),
  );
  return make("ul", { class: "warnings" }, rows);
}
