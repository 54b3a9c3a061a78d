// The controls of the mesh page: one for each key of the scenario, each knowing how to show a value.

import { modelChanges } from "../core/address.js";
import { make, option } from "../shell/dom.js";

// When one of these changes, the number of nodes follows.
const NODES_FOLLOW = ["mesh.tp", "mesh.cp", "mesh.dp", "mesh.pp", "cluster.gpus_per_node"];
const DEFAULT_ORDER = "tp-cp-dp-pp";

const CONTROLS = { size: numberControl, count: numberControl, choice: choiceControl, flag: flagControl };

export function buildMeshForm(page, groups) {
  const sections = groups.map((group) =>
    make("fieldset", {}, [
      make("legend", { text: group.title }),
      make(
        "div",
        { class: "fields" },
        group.fields.map((field) => makeField(page, field)),
      ),
    ]),
  );
  page.form.replaceChildren(...sections);
}

function makeField(page, field) {
  if (field.kind === "order") return orderField(page, field);
  const control = CONTROLS[field.kind](page, field);
  const id = "help-" + field.key.replace(".", "-");
  const help = field.help ? make("span", { class: "help", id, text: field.help }) : null;
  if (help) control.setAttribute("aria-describedby", id);
  const label = make("label", { class: "field" }, [make("span", { text: field.label }), control]);
  page.controls.set(field.key, {
    show: (values, wrong) => {
      showValue(control, field, values[field.key]);
      control.setAttribute("aria-invalid", String(wrong === field.key));
    },
  });
  return make("div", { class: "control " + field.kind }, [label, help]);
}

function showValue(control, field, value) {
  // What is being typed stays.
  if (control === document.activeElement && field.kind !== "choice") return;
  if (field.kind === "flag") control.checked = value === true;
  else control.value = value ?? unsaid(control, field);
}

// What a key that nobody gave stands for: axes have size 1; other sizes follow from the hardware.
function unsaid(control, field) {
  if (field.kind === "choice") return control.options[0].value;
  return field.key.startsWith("mesh.") ? 1 : "";
}

function numberControl(page, field) {
  const changed = () => {
    if (input.value === "") return;
    const nodes = NODES_FOLLOW.includes(field.key) ? { "cluster.nodes": "" } : {};
    page.set({ [field.key]: input.value, ...nodes });
  };
  const min = field.kind === "count" ? 0 : 1;
  const input = make("input", { type: "number", min, step: 1, inputmode: "numeric", oninput: changed });
  return input;
}

function choiceControl(page, field) {
  const empty = field.key === "model.preset" ? "as the scenario says" : "generic (H100 rates)";
  const nameOf = (choice) => (choice === "" ? empty : choice.replaceAll("_", " "));
  const select = make(
    "select",
    { onchange: () => page.set(chosen(page.query, field, select.value)) },
    field.choices.map((choice) => option(choice, nameOf(choice))),
  );
  return select;
}

function chosen(query, field, value) {
  if (field.key === "cluster.hardware") return { [field.key]: value, "cluster.nodes": "" };
  if (field.key === "model.preset") return modelChanges(query, value);
  return { [field.key]: value };
}

function flagControl(page, field) {
  const changed = () => page.set({ [field.key]: String(input.checked) });
  const input = make("input", { type: "checkbox", onchange: changed });
  return input;
}

// An order is moved by hand: each axis has a button inwards (faster) and one outwards.
function orderField(page, field) {
  const row = make("div", { class: "order", role: "group", "aria-label": field.label });
  page.controls.set(field.key, {
    show: (values) => drawOrder(page, field, row, String(values[field.key] || DEFAULT_ORDER).split("-")),
  });
  return make("div", { class: "control wide field" }, [
    make("span", { text: field.label }),
    row,
    make("span", { class: "help", text: field.help }),
  ]);
}

function drawOrder(page, field, row, axes) {
  const move = (from, to) => {
    const next = [...axes];
    next.splice(to, 0, ...next.splice(from, 1));
    page.set({ [field.key]: next.join("-") });
    drawOrder(page, field, row, next);
    row.children[to].querySelector("button:not([disabled])")?.focus();
  };
  const button = (axis, way, text, from, to) =>
    make("button", {
      type: "button",
      "aria-label": "Move " + axis + " " + way,
      text,
      disabled: to < 0 || to === axes.length,
      onclick: () => move(from, to),
    });
  const parts = axes.map((axis, i) =>
    make("span", { class: "axis" }, [
      button(axis, "inwards", "‹", i, i - 1),
      make("b", { text: axis }),
      button(axis, "outwards", "›", i, i + 1),
    ]),
  );
  row.replaceChildren(...parts);
}
