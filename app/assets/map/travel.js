// A hop on its way: each move rides its path, phase after phase. Frames touch the movers' layer only.

import { around } from "../core/geometry.js";
import { phaseCount, progress } from "../core/motion.js";
import { makeSvg } from "../shell/dom.js";
import { marksGoing, tokenMark } from "./marks.js";
import { tagsGoing, tokenRider } from "./token_tags.js";

const MAX_RIDERS = 160;
const MARGIN = 16;

// From the marks before a hop to those after it; `land()` draws these. False when nothing is seen to move.
export function startTravel(map, index, milliseconds, land) {
  const hop = map.scene.hops[index];
  const moves = hop.moves.filter((move) => move.path !== null).slice(0, MAX_RIDERS);
  if (!moves.length || !milliseconds || index === 0) return false;
  const riders = moves.map((move) => riderOf(map, hop, move));
  showGoing(map, index, riders);
  const phases = phaseCount(hop);
  const start = performance.now();
  const step = (now) => {
    const share = Math.min(1, (now - start) / milliseconds);
    for (const rider of riders) place(rider, progress(share, rider.phase, phases));
    if (share < 1) map.frame = requestAnimationFrame(step);
    else {
      map.frame = 0;
      land();
    }
  };
  map.frame = requestAnimationFrame(step);
  return true;
}

export function stopTravel(map) {
  if (map.frame) cancelAnimationFrame(map.frame);
  map.frame = 0;
}

function riderOf(map, hop, move) {
  const path = makeSvg("path", { d: move.path });
  const mark = map.scene.tokens ? tokenRider(map, hop, move.rider) : tokenMark(hop);
  return { path, length: path.getTotalLength(), phase: move.phase, from: move.src, mark };
}

function showGoing(map, index, riders) {
  const sources = new Set(riders.map((rider) => rider.from));
  const marks = map.scene.tokens ? tagsGoing(map, index) : marksGoing(map, index, sources);
  map.marks.replaceChildren(...marks);
  fitMovers(map);
  map.movers.replaceChildren(...riders.map((rider) => rider.mark));
}

// The layer that moves covers the links of the hop and no more, however tall the map.
function fitMovers(map) {
  const { width, height } = map.scene.size;
  const links = [...map.marks.querySelectorAll(".link")].map((link) => link.getBBox());
  const view = around(links, MARGIN);
  map.movers.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  Object.assign(map.movers.style, {
    left: (100 * view.x) / width + "%",
    top: (100 * view.y) / height + "%",
    width: (100 * view.width) / width + "%",
    height: (100 * view.height) / height + "%",
  });
}

function place(rider, share) {
  rider.mark.style.visibility = share > 0 ? "visible" : "hidden";
  const point = rider.path.getPointAtLength(rider.length * share);
  rider.mark.setAttribute("transform", `translate(${point.x.toFixed(1)} ${point.y.toFixed(1)})`);
}
