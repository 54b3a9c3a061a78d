// Beside the map: four counters, and what the hop moved and why.

import { eyebrow } from "../core/words.js";
import { make } from "../shell/dom.js";
import { meetingParts } from "./token_table.js";

const MAX_ROWS = 8;
const LINK_NAMES = { nvlink: "NVLink", ib: "InfiniBand" };
const HEADS = ["From → to", "Link", "Bytes", "Time", "Why"];

export function createCounters(scene) {
  const count = (number) => number.toLocaleString("en");
  const counters = [
    counter("gpus", "of " + count(scene.world_size) + " GPUs", (hop) => count(hop.tally.gpus_touched)),
    counter("crossings", scene.domain_word + " crossings", (hop) => count(hop.tally.node_crossings)),
    scene.tokens
      ? counter("takers", "tokens here", (hop) => count(hop.takers))
      : counter("ops", "comm ops", (hop) => count(hop.tally.comm_ops)),
    counter("bytes", "moved", (hop) => hop.tally.bytes_text),
  ];
  const element = make(
    "dl",
    { class: "counters" },
    counters.map((each) => each.element),
  );
  const show = (hop) => {
    for (const each of counters) each.show(hop);
  };
  return { element, show };
}

function counter(key, label, read) {
  const value = make("dd", { "data-count": key });
  return {
    element: make("div", { class: "counter" }, [make("dt", { text: label }), value]),
    show: (hop) => {
      value.textContent = read(hop);
    },
  };
}

// `numbers(hop)` adds what the hop does to real arrays, where the page can tell.
export function createPanel(numbers = () => null) {
  const element = make("section", { class: "hop-panel", "aria-label": "This hop" });
  return { element, show: (hop) => element.replaceChildren(...parts(hop, numbers)) };
}

function parts(hop, numbers) {
  const { words } = hop;
  return [
    make("p", { class: "eyebrow", text: eyebrow(hop) }),
    make("h2", { text: words.title }),
    ...(hop.moves.length ? [transferTable(hop.moves), timeOf(hop)] : []),
    make("p", { class: "what", text: words.what }),
    ...meetingParts(hop),
    make("p", { class: "why", text: words.why }),
    words.shapes ? shapes(words.shapes) : null,
    words.gotcha ? make("h3", { text: "Gotcha" }) : null,
    words.gotcha ? make("p", { class: "gotcha", text: words.gotcha }) : null,
    hop.note ? make("p", { class: "note", text: "Note: " + hop.note + "." }) : null,
    hop.takers === undefined ? numbers(hop) : null,
  ].filter(Boolean);
}

function timeOf(hop) {
  const whose = hop.takers === undefined ? "this token" : "these tokens";
  const text = `All of it takes ${hop.time} at link rate, for ${whose} alone; ${hop.since} since landing.`;
  return make("p", { class: "hop-time", text });
}

function shapes({ before, after }) {
  return make("p", { class: "shapes" }, [
    make("span", { text: before }),
    make("span", { class: "arrow", text: " → " }),
    make("span", { text: after + " a GPU" }),
  ]);
}

function transferTable(moves) {
  const rows = moves.map(transferRow);
  const extra = rows.slice(MAX_ROWS);
  for (const row of extra) row.hidden = true;
  const heads = HEADS.map((text) => make("th", { scope: "col", text }));
  const table = make("table", {}, [
    make("caption", { class: "unseen", text: "Transfers of this hop; time at link rate" }),
    make("thead", {}, [make("tr", {}, heads)]),
    make("tbody", {}, rows),
  ]);
  const frame = { class: "table-frame", tabindex: "0", role: "group", "aria-label": "Transfers" };
  return make("div", frame, [table, extra.length ? showAll(extra, rows.length) : null]);
}

function showAll(hidden, count) {
  const reveal = (event) => {
    for (const row of hidden) row.hidden = false;
    event.currentTarget.remove();
  };
  const text = "Show all " + count + " transfers";
  return make("button", { type: "button", class: "plain", text, onclick: reveal });
}

function transferRow(move) {
  return make("tr", {}, [
    make("th", { scope: "row", text: move.src + " → " + move.dst }),
    make("td", { class: "tier " + move.tier, text: LINK_NAMES[move.tier] }),
    make("td", { class: "number", text: move.bytes_text }),
    make("td", { class: "number", text: move.time }),
    make("td", { text: move.why }),
  ]);
}
