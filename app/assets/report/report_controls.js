// The controls of a page of figures: each writes its key into the address, or sends a file along.

import { make, option } from "../shell/dom.js";
import { filesControl } from "./files_control.js";

const CONTROLS = {
  choice: choiceControl,
  range: rangeControl,
  file: fileControl,
  files: filesControl,
  text: (page, { key, value }) => make("input", { ...keyed(page, key), type: "text", value }),
  number: (page, { key, least, step, value }) =>
    make("input", { ...keyed(page, key), type: "number", min: least, step, value }),
};

export function reportControl(page, control) {
  return (CONTROLS[control.kind] ?? CONTROLS.number)(page, control);
}

function keyed(page, key) {
  return { "data-key": key, onchange: (event) => page.set({ [key]: event.target.value }) };
}

function choiceControl(page, { key, options, value: chosen, drops_files: dropsFiles }) {
  const drawn = options.map(([value, text]) => option(value, text, value === chosen));
  const onchange = ({ target }) => {
    if (dropsFiles) page.sent = {};
    page.set({ [key]: target.value });
  };
  return make("select", { ...keyed(page, key), onchange }, drawn);
}

function rangeControl(page, { key, most, step, value }) {
  return make("input", { ...keyed(page, key), type: "range", min: 0, max: most, step, value, title: value });
}

// A file to send along; one that is too large is not sent at all.
function fileControl(page, control) {
  const chosen = () => {
    const [file] = input.files;
    if (!file) return;
    const fits = file.size <= control.most_bytes;
    page.sent = fits ? { [control.key]: file } : {};
    if (fits) page.load();
    else refuse(page, control, file);
  };
  const input = make("input", {
    "data-key": control.key,
    type: "file",
    accept: control.accept,
    "aria-invalid": control.wrong ? "true" : null,
    "aria-describedby": control.wrong ? control.key + "-wrong" : null,
    onchange: chosen,
  });
  return input;
}

function refuse(page, control, file) {
  const limit = control.most_bytes.toLocaleString("en");
  const wrong = `${control.key}=${file.name} is over ${limit} bytes; send fewer tokens`;
  const controls = page.data.controls.map((other) => (other === control ? { ...control, wrong } : other));
  page.show({ ...page.data, controls });
}

// What is said beside the control of a file: which is in use, and what is wrong with it.
export function aboutFile(page, { key, name, wrong }) {
  const drop = () => {
    page.sent = {};
    page.load();
  };
  const used = `${name} is counted. It stays in this browser: a link to this page does not hold it.`;
  return [
    name ? make("button", { type: "button", text: "Back to drawn picks", onclick: drop }) : null,
    name ? make("p", { class: "help", role: "status", text: used }) : null,
    wrong ? make("p", { class: "control-wrong", role: "alert", id: key + "-wrong", text: wrong }) : null,
  ].filter(Boolean);
}
