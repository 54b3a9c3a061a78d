// The mesh page: controls on the left, on the right what the engine says of them, at once.

import { changedQuery, DEFAULT_SCENARIO, formatQuery, omit, parseQuery } from "../core/address.js";
import { fixValues, UNREACHABLE } from "../core/errors.js";
import { baseName, csvText, jsonText } from "../core/files.js";
import { alertBox, make, picture } from "../shell/dom.js";
import { downloadMenu } from "../shell/download.js";
import { fetchJson, fetchTripFile } from "../shell/fetch.js";
import { carryScenario, writeAddress } from "../shell/pages.js";
import { startBar } from "../shell/start_bar.js";
import { buildMeshForm } from "./mesh_form.js";

const WAIT_MS = 200;

export function meshPage(frame) {
  const page = {
    frame,
    query: parseQuery(location.search),
    controls: new Map(),
    timer: 0,
    abort: null,
    form: make("form", {
      class: "mesh-form",
      "aria-label": "Mesh",
      onsubmit: (event) => event.preventDefault(),
    }),
    verdict: make("section", { class: "mesh-verdict", "aria-label": "What it does", "aria-live": "polite" }),
    start: make("div", { class: "toolbar" }),
    read: make("section", { class: "launch-read", "aria-label": "What was read" }),
  };
  frame.replaceChildren(
    make("h1", { class: "unseen", text: "Mesh" }),
    page.start,
    make("div", { class: "mesh" }, [
      page.form,
      make("div", { class: "mesh-side" }, [page.read, page.verdict]),
    ]),
  );
  page.set = (changes) => set(page, changes);
  page.reset = (query) => {
    page.query = query;
    writeAddress(query);
    load(page);
  };
  // A launch that is not read leaves no other mesh standing as if it were its own.
  page.refused = () => page.verdict.replaceChildren();
  startBar(page);
  load(page);
}

// Sizes that follow from others are left to follow. A moment later, for a reader who is still typing.
function set(page, changes) {
  page.query = changedQuery(page.query, changes);
  writeAddress(page.query);
  clearTimeout(page.timer);
  page.timer = setTimeout(() => load(page), WAIT_MS);
}

async function load(page) {
  carryScenario(page.query);
  page.abort?.abort();
  page.abort = new AbortController();
  page.frame.setAttribute("aria-busy", "true");
  try {
    const data = await fetchJson("/api/mesh" + formatQuery(page.query), page.abort.signal);
    if (data.error) showWrong(page, data.error);
    else show(page, data);
  } catch (error) {
    if (error.name === "AbortError") return;
    showWrong(page, { text: UNREACHABLE });
  }
  page.frame.removeAttribute("aria-busy");
}

function show(page, data) {
  if (!page.controls.size) buildMeshForm(page, data.fields);
  const values = { ...data.values, ...data.token };
  for (const control of page.controls.values()) control.show(values, data.wrong?.field);
  if (data.wrong) showWrong(page, data.wrong);
  else showWorking(page, data);
}

function showWrong(page, error) {
  page.verdict.replaceChildren(
    alertBox([
      make("h2", { text: "This mesh does not work" }),
      make("p", { text: error.text }),
      fixes(page, error),
    ]),
  );
}

// Values that the fix names, as buttons.
function fixes(page, { field, fix }) {
  const values = fixValues(fix || "");
  if (!field || !field.includes(".") || !values.length) return null;
  const [, name] = field.split(".");
  const buttons = values.map((value) =>
    make("button", {
      type: "button",
      text: name + " = " + value,
      onclick: () => set(page, { [field]: value }),
    }),
  );
  return make("div", { class: "options" }, buttons);
}

function showWorking(page, data) {
  page.verdict.replaceChildren(
    make("p", { class: "eyebrow", text: "This mesh works" }),
    make("h2", { text: data.mesh_line }),
    counts(data.counts),
    links(page, data),
    picture(data.picture, "The whole trip"),
    make("h3", { text: "Groups of GPU " + data.home.rank.toLocaleString("en") + ", where the token lands" }),
    groups(data.home.groups),
    make("details", {}, [
      make("summary", { text: "As a scenario file" }),
      make("pre", { tabindex: "0", text: data.toml }),
    ]),
  );
}

function links(page, data) {
  const here = formatQuery({ scenario: DEFAULT_SCENARIO, ...page.query });
  const other = page.query.scenario || DEFAULT_SCENARIO;
  const compare = "/compare" + formatQuery({ a: here.slice(1), b: "scenario=" + other });
  return make("p", { class: "links" }, [
    make("a", { href: "/" + here, class: "button", text: "Follow its token" }),
    downloadMenu(() => filesOf(page, data)),
    make("a", { href: compare, class: "button second", text: "Compare with " + other }),
  ]);
}

function filesOf(page, data) {
  const { query } = page;
  const base = baseName(query, "mesh");
  const said = omit(data, "fields", "picture");
  return [
    { name: base + ".toml", content: () => data.toml },
    { name: base + ".json", content: () => jsonText({ page: "mesh", query, ...said }) },
    { name: base + ".svg", content: () => fetchTripFile(base + ".svg", formatQuery(query)) },
    { name: base + "-counts.csv", content: () => csvText(["", "value"], data.counts) },
  ];
}

function counts(rows) {
  const drawn = rows.map(([label, value]) =>
    make("tr", {}, [make("th", { scope: "row", text: label }), make("td", { class: "number", text: value })]),
  );
  return make("table", { class: "counts" }, [
    make("caption", { class: "unseen", text: "One token's trip" }),
    make("tbody", {}, drawn),
  ]);
}

function groups(found) {
  if (!found.length) return make("p", { text: "It is alone: no group has more than one GPU." });
  const rows = found.map((group) =>
    make("tr", {}, [
      make("th", { scope: "row", text: group.name }),
      make("td", { class: "number", text: group.size + " GPUs" }),
      make("td", { text: group.text }),
    ]),
  );
  return make("table", {}, [make("tbody", {}, rows)]);
}
