// The controls of the mesh page: one for each key of the scenario, each knowing how to show a value.

import { modelChanges } from "../core/address.js";
import { make, option } from "../shell/dom.js";

// When this changes, the number of nodes follows; of these sizes, another one.
const NODES_FOLLOW = ["cluster.gpus_per_node"];
const AXES = ["mesh.tp", "mesh.cp", "mesh.dp", "mesh.pp"];
// Groups of controls that are open at first.
const OPEN_GROUPS = 2;
const DEFAULT_ORDER = "tp-cp-dp-pp";

const CONTROLS = { size: numberControl, count: numberControl, choice: choiceControl, flag: flagControl };

export function buildMeshForm(page, groups) {
  const sections = groups.map((group, i) =>
    make("details", { open: i < OPEN_GROUPS, class: "form-group" }, [
      make("summary", { text: group.title }),
      make(
        "div",
        { class: "fields" },
        group.fields.map((field) => makeField(page, field)),
      ),
      ...(i ? [] : [gpuLock(page), page.said]),
    ]),
  );
  page.form.replaceChildren(...sections);
}

// Sizes as numbers, from values by key; an axis that nobody gave has size 1.
export function sizesOf(values) {
  const size = (key, unsaidAs = 1) => Number(values[key] ?? unsaidAs);
  const axes = ["tp", "cp", "dp", "pp", "etp"].map((axis) => [axis, size("mesh." + axis)]);
  return { ...Object.fromEntries(axes), ep: size("mesh.ep", 0), replica: size("token.replica", 0) };
}

function gpuLock(page) {
  const count = make("b");
  const box = make("input", { type: "checkbox", checked: true });
  box.addEventListener("change", () => {
    page.locked = box.checked;
    page.said.textContent = "";
  });
  page.controls.set("lock", {
    show: (values) => {
      const { tp, cp, dp, pp } = sizesOf(values);
      count.textContent = (tp * cp * dp * pp).toLocaleString("en");
    },
  });
  return make("label", { class: "inline lock" }, [box, " Keep the number of GPUs: ", count]);
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
    if (AXES.includes(field.key) && Number(input.value) >= 1) {
      page.resize(field.key.split(".")[1], Number(input.value));
      return;
    }
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
