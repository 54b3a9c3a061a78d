"use strict";
// The mesh page: controls on the left, on the right what the engine says of them, at once.
(function () {
  const WAIT_MS = 200;

  function meshPage(frame) {
    const { core, dom } = window.tokentrip;
    const page = { frame, query: core.parseQuery(location.search), controls: new Map(), timer: 0, abort: null };
    page.form = dom.make("form", { class: "mesh-form", "aria-label": "Mesh", onsubmit: (event) => event.preventDefault() });
    page.verdict = dom.make("section", { class: "mesh-verdict", "aria-label": "What it does", "aria-live": "polite" });
    page.start = dom.make("div", { class: "toolbar" });
    frame.replaceChildren(dom.make("h1", { class: "unseen", text: "Mesh" }), page.start,
      dom.make("div", { class: "mesh" }, [page.form, page.verdict]));
    page.set = (changes) => set(page, changes);
    page.reset = (query) => { page.query = query; save(page); load(page); };
    window.tokentrip.startBar(page);
    load(page);
  }

  // Sizes that follow from others are left to follow.
  function set(page, changes) {
    page.query = { ...page.query, ...changes };
    for (const [key, value] of Object.entries(page.query)) if (value === null) delete page.query[key];
    save(page);
    clearTimeout(page.timer);
    page.timer = setTimeout(() => load(page), WAIT_MS);
  }

  function save(page) {
    history.replaceState(history.state, "", location.pathname + window.tokentrip.core.formatQuery(page.query));
  }

  async function load(page) {
    window.tokentrip.carry(page.query);
    page.abort?.abort();
    page.abort = new AbortController();
    page.frame.setAttribute("aria-busy", "true");
    try {
      const data = await window.tokentrip.fetchJson("/api/mesh" + window.tokentrip.core.formatQuery(page.query), page.abort.signal);
      if (data.error) showWrong(page, data.error);
      else show(page, data);
    } catch (error) {
      if (error.name === "AbortError") return;
      showWrong(page, { text: window.tokentrip.core.UNREACHABLE });
    }
    page.frame.removeAttribute("aria-busy");
  }

  function show(page, data) {
    if (!page.controls.size) window.tokentrip.buildMeshForm(page, data.fields);
    const values = { ...data.values, ...(data.token || {}) };
    for (const control of page.controls.values()) control.show(values, data.wrong?.field);
    if (data.wrong) showWrong(page, data.wrong);
    else showWorking(page, data);
  }

  function showWrong(page, error) {
    const { dom } = window.tokentrip;
    page.verdict.replaceChildren(dom.make("div", { class: "alert", role: "alert" }, [
      dom.make("h2", { text: "This mesh does not work" }),
      dom.make("p", { text: error.text }),
      fixes(page, error),
    ].filter(Boolean)));
  }

  // Values that the fix names, as buttons.
  function fixes(page, error) {
    const { core, dom } = window.tokentrip;
    const values = core.fixValues(error.fix || "");
    if (!error.field || !error.field.includes(".") || !values.length) return null;
    return dom.make("div", { class: "options" }, values.map((value) =>
      dom.make("button", { type: "button", text: error.field.split(".")[1] + " = " + value, onclick: () => set(page, { [error.field]: value }) })));
  }

  function showWorking(page, data) {
    const { core, dom } = window.tokentrip;
    const here = core.formatQuery({ scenario: "six-cuts", ...page.query });
    page.verdict.replaceChildren(
      dom.make("p", { class: "eyebrow", text: "This mesh works" }),
      dom.make("h2", { text: data.mesh_line }),
      counts(dom, data.counts),
      dom.make("p", { class: "links" }, [dom.make("a", { href: "/" + here, class: "button", text: "Follow its token" }),
        window.tokentrip.downloadMenu(() => filesOf(page, data)),
        dom.make("a", { href: "/compare" + core.formatQuery({ a: here.slice(1), b: "scenario=" + (page.query.scenario || "six-cuts") }), class: "button second", text: "Compare with " + (page.query.scenario || "six-cuts") })]),
      dom.picture(data.picture, "The whole trip"),
      dom.make("h3", { text: "Groups of GPU " + data.home.rank.toLocaleString("en") + ", where the token lands" }),
      groups(dom, data.home.groups),
      dom.make("details", {}, [dom.make("summary", { text: "As a scenario file" }), dom.make("pre", { tabindex: "0", text: data.toml })]),
    );
  }

  function filesOf(page, data) {
    const { core } = window.tokentrip;
    const base = core.slug(((page.query.scenario ?? "six-cuts") || "my") + " mesh");
    const { fields, picture, ...said } = data;
    return [[base + ".toml", () => data.toml], [base + ".json", () => core.jsonText({ page: "mesh", query: page.query, ...said })],
      [base + ".svg", () => window.tokentrip.tripFile(base + ".svg", core.formatQuery(page.query))], [base + "-counts.csv", () => core.csvText(["", "value"], data.counts)]];
  }

  function counts(dom, rows) {
    return dom.make("table", { class: "counts" }, [dom.make("caption", { class: "unseen", text: "One token's trip" }),
      dom.make("tbody", {}, rows.map(([label, value]) => dom.make("tr", {}, [
        dom.make("th", { scope: "row", text: label }), dom.make("td", { class: "number", text: value })])))]);
  }

  function groups(dom, found) {
    if (!found.length) return dom.make("p", { text: "It is alone: no group has more than one GPU." });
    return dom.make("table", {}, [dom.make("tbody", {}, found.map((group) => dom.make("tr", {}, [
      dom.make("th", { scope: "row", text: group.name }), dom.make("td", { class: "number", text: group.size + " GPUs" }),
      dom.make("td", { text: group.text })])))]);
  }

  window.tokentrip.definePage("mesh", meshPage);
})();
