// What the engine says of a mesh: what it does, or what is wrong and which values would mend it.

import { DEFAULT_SCENARIO, formatQuery, omit } from "../core/address.js";
import { fixValues } from "../core/errors.js";
import { baseName, csvText, jsonText } from "../core/files.js";
import { pageAddress } from "../shell/place.js";
import { alertBox, make } from "../shell/dom.js";
import { downloadMenu } from "../shell/download.js";
import { fetchTripFile } from "../shell/fetch.js";

export function showWrong(page, error) {
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
      onclick: () => page.set({ [field]: value }),
    }),
  );
  return make("div", { class: "options" }, buttons);
}

export function showWorking(page, data) {
  page.verdict.replaceChildren(
    make("p", { class: "eyebrow", text: "This mesh works" }),
    make("h2", { text: data.mesh_line }),
    counts(data.counts),
    links(page, data),
    make("details", {}, [
      make("summary", {
        text: "Groups of GPU " + data.home.rank.toLocaleString("en") + ", where the token lands",
      }),
      groups(data.home.groups),
    ]),
    make("details", {}, [
      make("summary", { text: "As a scenario file" }),
      make("pre", { tabindex: "0", text: data.toml }),
    ]),
  );
}

function links(page, data) {
  const query = omit(page.query, "hop", "rank", "speed");
  const here = formatQuery({ scenario: DEFAULT_SCENARIO, ...query });
  const other = query.scenario || DEFAULT_SCENARIO;
  const compare = pageAddress("/compare") + formatQuery({ a: here.slice(1), b: "scenario=" + other });
  return make("p", { class: "links" }, [
    make("a", { href: pageAddress("/") + here, class: "button", text: "Follow its token" }),
    downloadMenu(() => filesOf(query, data)),
    make("a", { href: compare, class: "button second", text: "Compare with " + other }),
  ]);
}

function filesOf(query, data) {
  const base = baseName(query, "mesh");
  const said = omit(data, "fields");
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
