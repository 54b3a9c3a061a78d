// Two scenarios side by side; each side is a query of its own inside the page's address.

import { formatQuery, parseQuery } from "../core/address.js";
import { UNREACHABLE } from "../core/errors.js";
import { csvText, jsonText, slug } from "../core/files.js";
import { pageAddress } from "../shell/place.js";
import { alertBox, labelled, make, option, picture, waiting } from "../shell/dom.js";
import { downloadMenu } from "../shell/download.js";
import { fetchJson, fetchTripFile } from "../shell/fetch.js";
import { carryScenario, writeAddress } from "../shell/pages.js";

const DEFAULTS = { a: "scenario=six-cuts", b: "scenario=six-cuts-pp-inside-dp" };

export function comparePage(frame) {
  const page = {
    query: { ...DEFAULTS, ...parseQuery(location.search) },
    presets: [],
    onlyChanged: false,
    bar: make("div", { class: "toolbar" }),
    body: make("div", { class: "compare" }, [waiting("Taking both trips …")]),
  };
  frame.replaceChildren(make("h1", { class: "unseen", text: "Compare" }), page.bar, page.body);
  load(page);
}

async function load(page) {
  carryScenario(parseQuery(page.query.a));
  writeAddress(page.query);
  if (!page.presets.length) {
    const found = await fetchJson("/api/presets").catch(() => ({}));
    page.presets = found.presets || [];
  }
  showBar(page);
  const failed = () => ({ error: { text: UNREACHABLE } });
  const data = await fetchJson("/api/compare" + formatQuery(page.query)).catch(failed);
  if (data.error) page.body.replaceChildren(alertBox([make("p", { text: data.error.text })]));
  else show(page, data);
}

function showBar(page) {
  const swap = () => {
    page.query = { ...page.query, a: page.query.b, b: page.query.a };
    load(page);
  };
  page.bar.replaceChildren(
    labelled("A", sideSelect(page, "a")),
    labelled("B", sideSelect(page, "b")),
    make("button", { type: "button", text: "Swap sides", onclick: swap }),
    downloadMenu(() => filesOf(page)),
  );
}

function sideSelect(page, side) {
  const chosen = page.query[side];
  const presets = page.presets.map((each) => ({ query: "scenario=" + each.name, name: each.name }));
  const known = presets.some((each) => each.query === chosen);
  const select = make("select", { onchange: () => changed(select.value) }, [
    known ? null : option(chosen, "your own mesh", true),
    ...presets.map((each) => option(each.query, each.name, each.query === chosen)),
  ]);
  const changed = (query) => {
    page.query[side] = query;
    load(page);
  };
  return select;
}

function filesOf({ data, query }) {
  if (!data) return [];
  const names = data.sides.map((side) => side.name);
  const tables = ["totals", "axes", "hops"].map((part) => ({
    name: "compare-" + part + ".csv",
    content: () => csvText([part, ...names, "differs"], data[part]),
  }));
  const maps = data.sides.map((side, i) => {
    const name = "compare-" + "ab"[i] + "-" + slug(side.name) + ".svg";
    return { name, content: () => fetchTripFile(name, "?" + side.query) };
  });
  const all = { name: "compare.json", content: () => jsonText({ page: "compare", query, ...data }) };
  return [all, ...tables, ...maps];
}

function show(page, data) {
  page.data = data;
  const names = data.sides.map((side, i) => (i ? "B: " : "A: ") + side.name);
  const hops = table(["hop", ...names], data.hops);
  hops.classList.add("hops");
  hops.classList.toggle("only-changed", page.onlyChanged);
  page.body.replaceChildren(
    make(
      "div",
      { class: "sides" },
      data.sides.map((side, i) => sideOf(side, names[i])),
    ),
    make("h2", { text: "One token, in all" }),
    table(["", ...names], data.totals),
    make("h2", { text: "Axis by axis" }),
    table(["", ...names], data.axes),
    make("h2", { text: "Hop by hop" }),
    onlyChangedBox(page, hops),
    hops,
    make("p", { class: "help", text: "→ NVLink, ⇒ InfiniBand. Rows that differ are marked ≠." }),
  );
  page.body.classList.add("ready");
}

function sideOf(side, name) {
  return make("section", { "aria-label": name }, [
    make("h2", {}, [make("a", { href: pageAddress("/") + "?" + side.query, text: name })]),
    make("p", { class: "place", text: side.mesh_line }),
    picture(side.picture, name),
  ]);
}

function onlyChangedBox(page, hops) {
  const changed = () => {
    page.onlyChanged = box.checked;
    hops.classList.toggle("only-changed", box.checked);
  };
  const box = make("input", { type: "checkbox", onchange: changed });
  box.checked = page.onlyChanged;
  return make("label", { class: "inline" }, [box, " only hops that differ"]);
}

function table(heads, rows) {
  const headCells = heads.map((text) => (text ? make("th", { scope: "col", text }) : make("td", {})));
  const drawn = rows.map(([label, a, b, differs]) =>
    make("tr", { class: differs ? "differs" : "same" }, [
      make("th", { scope: "row", text: label }),
      make("td", { text: a }),
      make("td", { text: (differs ? "≠ " : "") + b }),
    ]),
  );
  const label = heads[1] + " and " + heads[2];
  return make("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": label }, [
    make("table", {}, [make("thead", {}, [make("tr", {}, headCells)]), make("tbody", {}, drawn)]),
  ]);
}
