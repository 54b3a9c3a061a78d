"use strict";
// The controls of the mesh page: one a key of the scenario, each knowing how to show a value.
(function () {
  const FOLLOW = ["mesh.tp", "mesh.cp", "mesh.dp", "mesh.pp", "cluster.gpus_per_node"];

  function buildMeshForm(page, groups) {
    const { dom } = window.tokentrip;
    page.form.replaceChildren(...groups.map((group) => dom.make("fieldset", {}, [
      dom.make("legend", { text: group.title }), dom.make("div", { class: "fields" }, group.fields.map((field) => makeField(page, field)))])));
  }

  function makeField(page, field) {
    const { dom } = window.tokentrip;
    if (field.kind === "order") return orderField(page, field);
    const control = { size: numberControl, count: numberControl, choice: choiceControl, flag: flagControl }[field.kind](page, field);
    const id = "help-" + field.key.replace(".", "-");
    const help = field.help ? dom.make("span", { class: "help", id, text: field.help }) : null;
    if (help) control.setAttribute("aria-describedby", id);
    const label = dom.make("label", { class: "field" }, [dom.make("span", { text: field.label }), control]);
    const whole = dom.make("div", { class: "control " + field.kind }, [label, help].filter(Boolean));
    page.controls.set(field.key, { show: (values, wrong) => {
      showValue(control, field, values[field.key]);
      control.setAttribute("aria-invalid", String(wrong === field.key));
    } });
    return whole;
  }

  function showValue(control, field, value) {
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
    const { dom } = window.tokentrip;
    const input = dom.make("input", { type: "number", min: field.kind === "count" ? 0 : 1, step: 1, inputmode: "numeric", oninput: () => {
      if (input.value === "") return;
      const changes = { [field.key]: input.value };
      if (FOLLOW.includes(field.key)) changes["cluster.nodes"] = "";
      page.set(changes);
    } });
    return input;
  }

  function choiceControl(page, field) {
    const { dom } = window.tokentrip;
    const names = { "": field.key === "model.preset" ? "as the scenario says" : "generic (H100 rates)" };
    const select = dom.make("select", { onchange: () => page.set(chosen(page, field, select.value)) },
      field.choices.map((choice) => dom.option(choice, names[choice] ?? choice.replaceAll("_", " "))));
    return select;
  }

  function chosen(page, field, value) {
    if (field.key === "cluster.hardware") return { [field.key]: value, "cluster.nodes": "" };
    if (field.key !== "model.preset") return { [field.key]: value };
    const gone = Object.fromEntries(Object.keys(page.query).filter((key) => /^(model|picks)\./.test(key)).map((key) => [key, null]));
    return value ? { ...gone, model: "", picks: "", "model.preset": value } : { ...gone, model: null, picks: null, "model.preset": null };
  }

  function flagControl(page, field) {
    const { dom } = window.tokentrip;
    const input = dom.make("input", { type: "checkbox", onchange: () => page.set({ [field.key]: String(input.checked) }) });
    return input;
  }

  // An order is moved by hand: each axis has a button inwards (faster) and one outwards.
  function orderField(page, field) {
    const { dom } = window.tokentrip;
    const row = dom.make("div", { class: "order", role: "group", "aria-label": field.label });
    page.controls.set(field.key, { show: (values) => drawOrder(page, field, row, String(values[field.key] || "tp-cp-dp-pp").split("-")) });
    return dom.make("div", { class: "control wide field" }, [dom.make("span", { text: field.label }), row, dom.make("span", { class: "help", text: field.help })]);
  }

  function drawOrder(page, field, row, axes) {
    const { dom } = window.tokentrip;
    const move = (from, to) => {
      const next = [...axes];
      next.splice(to, 0, ...next.splice(from, 1));
      page.set({ [field.key]: next.join("-") });
      drawOrder(page, field, row, next);
      row.children[to].querySelector("button:not([disabled])")?.focus();
    };
    row.replaceChildren(...axes.map((axis, i) => dom.make("span", { class: "axis" }, [
      dom.make("button", { type: "button", "aria-label": "Move " + axis + " inwards", text: "‹", disabled: i === 0, onclick: () => move(i, i - 1) }),
      dom.make("b", { text: axis }),
      dom.make("button", { type: "button", "aria-label": "Move " + axis + " outwards", text: "›", disabled: i === axes.length - 1, onclick: () => move(i, i + 1) }),
    ])));
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { buildMeshForm });
})();
