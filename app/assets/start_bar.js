"use strict";
// Where a mesh starts from: a preset, or a file of the reader's own.
(function () {
  function startBar(page) {
    const { dom } = window.tokentrip;
    const note = dom.make("p", { class: "subtitle", role: "status" });
    const select = dom.make("select", { onchange: () => page.reset({ scenario: select.value }) },
      [dom.option(page.query.scenario ?? "six-cuts", page.query.scenario || "six-cuts", true)]);
    const file = dom.make("input", { type: "file", accept: ".json,.toml", onchange: () => file.files[0] && send(page, file, note) });
    page.start.replaceChildren(dom.labelled("Start from", select), dom.labelled("or a scenario file, or a model's config.json", file), flagsForm(page, note), note);
    fillPresets(page, select);
  }

  async function fillPresets(page, select) {
    const { dom, fetchJson } = window.tokentrip;
    const found = await fetchJson("/api/presets");
    const chosen = page.query.scenario ?? "six-cuts";
    const own = chosen ? [] : [dom.option("", "my own", true)];
    select.replaceChildren(...own, ...(found.presets || []).map((each) => dom.option(each.name, each.name, each.name === chosen)));
  }

  // A launch line, with the number of GPUs when the line does not say it.
  function flagsForm(page, note) {
    const { dom } = window.tokentrip;
    const line = dom.make("input", { type: "text", placeholder: "vllm serve -tp 2 -dp 8 --enable-expert-parallel", spellcheck: "false", class: "line" });
    const gpus = dom.make("input", { type: "number", min: 1, inputmode: "numeric", placeholder: "16" });
    const read = dom.make("button", { type: "submit", text: "Read flags" });
    return dom.make("form", { class: "flags", onsubmit: (event) => { event.preventDefault(); readFlags(page, line, gpus, note); } },
      [dom.labelled("or launch flags", line), dom.labelled("GPUs", gpus), read]);
  }

  async function readFlags(page, line, gpus, note) {
    const { core, fetchJson } = window.tokentrip;
    const found = await fetchJson("/api/flags" + core.formatQuery({ ...page.query, line: line.value, gpus: gpus.value }));
    note.textContent = found.error ? found.error.text
      : ["Read as " + found.framework + ".", ...found.warnings, ...found.unknown.map((flag) => flag + " is not known here.")].join(" ");
    if (!found.error) page.reset(found.keys);
  }

  async function send(page, file, note) {
    const chosen = file.files[0];
    file.value = "";
    if (chosen.size > 262144) { note.textContent = chosen.name + " is over 262,144 bytes: send a scenario or a config.json."; return; }
    const response = await fetch("/api/upload?name=" + encodeURIComponent(chosen.name), { method: "POST", body: chosen });
    const found = await response.json();
    note.textContent = found.error ? found.error.text : ["Read " + chosen.name + ".", ...found.warnings].join(" ");
    if (!found.error) page.reset(found.reset ? found.keys : { ...withoutModel(page.query), ...found.keys });
  }

  function withoutModel(query) {
    return Object.fromEntries(Object.entries(query).filter(([key]) => !/^(model|picks)(\.|$)/.test(key)));
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { startBar });
})();
