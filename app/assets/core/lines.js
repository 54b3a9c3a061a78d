// The domains of a mesh as lines of the map: a node is a line, a wider NVLink domain wraps into several.

const MAX_COLUMNS = 18;
const MIN_PITCH = 36;

// How many GPUs stand beside each other in `room` pixels: the whole domain, or a divisor of it that fits.
export function columnsFor(size, room) {
  const most = Math.max(2, Math.min(MAX_COLUMNS, Math.floor(room / MIN_PITCH)));
  if (size <= most) return size;
  for (let columns = most; columns >= most / 2; columns--) if (size % columns === 0) return columns;
  return most;
}

// Lines from top to bottom. A line has `seats` with their column and `segments`, runs of one stage along it;
// domains that no token touches are one line without seats, `count` of them.
export function linesOf(rows, columns, word) {
  return rows.flatMap((domain) =>
    domain.seats.length ? wrapped(domain, columns, word) : [untouched(domain)],
  );
}

function untouched({ first, count }) {
  return { domain: first, count, seats: [], segments: [], label: "", experts: "" };
}

function wrapped(domain, columns, word) {
  const parts = new Map();
  for (const seat of domain.seats) {
    const part = Math.floor(seat.place / columns);
    if (!parts.has(part)) parts.set(part, []);
    parts.get(part).push({ ...seat, column: seat.place % columns });
  }
  return [...parts].map(([part, seats]) => ({
    domain: domain.first,
    count: 0,
    seats,
    segments: segmentsOf(seats),
    label: part ? "" : word + " " + domain.first.toLocaleString("en"),
    experts: part ? "" : domain.experts,
  }));
}

function segmentsOf(seats) {
  const found = [];
  for (const { stage, column } of seats) {
    const last = found.at(-1);
    if (last?.stage === stage) last.last = column;
    else found.push({ stage, first: column, last: column });
  }
  return found;
}

// The line of each rank.
export function lineOfRank(lines) {
  return new Map(lines.flatMap((line, at) => line.seats.map(({ rank }) => [rank, at])));
}

// Ranks between which a hop moves something.
export function endsOf(hop) {
  return new Set(hop.moves.flatMap(({ src, dst }) => [src, dst]));
}

// The end of each move that more of its hop's moves share: where their links come together.
export function hubsOf(moves) {
  const seen = new Map();
  for (const { src, dst } of moves) for (const rank of [src, dst]) seen.set(rank, (seen.get(rank) ?? 0) + 1);
  return moves.map(({ src, dst }) => (seen.get(dst) > seen.get(src) ? dst : src));
}

// Lines that a hop needs open, and the gutters that its links use: each is known by the line above it, -1 above
// the first. Arcs run away from the line of the token's home.
export function needsOf(hop, lineOf, homeLine = 0) {
  const open = new Set();
  const busy = new Set();
  const at = (rank) => lineOf.get(rank);
  for (const rank of [...endsOf(hop), ...ranksOfMarks(hop.marks)])
    if (at(rank) !== undefined) open.add(at(rank));
  hubsOf(hop.moves).forEach((hub, i) => {
    const { src, dst } = hop.moves[i];
    const [mine, other] = [at(hub), at(hub === src ? dst : src)];
    if (mine === undefined || other === undefined) return;
    const above = other === mine ? mine < homeLine : other < mine;
    busy.add(above ? mine - 1 : mine);
  });
  return { open, busy };
}

function ranksOfMarks(marks) {
  return [...marks.dots.map(({ rank }) => rank), ...(marks.tags_after?.keys() ?? [])];
}

// The needs of several hops together, as those of one layer.
export function joinedNeeds(needs) {
  const open = new Set();
  const busy = new Set();
  for (const need of needs) {
    for (const line of need.open) open.add(line);
    for (const line of need.busy) busy.add(line);
  }
  return { open, busy };
}

// Copies that reach each line over the whole trip.
export function copiesIn(hops, lineOf) {
  const found = new Map();
  for (const hop of hops) {
    for (const { dst } of hop.moves) {
      const line = lineOf.get(dst);
      if (line !== undefined) found.set(line, (found.get(line) ?? 0) + 1);
    }
  }
  return found;
}
