// Above the map: where one is, cluster › node › GPU, and how close; beside it a small picture of the whole.

import { make, makeSvg } from "../shell/dom.js";
import { ZOOM_STEP } from "./sight.js";

const LEVELS = [
  ["cluster", "Cluster"],
  ["nodes", "Nodes"],
  ["gpu", "GPU"],
];
const OVERVIEW = { width: 116, most: 120, row: 6, cell: 6 };
const FROM_ROWS = 9;

// `acts` are open(rank) and close(): the GPU that is opened is the page's; `tools` are the page's own buttons.
export function createMapBar(map, acts, tools) {
  const trail = make("nav", { class: "trail", "aria-label": "Place on the map" });
  const overview = make("div", { class: "overview", "aria-hidden": "true" });
  const buttons = LEVELS.map(([level, text]) =>
    make("button", { type: "button", text, "aria-pressed": "false", onclick: () => setLevel(bar, level) }),
  );
  const bar = { map, acts, trail, overview, buttons, rank: null };
  const zoom = (label, text, factor) =>
    make("button", { type: "button", "aria-label": label, text, onclick: () => map.sight.closer(factor) });
  const element = make("div", { class: "map-bar" }, [
    trail,
    make("div", { class: "tools" }, tools),
    make("div", { class: "zoom-buttons", role: "group", "aria-label": "Zoom" }, [
      zoom("Zoom out", "−", 1 / ZOOM_STEP),
      zoom("Zoom in", "+", ZOOM_STEP),
      make("button", { type: "button", text: "Fit", onclick: () => fit(bar) }),
    ]),
    make("div", { class: "levels", role: "group", "aria-label": "Level" }, buttons),
  ]);
  return {
    element,
    overview,
    show: () => show(bar),
    // The GPU that the page has opened, or null.
    opened: (rank) => {
      bar.rank = rank;
      show(bar);
    },
    climb: () => climb(bar),
  };
}

function fit(bar) {
  bar.map.opened.clear();
  bar.map.sight.fit();
  bar.map.refresh();
}

// From the GPU to its node, from a closer look to the whole map, from opened rows to closed ones.
function climb(bar) {
  const { map, rank, acts } = bar;
  if (rank !== null) acts.close();
  else if (map.sight.zoom() > 1 || map.opened.size) fit(bar);
  else setLevel(bar, "cluster");
}

function setLevel(bar, level) {
  const { map, acts } = bar;
  if (level === "gpu") {
    acts.open(map.cursor ?? map.entry ?? map.scene.home);
    return;
  }
  if (bar.rank !== null) acts.close();
  map.level = level;
  map.opened.clear();
  map.refresh();
}

function show(bar) {
  if (!bar.map.layout) return;
  const { map, rank } = bar;
  const now = rank === null ? map.level : "gpu";
  bar.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(LEVELS[i][0] === now)));
  bar.trail.replaceChildren(...crumbs(bar));
  drawOverview(bar);
}

function crumbs(bar) {
  const { map, rank } = bar;
  const line = rank === null ? undefined : map.lines[map.lineOf.get(rank)];
  const steps = [["cluster", () => setLevel(bar, "cluster")]];
  if (map.level !== "cluster" || rank !== null) steps.push(["nodes", () => setLevel(bar, "nodes")]);
  if (line) steps[1] = [line.label || map.scene.domain_word + " " + line.domain, () => toNode(bar)];
  if (rank !== null) steps.push(["GPU " + rank.toLocaleString("en"), () => {}]);
  return steps.flatMap(([text, onclick], i) => {
    const last = i === steps.length - 1;
    const crumb = last
      ? make("b", { text, "aria-current": "location" })
      : make("button", { type: "button", class: "crumb", text, onclick });
    return i ? [" › ", crumb] : [crumb];
  });
}

// The row of the opened GPU, closer.
function toNode(bar) {
  const { map, rank, acts } = bar;
  const box = map.layout.boxes.get(rank);
  acts.close();
  if (box) map.sight.center({ x: map.size.width / 2, y: box.y + box.height / 2 }, 2);
}

// Cells of all rows, dark where this hop is, and the part that is seen.
function drawOverview({ map, overview }) {
  const wanted = map.lines.length >= FROM_ROWS || map.sight.zoom() > 1;
  overview.hidden = !wanted;
  if (!wanted) return;
  const { layout, columns } = map;
  const [across, down] = [OVERVIEW.width / map.size.width, OVERVIEW.most / layout.height];
  const cell = ({ x, y, width, height }) =>
    `M${(x * across).toFixed(1)} ${(y * down).toFixed(1)}h${(width * across).toFixed(1)}v${(height * down).toFixed(1)}h-${(width * across).toFixed(1)}z`;
  const boxes = [...layout.boxes];
  const active = new Set(map.scene.hops[map.index].moves.flatMap(({ src, dst }) => [src, dst]));
  const view = map.sight.view();
  const seen = {
    x: Math.max(0, view.x * across),
    y: Math.max(0, view.y * down),
    width: Math.min(OVERVIEW.width, view.width * across),
    height: Math.min(OVERVIEW.most, view.height * down),
  };
  overview.replaceChildren(
    makeSvg("svg", { viewBox: `-1 -1 ${OVERVIEW.width + 2} ${OVERVIEW.most + 2}`, "data-columns": columns }, [
      makeSvg("path", { class: "overview-cells", d: boxes.map(([, box]) => cell(box)).join("") }),
      makeSvg("path", {
        class: "overview-active",
        d: boxes
          .filter(([rank]) => active.has(rank))
          .map(([, box]) => cell(box))
          .join(""),
      }),
      makeSvg("rect", { class: "overview-view", ...seen, rx: 2 }),
    ]),
    make("p", { text: overviewText(map) }),
  );
}

function overviewText({ layout, lines, scene }) {
  const open = layout.rows.filter((row) => row.kind === "open").length;
  const all = lines.reduce((sum, line) => sum + (line.count || 1), 0).toLocaleString("en");
  return `${open} of ${all} rows of ${scene.domain_word}s open. Scroll to zoom · drag to pan · Enter opens · F fits · Esc climbs`;
}
