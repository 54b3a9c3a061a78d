"use strict";
// Above the map: which scenario, which token, which picks.
(function () {
  function toolbarParts(page, startOver, change) {
    const { dom } = window.tokentrip;
    const token = page.data.token;
    const [first, last] = token.positions;
    const range = last === null ? "from " + first.toLocaleString("en") : first + "–" + last.toLocaleString("en");
    const position = numberField(page, change, "token.position", token.position, first, last);
    const parts = [dom.labelled("Scenario", scenarioSelect(page, startOver)),
      ...(page.data.tokens ? [] : [dom.labelled("Position, " + range, position)])];
    if (token.replicas > 1) {
      parts.push(dom.labelled("Replica, 0–" + (token.replicas - 1), numberField(page, change, "token.replica", token.replica, 0, token.replicas - 1)));
    }
    parts.push(window.tokentrip.followForm(page, change));
    if (token.top_k) parts.push(rerollButton(page, change));
    if (page.data.folded || page.query.rows) parts.push(rowsButton(page, change));
    parts.push(copyButton(), window.tokentrip.exportMenu(page), dom.make("p", { class: "subtitle", text: page.data.subtitle }));
    return parts;
  }

  function scenarioSelect(page, startOver) {
    const { dom } = window.tokentrip;
    const chosen = page.query.scenario || "six-cuts";
    const names = page.presets.length ? page.presets.map((each) => each.name) : [chosen];
    const select = dom.make("select", { onchange: () => startOver(page, select.value) },
      names.map((name) => dom.option(name, name, name === chosen)));
    return select;
  }

  function numberField(page, change, key, value, least, most) {
    const { dom } = window.tokentrip;
    const input = dom.make("input", { type: "number", min: least, max: most, step: 1, value, inputmode: "numeric",
      onchange: () => { if (input.value !== "") change(page, { "token.gpu": null, ...(page.data.tokens ? {} : { follow: null }), [key]: input.value }); } });
    return input;
  }

  // New picks in every layer: those that the preset gives are taken out, and the seed moves on.
  function rerollButton(page, change) {
    const { dom } = window.tokentrip;
    return dom.make("button", { type: "button", text: "Re-roll picks", onclick: () => {
      const changes = { seed: page.data.token.seed + 1 };
      for (const key of Object.keys(page.query)) if (key.startsWith("picks.")) changes[key] = null;
      if (page.data.token.given_picks.length) changes.picks = "";
      change(page, changes, true);
    } });
  }

  function rowsButton(page, change) {
    const { dom } = window.tokentrip;
    const all = page.query.rows === "all";
    return dom.make("button", { type: "button", "aria-pressed": String(all), text: "All rows",
      onclick: () => change(page, { rows: all ? null : "all" }, true) });
  }

  function copyButton() {
    const { dom } = window.tokentrip;
    const button = dom.make("button", { type: "button", text: "Copy link", onclick: async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        button.textContent = "Copied";
      } catch { button.textContent = "Copy it from the address bar"; }
      setTimeout(() => { button.textContent = "Copy link"; }, 1600);
    } });
    return button;
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { toolbarParts });
})();
