"use strict";
// Where a mesh starts from: a preset, or a file of the reader's own.
(function () {
  function startBar(page) {
    const { dom } = window.tokentrip;
    const note = dom.make("p", { class: "subtitle", role: "status" });
    const select = dom.make("select", { onchange: () => page.reset({ scenario: select.value }) },
      [dom.option(page.query.scenario ?? "six-cuts", page.query.scenario || "six-cuts", true)]);
    const file = dom.make("input", { type: "file", accept: ".json,.toml", onchange: () => file.files[0] && send(page, file, note) });
    page.start.replaceChildren(dom.labelled("Start from", select), dom.labelled("or a scenario file, or a model's config.json", file), note);
    fillPresets(page, select);
  }

  async function fillPresets(page, select) {
    const { dom, fetchJson } = window.tokentrip;
    const found = await fetchJson("/api/presets");
    const chosen = page.query.scenario ?? "six-cuts";
    const own = chosen ? [] : [dom.option("", "my own", true)];
    select.replaceChildren(...own, ...(found.presets || []).map((each) => dom.option(each.name, each.name, each.name === chosen)));
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
