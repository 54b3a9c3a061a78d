// Words on the map: what a link carries, in the gap that it crosses, beside it and never over a box or
// over other words.

const MAX_CAPTIONS = 3;
const PILL = { letter: 6.5, padding: 18, height: 20, aside: 18 };
const WIDE = 560;
const STEP = 12;
const OVER_LINK = 150;
const MAX_TRIED = 6;
const KB = 1e4;
const UNITS = [
  ["GB", 1e9],
  ["MB", 1e6],
];
const LINKS = { nvlink: "NVLink", ib: "InfiniBand" };

// Bytes as the engine writes them.
export function bytesText(bytes) {
  for (const [unit, scale] of UNITS) if (bytes >= scale) return digits(bytes / scale) + " " + unit;
  return bytes >= KB ? digits(bytes / 1000) + " kB" : bytes.toLocaleString("en") + " B";
}

function digits(value) {
  return String(Number(value.toPrecision(3)));
}

export function overlaps(a, b, margin = 2) {
  return (
    a.x < b.x + b.width + margin &&
    b.x < a.x + a.width + margin &&
    a.y < b.y + b.height + margin &&
    b.y < a.y + a.height + margin
  );
}

// Captions of a hop: { x, y, width, height, text, tier, phase, move }; `move` is the one that it stays beside,
// null for the words of several. `taken` are boxes of other words, `bounds` the room: { left, right }.
export function captionsOf(moves, routes, taken, bounds) {
  const groups = groupsOf(moves, routes, bounds.right - bounds.left >= WIDE);
  const placed = [];
  for (const group of groups) {
    const box = findPlace(group, routes, [...taken, ...placed], bounds);
    if (box) placed.push(box);
  }
  return placed;
}

// One caption for each of a few links; else one for all that go over a kind of link in one phase.
function groupsOf(moves, routes, wide) {
  const shown = moves.map((move, at) => ({ move, at })).filter(({ at }) => routes[at]);
  if (shown.length <= MAX_CAPTIONS) {
    return shown.map(({ move, at }) => ({
      tier: move.tier,
      phase: move.phase,
      at,
      members: [at],
      text: words(move, wide),
    }));
  }
  const groups = new Map();
  for (const { move, at } of shown) {
    const key = move.phase + move.tier;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(at);
  }
  const joined = [...groups.values()].map((members) => trunk(members, moves, wide));
  return joined.sort((a, b) => (a.tier > b.tier) - (a.tier < b.tier)).slice(0, MAX_CAPTIONS);
}

// A relay's second leg says that it is one.
const BY_RELAY = { forward: "relayed over ", sum: "summed, over " };

function words(move, wide) {
  const parts = [move.bytes_text, move.time];
  return (wide ? [(BY_RELAY[move.role] ?? "") + LINKS[move.tier], ...parts] : parts).join(" · ");
}

function trunk(members, moves, wide) {
  const [first] = members.map((at) => moves[at]);
  const sum = members.reduce((total, at) => total + moves[at].bytes, 0);
  const same = members.every((at) => moves[at].bytes === first.bytes);
  const many = members.length === 1 ? words(first, wide) : sumText(members.length, first, same, sum);
  return { tier: first.tier, phase: first.phase, at: members[0], members, text: many };
}

function sumText(count, first, same, sum) {
  return same ? `${count} × ${first.bytes_text} = ${bytesText(sum)}` : `${count} copies, ${bytesText(sum)}`;
}

// In the gutter of its link, or of one of several: right of the end, or the free place that is nearest.
function findPlace(group, routes, taken, bounds) {
  const { tier, phase, at, members, text } = group;
  const several = members.length > 1;
  const width = PILL.letter * text.length + PILL.padding;
  if (width > bounds.right - bounds.left) return null;
  let best = null;
  for (const member of members.slice(0, MAX_TRIED)) {
    best = nearest(routes[member], { width, several, taken, bounds, routes, best });
  }
  return best && { ...best, text, tier, phase, at, move: several ? null : at };
}

// The cheapest free place along a route's gutter, where it is better than `best`.
function nearest(route, { width, several, taken, bounds, routes, best }) {
  const { top, bottom } = route.gutter;
  if (bottom - top < PILL.height + 2) return best;
  const wanted = wantedX(route, several);
  let found = best;
  for (const y of heights(top, bottom)) {
    for (let x = bounds.left; x <= bounds.right - width; x += STEP) {
      const box = { x, y, width, height: PILL.height };
      const far = Math.abs(x - wanted) + Math.abs(y + PILL.height / 2 - route.y) * 2;
      if (found && found.cost <= far) continue;
      const cost = far + crowding(box, routes);
      if ((found && found.cost <= cost) || taken.some((other) => overlaps(box, other))) continue;
      found = { ...box, cost };
    }
  }
  return found;
}

// Places in a gutter from edge to edge.
function heights(top, bottom) {
  const room = bottom - top - PILL.height - 2;
  return [0, 0.25, 0.5, 0.75, 1].map((share) => top + 1 + room * share);
}

// Links that a caption would lie over cost it.
function crowding(box, routes) {
  let cost = 0;
  for (const route of routes)
    if (route?.points.some((point, i) => i && crosses(box, route.points[i - 1], point))) cost += OVER_LINK;
  return cost;
}

function crosses({ x, y, width, height }, a, b) {
  const apart = Math.max(a.x, b.x) < x - 3 || Math.min(a.x, b.x) > x + width + 3;
  return !apart && Math.max(a.y, b.y) > y - 3 && Math.min(a.y, b.y) < y + height + 3;
}

function wantedX({ points, straight, end }, several) {
  if (straight) return points[0].x + PILL.aside;
  return several ? Math.max(...points.map(({ x }) => x)) + PILL.aside : end.x + PILL.aside;
}
