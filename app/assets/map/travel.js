// A hop on its way: each move rides its path in its own time, phase after phase, with its caption beside it.
// Frames touch the movers' layer only, but for what is summed and the links that begin.

import { progress, schedule } from "../core/motion.js";
import { makeSvg } from "../shell/dom.js";
import { dotPlace, isSum, marksGoing, sector, sectorPath, tokenMark } from "./marks.js";
import { tagsGoing, tokenRider } from "./token_tags.js";

const MAX_RIDERS = 160;
const GHOSTS = [
  { behind: 0.07, look: "ghost" },
  { behind: 0.14, look: "ghost far" },
];

// From the marks before a hop to those after it; `land()` draws these. False when nothing is seen to move.
export function startTravel(map, index, speed, land) {
  const hop = map.scene.hops[index];
  const { times, total } = schedule(hop.moves, speed);
  const seen = hop.moves.map((_, at) => at).filter((at) => map.routes[at]);
  if (!seen.length || index === 0) return false;
  const sums = sumsOf(map, hop);
  const riders = seen.slice(0, MAX_RIDERS).map((at) => riderOf(map, hop, at, times[at]));
  showGoing(map, index, riders, sums);
  const start = performance.now();
  const step = (now) => {
    const passed = Math.min(total, now - start);
    for (const rider of riders) place(map, rider, passed, sums);
    if (passed < total) map.frame = requestAnimationFrame(step);
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

function riderOf(map, hop, at, time) {
  const move = hop.moves[at];
  const path = makeSvg("path", { d: map.routes[at].d });
  const draw = () => (map.scene.tokens ? tokenRider(map, hop, move.rider) : tokenMark(map, hop, move));
  const ghosts = map.scene.tokens
    ? []
    : GHOSTS.map(({ look, behind }) => ({ behind, mark: makeSvg("g", { class: look }, [draw()]) }));
  const link = map.marks.querySelector(`[data-move="${at}"]`);
  const caption = map.captions.find((each) => each.move === at || (each.move === null && each.at === at));
  return {
    move,
    path,
    length: path.getTotalLength(),
    time,
    mark: draw(),
    ghosts,
    link,
    caption,
    arrived: false,
  };
}

// What is added up where: a share of the token that grows with each copy that arrives.
function sumsOf(map, hop) {
  const sums = new Map();
  if (map.scene.tokens) return sums;
  for (const move of hop.moves) {
    if (!isSum(move) || !map.layout.boxes.has(move.dst)) continue;
    const sum = sums.get(move.dst) ?? { total: move.role === "partial" ? 1 : 0, arrived: 0, own: 0 };
    sum.own = move.role === "partial" ? 1 : 0;
    sum.total += 1;
    sums.set(move.dst, sum);
  }
  for (const [rank, sum] of sums) {
    const { x, y, radius } = dotPlace(map.layout.boxes.get(rank));
    Object.assign(sum, {
      x,
      y,
      radius,
      mark: sector(x, y, radius, sum.own / sum.total, { class: "share sum" }),
    });
  }
  return sums;
}

function showGoing(map, index, riders, sums) {
  const sources = new Set(riders.map((rider) => rider.move.src));
  const marks = map.scene.tokens ? tagsGoing(map, index) : marksGoing(map, index, sources, sums);
  map.dots.replaceChildren(...marks, ...[...sums.values()].map((sum) => sum.mark));
  for (const rider of riders) rider.link?.classList.toggle("waiting", rider.time.start > 0);
  for (const caption of map.captions) caption.element.classList.toggle("waiting", caption.phase > 0);
  map.fitMovers();
  map.movers.replaceChildren(
    ...riders.flatMap((rider) => [...rider.ghosts.map((ghost) => ghost.mark), rider.mark]),
  );
}

function place(map, rider, passed, sums) {
  const { time, link, caption } = rider;
  const share = progress(passed, time);
  if (passed >= time.start && link?.classList.contains("waiting")) link.classList.remove("waiting");
  const point = put(rider.mark, rider, share);
  for (const ghost of rider.ghosts) put(ghost.mark, rider, share < 1 ? Math.max(0, share - ghost.behind) : 0);
  if (caption && passed >= time.start) {
    caption.element.classList.remove("waiting");
    ride(map, caption, rider, point);
  }
  if (share === 1 && !rider.arrived) arrive(map, rider, sums);
}

function stand(map, { move, mark }) {
  const box = map.layout.boxes.get(move.dst);
  if (map.scene.tokens || !box) return;
  const { x, y, radius } = dotPlace(box);
  const passes = map.scene.hops[map.index].marks.relays.includes(move.dst);
  const own = passes ? makeSvg("circle", { class: "dot relay", r: radius }) : mark.cloneNode(true);
  own.style.visibility = "visible";
  own.setAttribute("transform", `translate(${x} ${y})`);
  map.dots.append(own);
}

function put(mark, { path, length }, share) {
  mark.style.visibility = share > 0 && share < 1 ? "visible" : "hidden";
  const point = path.getPointAtLength(length * share);
  mark.setAttribute("transform", `translate(${point.x.toFixed(1)} ${point.y.toFixed(1)})`);
  return point;
}

// A caption goes along its gutter with the dot, and ends where it rests.
function ride(map, caption, { path, length }, point) {
  if (caption.move === null) return;
  const end = (caption.end ??= path.getPointAtLength(length));
  const { right } = map.layout;
  const wanted = caption.x + point.x - end.x;
  const x = Math.min(Math.max(wanted, 0), Math.max(caption.x, right - caption.width));
  caption.element.setAttribute("transform", `translate(${(x - caption.x).toFixed(1)} 0)`);
}

// What arrives is added where it is summed, and else stands there until the hop is over.
function arrive(map, rider, sums) {
  rider.arrived = true;
  const sum = sums.get(rider.move.dst);
  if (!sum || !isSum(rider.move)) {
    stand(map, rider);
    return;
  }
  sum.arrived += 1;
  const share = (sum.own + sum.arrived) / sum.total;
  sum.mark.lastChild.setAttribute("d", sectorPath(sum.x, sum.y, sum.radius, share));
}
