// The map: the server's SVG below, which is never touched again, and above it a layer for what a hop
// changes, and a small one for what moves. A map of thousands of GPUs is then painted once.

import { firstHops } from "../core/hops.js";
import { make, makeSvg, parseSvg } from "../shell/dom.js";
import { listenToMap } from "./map_keys.js";
import { marksAtRest } from "./marks.js";
import { sheets } from "./sheets.js";
import { tagsAtRest } from "./token_tags.js";
import { startTravel, stopTravel } from "./travel.js";

export function createMap(scene, handlers) {
  const map = {
    scene,
    ...drawLayers(scene),
    since: {
      touched: firstHops(scene.hops, (marks) => marks.newly_touched),
      owners: firstHops(scene.hops, (marks) => marks.kv_owners),
      copies: firstHops(scene.hops, (marks) => marks.kv_copies),
    },
    frame: 0,
    clones: new Map(),
    lit: [],
    cursor: null,
  };
  map.point = (rank) => {
    map.cursor = rank;
    drawLights(map);
  };
  listenToMap(map, handlers);
  return {
    element: map.element,
    show: (index) => {
      stopTravel(map);
      showRest(map, index);
    },
    travel: (index, milliseconds, done) => travel(map, index, milliseconds, done),
    stop: () => stopTravel(map),
    light: (ranks) => {
      map.lit = ranks;
      drawLights(map);
    },
  };
}

// The picture and the layers over it. `gpus` are the picture's groups by rank.
function drawLayers(scene) {
  const { width, height } = scene.size;
  const drawn = scene.drawn ?? parseSvg(scene.map);
  const label = drawn.getAttribute("aria-label");
  for (const name of ["role", "aria-label"]) drawn.removeAttribute(name);
  const [boxes, marks, lights] = [0, 1, 2].map(() => makeSvg("g"));
  const shape = { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" };
  const over = makeSvg("svg", { class: "layer", ...shape }, [boxes, marks, lights]);
  const movers = makeSvg("svg", { class: "layer movers", ...shape });
  const groups = [...drawn.querySelectorAll(".gpu")];
  const gpus = new Map(groups.map((group) => [Number(group.dataset.rank), group]));
  const base = make("div", { class: "map-base", role: "group", "aria-label": label }, [
    drawn,
    ...sheets(scene, gpus),
  ]);
  const stage = make("div", { class: "map-stage" }, [base, over, movers]);
  stage.style.setProperty("--natural", width + "px");
  return { element: make("div", { class: "map-frame" }, [stage]), base, boxes, marks, lights, movers, gpus };
}

// Everything as it is after a hop.
function showRest(map, index) {
  touch(map, index, map.scene.hops[index]);
  map.movers.replaceChildren();
  const marks = map.scene.tokens ? tagsAtRest(map, index) : marksAtRest(map, index);
  map.marks.replaceChildren(...marks);
}

function travel(map, index, milliseconds, done) {
  stopTravel(map);
  const land = () => {
    showRest(map, index);
    done();
  };
  if (startTravel(map, index, milliseconds, land)) touch(map, index - 1, map.scene.hops[index]);
  else land();
}

// GPUs touched up to a hop are drawn again, dark, over the map's own; those that `active` moves between are lit.
function touch(map, index, active) {
  for (const [rank, first] of map.since.touched) {
    const clone = map.clones.get(rank);
    if (first <= index && !clone) addClone(map, rank);
    else if (first > index && clone) {
      clone.remove();
      map.clones.delete(rank);
    }
  }
  const ends = new Set(active.moves.flatMap((move) => [move.src, move.dst]));
  for (const [rank, clone] of map.clones) clone.classList.toggle("active", ends.has(rank));
}

function addClone(map, rank) {
  if (!map.gpus.has(rank)) return;
  const clone = map.gpus.get(rank).cloneNode(true);
  for (const name of ["role", "tabindex", "aria-label", "data-rank"]) clone.removeAttribute(name);
  clone.setAttribute("class", "gpu touched");
  map.clones.set(rank, clone);
  map.boxes.append(clone);
}

// Outlines over the map: a group that is lit, and the GPU that is pointed at or focused.
function drawLights(map) {
  const outlines = (ranks, look) =>
    ranks
      .filter((rank) => map.scene.boxes.has(rank))
      .map((rank) => {
        const { x, y, width, height } = map.scene.boxes.get(rank);
        const size = { x: x - 2, y: y - 2, width: width + 4, height: height + 4, rx: 10 };
        return makeSvg("rect", { class: look, ...size });
      });
  const pointed = map.cursor === null ? [] : [map.cursor];
  map.lights.replaceChildren(...outlines(map.lit, "lit-box"), ...outlines(pointed, "cursor-box"));
}

// A map wider than its frame starts where the token does.
export function centerHome(scene, element) {
  const box = scene.boxes.get(scene.home);
  if (box && element.scrollWidth > element.clientWidth) element.scrollLeft = box.x - element.clientWidth / 2;
}
