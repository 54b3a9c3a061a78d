"use strict";
// What is seen, as files: made in the page from what the server said, so that a file holds what the page shows.
(function () {
  const TYPES = { json: "application/json", csv: "text/csv", svg: "image/svg+xml", png: "image/png", toml: "text/plain" };

  function saveFile(name, content) {
    const { dom } = window.tokentrip;
    const href = URL.createObjectURL(new Blob([content], { type: TYPES[name.split(".").pop()] }));
    dom.make("a", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  }

  // `list()` gives the files of the moment as [name, make], where `make()` gives the content, or a promise of it.
  function downloadMenu(list) {
    const { core, dom } = window.tokentrip;
    const inside = dom.make("div", { class: "menu-list" });
    const said = dom.make("p", { class: "help", role: "status" });
    const fill = () => inside.replaceChildren(...list().map(([name, make]) => dom.make("button", { type: "button", text: name, onclick: async () => {
      said.textContent = "";
      try { saveFile(name, await make()); } catch (error) { said.textContent = name + " could not be made: " + core.whyFailed(error); }
    } })), said);
    return dom.make("details", { class: "menu downloads", ontoggle: (event) => { if (event.target.open) fill(); } },
      [dom.make("summary", { text: "Export" }), inside]);
  }

  // Files of a page of blocks: all of it as JSON, its tables as CSV, its charts as pictures, its times as a trace.
  function reportFiles(page) {
    const { core, fetchJson } = window.tokentrip;
    const base = core.slug(((page.query.scenario ?? "six-cuts") || "my") + " " + page.name);
    const { traces = [], ...data } = page.data;
    const files = [[base + ".json", () => core.jsonText({ page: page.name, query: page.query, ...data })]];
    for (const block of data.blocks) {
      const name = base + "-" + core.slug(block.caption || block.name || "");
      if (block.kind === "table") files.push([name + ".csv", () => core.csvText(block.heads, block.rows)]);
      if (block.kind === "counts") files.push([name + ".csv", () => core.csvText(["", "value"], block.rows)]);
    }
    for (const chart of page.charts) {
      for (const format of ["svg", "png"]) files.push([base + "-" + core.slug(chart.name) + "." + format, () => chart.image(format)]);
    }
    for (const { from, ending } of traces) {
      files.push([base + ending, async () => {
        const found = await fetchJson(from + core.formatQuery(page.query));
        if (found.error) throw new Error(found.error.text);
        return core.jsonText(found);
      }]);
    }
    return files;
  }

  // A trip as the server writes it for a query; a format may refuse a trip, and says why.
  async function tripFile(name, query) {
    const response = await fetch("/export/" + name + query);
    if (!response.ok) throw new Error((await response.json()).error.text);
    return response.blob();
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { downloadMenu, reportFiles, saveFile, tripFile });
})();
