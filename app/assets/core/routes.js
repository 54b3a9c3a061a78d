// The path of each transfer over the map: arcs along a row, straight down a rail, and between rows further
// apart through the gutters, never across a box.

import { hubsOf } from "./lines.js";
import { gutter } from "./layout.js";

const RADIUS = 6;
const LANE = 5;
const NUDGE = 8;
const ARC = { low: 9, high: 34, margin: 5 };

// One route for each move: { d, points, end: { x, y, angle }, gutter, y, straight }, or null where an end
// is not shown. `home` says on which side arcs of other rows run: away from it.
export function routesOf(moves, layout, home) {
  const { boxes } = layout;
  const hubs = hubsOf(moves);
  const lanes = lanesOf(moves, hubs, boxes);
  const homeRow = boxes.get(home)?.row ?? 0;
  return moves.map((move, i) => {
    const [from, to] = [boxes.get(move.src), boxes.get(move.dst)];
    if (!from || !to || from === to) return null;
    if (from.row === to.row) return arc(layout, from, to, from.row < homeRow);
    const forth = hubs[i] === move.src;
    const found = between(layout, forth ? from : to, forth ? to : from, lanes[i]);
    const points = forth ? found.points : found.points.toReversed();
    return { ...found, points, d: rounded(points), end: endOf(points) };
  });
}

// Links of one hub, in one direction, side by side: their place and how many they are. Those that go furthest
// aside leave on the outer edge and turn first, so that none crosses another.
function lanesOf(moves, hubs, boxes) {
  const groups = new Map();
  moves.forEach((move, i) => {
    const [hub, leaf] = [boxes.get(hubs[i]), boxes.get(hubs[i] === move.src ? move.dst : move.src)];
    if (!hub || !leaf || hub.row === leaf.row) return;
    const key = hubs[i] + (leaf.row > hub.row ? " down" : " up");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push({ i, aside: leaf.x - hub.x, far: Math.abs(leaf.row - hub.row) });
  });
  const lanes = [];
  for (const group of groups.values()) {
    group.sort((a, b) => a.aside - b.aside || a.far - b.far);
    const depth = [...group].sort((a, b) => Math.abs(b.aside) - Math.abs(a.aside) || b.far - a.far);
    group.forEach((each, at) => {
      lanes[each.i] = { at, of: group.length, depth: depth.indexOf(each) };
    });
  }
  return lanes;
}

// From a hub to a leaf in another row.
function between(layout, hub, leaf, lane) {
  const down = leaf.row > hub.row;
  const space = gutter(layout, hub.row, down);
  const step = Math.min(LANE, (hub.width - 8) / lane.of);
  const x = hub.x + hub.width / 2 + (lane.at - (lane.of - 1) / 2) * step;
  const from = { x, y: down ? hub.y + hub.height : hub.y };
  const room = space.bottom - space.top;
  const deep = ((lane.depth + 1) * Math.min(room, LANE * (lane.of + 1))) / (lane.of + 1);
  const turn = down ? space.top + deep : space.bottom - deep;
  const near = Math.abs(leaf.row - hub.row) === 1;
  const middle = leaf.x + leaf.width / 2;
  const seen = { gutter: space, y: turn };
  if (near && leaf.column === hub.column) {
    return { ...seen, y: (space.top + space.bottom) / 2, points: straight(from, leaf, down), straight: true };
  }
  if (near) {
    const end = { x: middle, y: down ? leaf.y : leaf.y + leaf.height };
    return { ...seen, points: [from, { x, y: turn }, { x: middle, y: turn }, end], straight: false };
  }
  const side = sideOf(layout, hub, leaf);
  const aisle = side.x + ((lane.at % 3) - 1) * Math.min(2, (layout.pitch - layout.width) / 4);
  const y = leaf.y + leaf.height / 2 + ((lane.at % 3) - 1) * Math.min(4, leaf.height / 6);
  const points = [from, { x, y: turn }, { x: aisle, y: turn }, { x: aisle, y }, { x: side.edge, y }];
  return { ...seen, points, straight: false };
}

function straight(from, leaf, down) {
  return [from, { x: from.x, y: down ? leaf.y : leaf.y + leaf.height }];
}

// The gap between columns that a link comes down, and the edge of the box that it reaches.
function sideOf({ pitch, width, columns }, hub, leaf) {
  const gap = pitch - width;
  const left = leaf.column > hub.column || (leaf.column === hub.column && leaf.column === columns - 1);
  return left
    ? { x: leaf.x - gap / 2, edge: leaf.x }
    : { x: leaf.x + leaf.width + gap / 2, edge: leaf.x + leaf.width };
}

// Along a row, over or under the boxes between; further is deeper, so arcs from one GPU do not cross.
function arc(layout, from, to, above) {
  const space = gutter(layout, from.row, !above);
  const sign = to.x > from.x ? 1 : -1;
  const nudge = Math.min(NUDGE, from.width / 4) * sign;
  const [x0, x1] = [from.x + from.width / 2 + nudge, to.x + to.width / 2 - nudge];
  const share = Math.min(1, Math.abs(to.column - from.column) / Math.max(1, layout.columns - 1));
  const most = Math.max(4, Math.min(ARC.high, space.bottom - space.top - ARC.margin));
  const depth = Math.min(most, ARC.low + (most - ARC.low) * share) * (above ? -1 : 1);
  const y = above ? from.y : from.y + from.height;
  // A cubic reaches three quarters of the way to its control points.
  const bend = y + (depth * 4) / 3;
  const d = `M${round(x0)} ${round(y)}C${round(x0)} ${round(bend)} ${round(x1)} ${round(bend)} ${round(x1)} ${round(y)}`;
  const low = y + depth;
  const points = [
    { x: x0, y },
    { x: x0, y: low },
    { x: x1, y: low },
    { x: x1, y },
  ];
  const angle = above ? 90 : -90;
  return { d, points, end: { x: x1, y, angle }, gutter: space, y: low, straight: false };
}

function round(value) {
  return Math.round(value * 10) / 10;
}

// Straight pieces with round corners.
function rounded(points) {
  const [first, ...rest] = points;
  let d = `M${round(first.x)} ${round(first.y)}`;
  rest.forEach((point, i) => {
    const next = rest[i + 1];
    const before = points[i];
    if (!next) {
      d += `L${round(point.x)} ${round(point.y)}`;
      return;
    }
    const [a, b] = [towards(point, before), towards(point, next)];
    d += `L${round(a.x)} ${round(a.y)}Q${round(point.x)} ${round(point.y)} ${round(b.x)} ${round(b.y)}`;
  });
  return d;
}

// A little way from a corner to the next point.
function towards(corner, point) {
  const [dx, dy] = [point.x - corner.x, point.y - corner.y];
  const length = Math.hypot(dx, dy);
  const share = length ? Math.min(RADIUS, length / 2) / length : 0;
  return { x: corner.x + dx * share, y: corner.y + dy * share };
}

function endOf(points) {
  const [before, last] = points.slice(-2);
  const angle = (Math.atan2(last.y - before.y, last.x - before.x) * 180) / Math.PI;
  return { x: last.x, y: last.y, angle };
}
