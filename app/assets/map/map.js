// The map: a ground of rows that open for a hop, over it what the hop changes, and a small layer for what
// moves. It places everything itself for the window that it has, and again when that changes.

import { captionsOf } from "../core/captions.js";
import { around } from "../core/geometry.js";
import { firstHops, stripGroups } from "../core/hops.js";
import { boxOf, labelsOf } from "../core/labels.js";
import { layOut, margins } from "../core/layout.js";
import { columnsFor, copiesIn, endsOf, joinedNeeds, lineOfRank, linesOf, needsOf } from "../core/lines.js";
import { routesOf } from "../core/routes.js";
import { wholeView } from "../core/view.js";
import { make, makeSvg } from "../shell/dom.js";
import { drawGround } from "./draw_rows.js";
import { drawCaption, drawLinks } from "./links.js";
import { listenToMap } from "./map_keys.js";
import { marksAtRest } from "./marks.js";
import { createSight } from "./sight.js";
import { busyLook, tagsAtRest } from "./token_tags.js";
import { startTravel, stopTravel } from "./travel.js";

const FLOW = { line: 96, header: 60, most: 640, least: 220 };
const MOVER_MARGIN = 16;

// `handlers` hear of GPUs (`look`, `leave`, `choose`), of `swipe(by)` and of each new `view(map)`. With
// `fitted` the map fills the height that the page gives it; without, it takes what its rows need.
export function createMap(scene, handlers, { fitted = false } = {}) {
  const map = {
    scene,
    handlers,
    fitted,
    ...drawLayers(scene),
    since: {
      touched: firstHops(scene.hops, (marks) => marks.newly_touched),
      owners: firstHops(scene.hops, (marks) => marks.kv_owners),
      copies: firstHops(scene.hops, (marks) => marks.kv_copies),
    },
    groups: groupOfHop(scene.hops),
    size: null,
    level: "nodes",
    opened: new Set(),
    index: 0,
    frame: 0,
    captions: [],
    lit: [],
    cursor: null,
  };
  map.fitMovers = () => fitMovers(map);
  map.refresh = () => refresh(map);
  map.sight = createSight(map, () => applyView(map));
  map.point = (rank) => {
    map.cursor = rank;
    drawLights(map);
  };
  listenToMap(map, handlers);
  new ResizeObserver(() => resize(map)).observe(map.element);
  return {
    element: map.element,
    map,
    show: (index) => show(map, index),
    travel: (index, speed, done) => travel(map, index, speed, done),
    stop: () => stopTravel(map),
    light: (ranks) => {
      map.lit = ranks;
      drawLights(map);
    },
  };
}

function drawLayers(scene) {
  const base = makeSvg("svg", {
    class: "map-base",
    role: "group",
    "aria-label": "Map of " + scene.name + ": " + scene.summary,
  });
  const [touched, links, dots, captions, lights] = Array.from({ length: 5 }, () => makeSvg("g"));
  const marks = makeSvg("g", {}, [touched, links]);
  const over = makeSvg("svg", { class: "layer marks", "aria-hidden": "true" }, [
    marks,
    dots,
    captions,
    lights,
  ]);
  const movers = makeSvg("svg", { class: "layer movers", "aria-hidden": "true" });
  const element = make("div", { class: "map-frame" }, [base, over, movers]);
  return { element, base, over, touched, marks: links, dots, words: captions, lights, movers };
}

// Hops of the same layer, for each hop: rows stay open while the token is in a layer, where there is room.
function groupOfHop(hops) {
  return stripGroups(hops).flatMap((group) => group.hops.map(() => group.hops));
}

function resize(map) {
  const width = map.element.clientWidth;
  if (!width) return;
  const room = width - margins(width, false).left - margins(width, false).right;
  const columns = columnsFor(map.scene.domain_size, room);
  if (columns !== map.columns) {
    map.columns = columns;
    map.lines = linesOf(map.scene.rows, columns, map.scene.domain_word);
    map.lineOf = lineOfRank(map.lines);
    map.copies = copiesIn(map.scene.hops, map.lineOf);
  }
  if (!map.fitted) map.element.style.height = flowHeight(map.lines) + "px";
  const height = map.element.clientHeight;
  if (map.size && map.size.width === width && map.size.height === height) return;
  map.size = { width, height };
  stopTravel(map);
  map.ground = null;
  show(map, map.index);
}

// Height of a map in a page that scrolls.
function flowHeight(lines) {
  return Math.min(FLOW.most, Math.max(FLOW.least, FLOW.header + FLOW.line * lines.length));
}

export function refresh(map) {
  map.ground = null;
  stopTravel(map);
  show(map, map.index);
}

// Everything as it is after a hop.
function show(map, index) {
  stopTravel(map);
  map.index = index;
  if (!map.size) return;
  lay(map, index);
  showRest(map, index);
}

function showRest(map, index) {
  markGpus(map, index, map.scene.hops[index]);
  map.movers.replaceChildren();
  const marks = map.scene.tokens ? tagsAtRest(map, index) : marksAtRest(map, index);
  map.dots.replaceChildren(...marks);
  for (const link of map.marks.children) link.classList.remove("waiting");
  for (const { element } of map.captions) {
    element.classList.remove("waiting");
    element.removeAttribute("transform");
  }
}

function travel(map, index, speed, done) {
  stopTravel(map);
  map.index = index;
  if (!map.size) {
    done();
    return;
  }
  lay(map, index);
  const land = () => {
    showRest(map, index);
    done();
  };
  if (startTravel(map, index, speed, land)) markGpus(map, index - 1, map.scene.hops[index]);
  else land();
}

// Places rows for a hop, and its links and words; the ground is drawn again only where it changes.
function lay(map, index) {
  const hop = map.scene.hops[index];
  const homeLine = map.lineOf.get(map.scene.home);
  const needs = {
    hop: needsOf(hop, map.lineOf, homeLine),
    layer: joinedNeeds(map.groups[index].map((each) => needsOf(each, map.lineOf, homeLine))),
    opened: map.opened,
  };
  map.layout = layOut(map.lines, map.columns, needs, map.size, map.level);
  const ground = map.layout.rows.map(({ kind, lines, y }) => kind + lines[0] + "@" + y.toFixed(1)).join();
  if (ground !== map.ground) drawBase(map, ground);
  map.routes = routesOf(hop.moves, map.layout, map.scene.home);
  const look = map.scene.tokens ? busyLook(hop) : undefined;
  map.marks.replaceChildren(...drawLinks(map.scene, hop.moves, map.routes, look));
  drawCaptions(map, hop);
  applyView(map);
}

function drawBase(map, ground) {
  map.ground = ground;
  const words = { domain: map.scene.domain_word, stages: map.scene.stages, copies: map.copies };
  const labels = labelsOf(map.layout, map.lines, words);
  const focused = map.base.contains(document.activeElement) ? map.entry : undefined;
  const { parts, gpus, rows } = drawGround(map.layout, map.lines, labels, !map.scene.tokens);
  map.base.replaceChildren(...parts);
  Object.assign(map, { gpus, rowGroups: rows, labels: labels.map(boxOf) });
  map.named();
  if (focused !== undefined) map.gpus.get(focused)?.focus({ preventScroll: true });
  map.sight.fitTo(wholeView({ width: map.size.width, height: map.layout.height }, map.size));
  drawLights(map);
}

// Several tokens' moves are told by the panel: their captions would be sums of sums.
function drawCaptions(map, hop) {
  const bounds = { left: 2, right: map.size.width - 2 };
  const placed = map.scene.tokens ? [] : captionsOf(hop.moves, map.routes, map.labels, bounds);
  map.captions = placed.map((caption) => ({ ...caption, element: drawCaption(caption) }));
  map.words.replaceChildren(...map.captions.map(({ element }) => element));
}

// GPUs touched up to a hop are dark, those that `active` moves between darker.
function markGpus(map, index, active) {
  const ends = endsOf(active);
  for (const [rank, group] of map.gpus) {
    const since = map.since.touched.get(rank);
    group.classList.toggle("touched", since !== undefined && since <= index);
    group.classList.toggle("active", ends.has(rank));
  }
  const closed = [...map.since.touched].filter(
    ([rank, hop]) => hop <= index && map.layout.boxes.get(rank)?.open === false,
  );
  map.touched.replaceChildren(
    ...closed.map(([rank]) => {
      const { x, y, width, height } = map.layout.boxes.get(rank);
      return makeSvg("rect", { class: "touched-cell", x, y: y + 2, width, height: height - 4, rx: 2 });
    }),
  );
}

function applyView(map) {
  const { x, y, width, height } = map.sight.view();
  const box = [x, y, width, height].map((value) => value.toFixed(2)).join(" ");
  map.base.setAttribute("viewBox", box);
  map.over.setAttribute("viewBox", box);
  fitMovers(map);
  map.handlers.view?.(map);
}

// The layer that moves covers the links of the hop and no more, however large the map.
function fitMovers(map) {
  const shown = map.routes.filter(Boolean).flatMap(({ points }) => points);
  if (!shown.length) return;
  const area = around(
    shown.map((point) => ({ ...point, width: 0, height: 0 })),
    MOVER_MARGIN,
  );
  const view = map.sight.view();
  map.movers.setAttribute("viewBox", `${area.x} ${area.y} ${area.width} ${area.height}`);
  const scale = map.size.width / view.width;
  Object.assign(map.movers.style, {
    transform: `translate(${(area.x - view.x) * scale}px, ${(area.y - view.y) * scale}px)`,
    width: area.width * scale + "px",
    height: area.height * scale + "px",
  });
}

// Outlines over the map: a group that is lit, and the GPU that is pointed at or focused.
function drawLights(map) {
  if (!map.layout) return;
  const outlines = (ranks, look) =>
    ranks
      .filter((rank) => map.layout.boxes.has(rank))
      .map((rank) => {
        const { x, y, width, height } = map.layout.boxes.get(rank);
        const size = {
          x: x - 2,
          y: y - 2,
          width: width + 4,
          height: height + 4,
          rx: Math.min(9, height / 3),
        };
        return makeSvg("rect", { class: look, ...size });
      });
  const pointed = map.cursor === null ? [] : [map.cursor];
  map.lights.replaceChildren(...outlines(map.lit, "lit-box"), ...outlines(pointed, "cursor-box"));
}
