// One token's marks on the map: links, where it is, who keeps its K/V, relays, and the bytes of crossings.

import { chipBox } from "../core/geometry.js";
import { ranksSince } from "../core/hops.js";
import { makeSvg } from "../shell/dom.js";

const MAX_CHIPS = 3;
const DOT_RADIUS = { home: 8, relay: 5 };
const SQUARE = 12;

// All marks after a hop.
export function marksAtRest(map, index) {
  const hop = map.scene.hops[index];
  return [
    ...links(hop),
    ...kvMarks(map, index),
    ...relayLabels(map, hop),
    ...dots(map, hop.marks.dots),
    ...chips(map, hop),
  ];
}

// All marks while a hop travels: as before it, but for dots that leave `sources`.
export function marksGoing(map, index, sources) {
  const hop = map.scene.hops[index];
  const before = map.scene.hops[index - 1].marks.dots;
  const staying = new Set(hop.marks.dots.map(({ rank }) => rank));
  const stays = ({ rank }) => staying.has(rank) || !sources.has(rank);
  return [
    ...links(hop),
    ...kvMarks(map, index - 1),
    ...relayLabels(map, hop),
    ...dots(map, before.filter(stays)),
  ];
}

// The token, its K/V or an expert's weights on their way, around the origin.
export function tokenMark(hop) {
  if (hop.kind === "kv_exchange" || hop.kind === "weight_pull") {
    const look = hop.kind === "kv_exchange" ? "kv" : "weights";
    return square(look, -SQUARE / 2, -SQUARE / 2);
  }
  return makeSvg("circle", { class: "dot", r: 7 });
}

export function linkPath(move, more = "") {
  const look = "link " + move.tier + (move.on_rail ? "" : " off-rail") + more;
  return makeSvg("path", { d: move.path, class: look });
}

function links(hop) {
  return hop.moves.filter((move) => move.path !== null).map((move) => linkPath(move));
}

// Draws in the box of each rank that the map shows.
function inBoxes(map, ranks, draw) {
  return ranks.flatMap((rank) => {
    const box = map.scene.boxes.get(rank);
    return box ? [draw(box)] : [];
  });
}

function kvMarks(map, index) {
  const owners = ranksSince(map.since.owners, index);
  const owning = new Set(owners);
  const copies = ranksSince(map.since.copies, index).filter((rank) => !owning.has(rank));
  const mark = (look) => (box) => square(look, box.x + box.width - 20, box.y + 8);
  return [...inBoxes(map, owners, mark("kv")), ...inBoxes(map, copies, mark("kv copy"))];
}

function square(look, x, y) {
  return makeSvg("rect", { class: look, x, y, width: SQUARE, height: SQUARE, rx: 2 });
}

function dots(map, standing) {
  return standing.flatMap(({ rank, state }) => inBoxes(map, [rank], (box) => dot(box, rank, state)));
}

function dot(box, rank, state) {
  return makeSvg("circle", {
    class: "dot " + state,
    cx: box.x + box.width - 14,
    cy: box.y + 36,
    r: DOT_RADIUS[state] ?? 6,
    "data-rank": rank,
  });
}

function relayLabels(map, hop) {
  return inBoxes(map, hop.marks.relays, (box) =>
    makeSvg("text", { class: "relay", x: box.x + 9, y: box.y + 39, text: "relay" }),
  );
}

// Bytes beside the first links that cross, in the gutter at the far end.
function chips(map, hop) {
  const { boxes, size } = map.scene;
  const crossing = hop.moves.filter((move) => move.tier === "ib" && move.path !== null);
  return crossing.slice(0, MAX_CHIPS).map((move) => {
    const [from, to] = [boxes.get(move.src), boxes.get(move.dst)];
    const [near, far] = hop.kind === "combine" ? [to, from] : [from, to];
    const text = "IB · " + move.bytes_text;
    const { x, y, width, height } = chipBox(near, far, text, size.width);
    return makeSvg("g", { class: "chip" }, [
      makeSvg("rect", { x, y, width, height, rx: height / 2 }),
      makeSvg("text", { x: x + width / 2, y: y + 14, text }),
    ]);
  });
}
