// One token's marks on the map: where it is, who keeps its K/V, relays.

import { ranksSince } from "../core/hops.js";
import { dotRadius } from "../core/scales.js";
import { makeSvg } from "../shell/dom.js";

const HOME_RADIUS = 7;
const RING = 3.5;
const SQUARE = 12;
const WIDE = 52;
const TALL = 60;
const LOW = 36;
const WORDY = 60;
const SUMS = ["partial", "result", "sum", "output"];
const KV_KINDS = ["kv_exchange", "kv_transfer"];
const WEIGHTS = ["weight_pull", "weight_gather"];

// All marks after a hop.
export function marksAtRest(map, index) {
  const hop = map.scene.hops[index];
  return [...kvMarks(map, index), ...dots(map, hop, hop.marks.dots), ...relayWords(map, hop)];
}

// All marks while a hop travels: as before it, but for dots that leave `sources` or are being summed.
export function marksGoing(map, index, sources, sums) {
  const hop = map.scene.hops[index];
  const before = map.scene.hops[index - 1];
  const staying = new Set(hop.marks.dots.map(({ rank }) => rank));
  const stays = ({ rank }) => !sums.has(rank) && (staying.has(rank) || !sources.has(rank));
  return [
    ...kvMarks(map, index - 1),
    ...dots(map, before, before.marks.dots.filter(stays)),
    ...relayWords(map, hop),
  ];
}

export function isSum(move) {
  return SUMS.includes(move.role);
}

// The token, its K/V or an expert's weights on their way, around the origin: its area is its bytes.
export function tokenMark(map, hop, move) {
  const radius = dotRadius(move.bytes, map.scene.row_bytes);
  if (KV_KINDS.includes(hop.kind)) return square("kv", radius * 1.7);
  if (WEIGHTS.includes(hop.kind)) return square("weights", radius * 1.7);
  return makeSvg("circle", { class: "dot", r: radius });
}

function square(look, side) {
  return makeSvg("rect", { class: look, x: -side / 2, y: -side / 2, width: side, height: side, rx: 2 });
}

// Where the token's dot stands in a box, and how large it may be: beside the number, never over the experts.
export function dotPlace(box) {
  const radius = Math.min(HOME_RADIUS, box.height * 0.3, box.width * 0.17);
  const x = box.x + box.width - radius - RING - 3;
  if (box.height < LOW) return { x, y: box.y + box.height / 2, radius };
  if (box.width < WIDE) return { x, y: box.y + box.height - radius - RING - 3, radius };
  if (box.height >= TALL) return { x, y: box.y + box.height * 0.56 - 2, radius };
  return { x, y: box.y + radius + RING + 3, radius };
}

// The K/V's square: above the dot where there is room, else beside it.
function kvPlace(box) {
  const { x, y, radius } = dotPlace(box);
  const side = Math.min(SQUARE, 1.5 * radius);
  if (box.width < WIDE && box.height >= TALL)
    return { x: x - side / 2, y: y - radius - RING - side - 3, side };
  if (box.width < WIDE && box.height >= LOW) return { x: box.x + 3, y: box.y + box.height - side - 5, side };
  if (box.height >= TALL) return { x: box.x + box.width - side - 6, y: box.y + 6, side };
  return { x: x - radius - RING - side - 2, y: y - side / 2, side };
}

// Draws in the box of each rank that the map shows.
function inBoxes(map, ranks, draw) {
  return ranks.flatMap((rank) => {
    const box = map.layout.boxes.get(rank);
    return box ? [draw(box)] : [];
  });
}

function kvMarks(map, index) {
  const owners = ranksSince(map.since.owners, index);
  const owning = new Set(owners);
  const copies = ranksSince(map.since.copies, index).filter((rank) => !owning.has(rank));
  const mark = (look) => (box) => {
    const { x, y, side } = kvPlace(box);
    return makeSvg("rect", { class: look, x, y, width: side, height: side, rx: 2 });
  };
  return [...inBoxes(map, owners, mark("kv")), ...inBoxes(map, copies, mark("kv copy"))];
}

function dots(map, hop, standing) {
  const parts = standing.filter(({ state }) => state === "part").length;
  return standing.flatMap(({ rank, state }) =>
    inBoxes(map, [rank], (box) => dot(map, hop, box, { rank, state, parts })),
  );
}

function dot(map, hop, box, { rank, state, parts }) {
  const { x, y, radius } = dotPlace(box);
  const own = { "data-rank": rank };
  if (state === "part" && parts > 1) return sector(x, y, radius, 1 / parts, own);
  if (state === "relay") return makeSvg("circle", { class: "dot relay", cx: x, cy: y, r: radius, ...own });
  if (state === "home") {
    return makeSvg("g", own, [
      makeSvg("circle", { class: "home-ring", cx: x, cy: y, r: radius + RING }),
      makeSvg("circle", { class: "dot home", cx: x, cy: y, r: radius }),
    ]);
  }
  const arrived = hop.moves.find((move) => move.dst === rank);
  const size = arrived ? dotRadius(arrived.bytes, map.scene.row_bytes) : radius;
  return makeSvg("circle", { class: "dot " + state, cx: x, cy: y, r: Math.min(radius, size), ...own });
}

// A share of the token: its outline, and as much of it filled as is there.
export function sector(x, y, radius, share, more) {
  return makeSvg("g", { class: "share", ...more }, [
    makeSvg("circle", { class: "share-ring", cx: x, cy: y, r: radius }),
    makeSvg("path", { class: "dot part", d: sectorPath(x, y, radius, share) }),
  ]);
}

export function sectorPath(x, y, radius, share) {
  if (share >= 1)
    return `M${x - radius} ${y}a${radius} ${radius} 0 1 1 ${2 * radius} 0a${radius} ${radius} 0 1 1 ${-2 * radius} 0z`;
  const turn = 2 * Math.PI * share;
  const [end, far] = [[x + radius * Math.sin(turn), y - radius * Math.cos(turn)], share > 0.5 ? 1 : 0];
  return `M${x} ${y}V${y - radius}A${radius} ${radius} 0 ${far} 1 ${end[0].toFixed(2)} ${end[1].toFixed(2)}z`;
}

// The word "relay" in the boxes that have room for it.
function relayWords(map, hop) {
  return inBoxes(map, hop.marks.relays, (box) =>
    box.height >= WORDY && box.width >= WIDE
      ? makeSvg("text", {
          class: "relay",
          x: box.x + 7,
          y: box.y + 37,
          text: "relay",
        })
      : makeSvg("g"),
  );
}
