"use strict";
// Two scenarios side by side; each side is a query of its own inside the page's address.
(function () {
  const DEFAULTS = { a: "scenario=six-cuts", b: "scenario=six-cuts-pp-inside-dp" };

  function comparePage(frame) {
    const { core, dom } = window.tokentrip;
    const page = { frame, query: { ...DEFAULTS, ...core.parseQuery(location.search) }, presets: [], onlyChanged: false };
    page.bar = dom.make("div", { class: "toolbar" });
    page.body = dom.make("div", { class: "compare" }, [dom.waiting("Taking both trips …")]);
    frame.replaceChildren(dom.make("h1", { class: "unseen", text: "Compare" }), page.bar, page.body);
    load(page);
  }

  async function load(page) {
    const { carry, core, fetchJson, dom } = window.tokentrip;
    carry(core.parseQuery(page.query.a));
    history.replaceState(history.state, "", location.pathname + core.formatQuery(page.query));
    if (!page.presets.length) page.presets = (await fetchJson("/api/presets").catch(() => ({}))).presets || [];
    drawBar(page);
    const data = await fetchJson("/api/compare" + core.formatQuery(page.query)).catch(() => ({ error: { text: core.UNREACHABLE } }));
    if (data.error) page.body.replaceChildren(dom.make("div", { class: "alert", role: "alert" }, [dom.make("p", { text: data.error.text })]));
    else {
      page.data = data;
      draw(page, data);
    }
  }

  function drawBar(page) {
    const { dom } = window.tokentrip;
    const select = (side) => {
      const chosen = page.query[side];
      const known = page.presets.map((each) => "scenario=" + each.name);
      const control = dom.make("select", { onchange: () => { page.query[side] = control.value; load(page); } }, [
        ...(known.includes(chosen) ? [] : [dom.option(chosen, "your own mesh", true)]),
        ...page.presets.map((each) => dom.option("scenario=" + each.name, each.name, "scenario=" + each.name === chosen))]);
      return control;
    };
    const swap = dom.make("button", { type: "button", text: "Swap sides", onclick: () => {
      page.query = { ...page.query, a: page.query.b, b: page.query.a };
      load(page);
    } });
    page.bar.replaceChildren(dom.labelled("A", select("a")), dom.labelled("B", select("b")), swap,
      window.tokentrip.downloadMenu(() => filesOf(page)));
  }

  function filesOf(page) {
    const { core } = window.tokentrip;
    if (!page.data) return [];
    const names = page.data.sides.map((side) => side.name);
    const tables = ["totals", "axes", "hops"].map((part) => ["compare-" + part + ".csv", () =>
      core.csvText([part, ...names, "differs"], page.data[part])]);
    const maps = page.data.sides.map((side, i) => {
      const name = "compare-" + "ab"[i] + "-" + core.slug(side.name) + ".svg";
      return [name, () => window.tokentrip.tripFile(name, "?" + side.query)];
    });
    return [["compare.json", () => core.jsonText({ page: "compare", query: page.query, ...page.data })], ...tables, ...maps];
  }

  function draw(page, data) {
    const { dom } = window.tokentrip;
    const names = data.sides.map((side, i) => (i ? "B: " : "A: ") + side.name);
    page.body.replaceChildren(
      dom.make("div", { class: "sides" }, data.sides.map((side, i) => sideOf(dom, side, names[i]))),
      dom.make("h2", { text: "One token, in all" }), table(dom, ["", ...names], data.totals),
      dom.make("h2", { text: "Axis by axis" }), table(dom, ["", ...names], data.axes),
      dom.make("h2", { text: "Hop by hop" }), onlyChanged(page, dom), hopTable(page, dom, names, data.hops),
      dom.make("p", { class: "help", text: "→ NVLink, ⇒ InfiniBand. Rows that differ are marked ≠." }),
    );
    page.body.classList.add("ready");
  }

  function sideOf(dom, side, name) {
    return dom.make("section", { "aria-label": name }, [
      dom.make("h2", {}, [dom.make("a", { href: "/?" + side.query, text: name })]),
      dom.make("p", { class: "place", text: side.mesh_line }),
      dom.picture(side.picture, name)]);
  }

  function onlyChanged(page, dom) {
    const box = dom.make("input", { type: "checkbox", onchange: () => {
      page.onlyChanged = box.checked;
      page.body.querySelector(".hops").classList.toggle("only-changed", box.checked);
    } });
    box.checked = page.onlyChanged;
    return dom.make("label", { class: "inline" }, [box, document.createTextNode(" only hops that differ")]);
  }

  function hopTable(page, dom, names, rows) {
    const made = table(dom, ["hop", ...names], rows);
    made.classList.add("hops");
    made.classList.toggle("only-changed", page.onlyChanged);
    return made;
  }

  function table(dom, heads, rows) {
    return dom.make("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": heads[1] + " and " + heads[2] }, [dom.make("table", {}, [
      dom.make("thead", {}, [dom.make("tr", {}, heads.map((text) => (text ? dom.make("th", { scope: "col", text }) : dom.make("td", {}))))]),
      dom.make("tbody", {}, rows.map(([label, a, b, differs]) => dom.make("tr", { class: differs ? "differs" : "same" }, [
        dom.make("th", { scope: "row", text: label }), dom.make("td", { text: a }), dom.make("td", { text: (differs ? "≠ " : "") + b })]))),
    ])]);
  }

  window.tokentrip.definePage("compare", comparePage);
})();
