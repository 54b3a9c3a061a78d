// The scene as the server sends it, read once: long lists come as columns (a list per field) and become rows.
// `layouts/compose/player_rows.py` has the fields of each row.

// Objects from columns: { src: [1, 2], dst: [3, 4] } gives [{ src: 1, dst: 3 }, { src: 2, dst: 4 }].
export function rowsOf(columns) {
  const fields = Object.entries(columns);
  const [, first] = fields[0];
  return first.map((_, at) => Object.fromEntries(fields.map(([name, values]) => [name, values[at]])));
}

// The trip with the GPUs of each domain, and each hop with its moves and marks as rows.
export function readScene(sent) {
  const rows = sent.rows.map((domain) => ({ ...domain, seats: rowsOf(domain.seats) }));
  return { ...sent, rows, hops: sent.hops.map(readHop) };
}

function readHop(hop) {
  const riders = hop.riders ? rowsOf(hop.riders) : [];
  const moves = rowsOf(hop.moves).map((move, at) => ({ ...move, rider: riders[at] ?? null }));
  return { ...hop, moves, marks: readMarks(hop.marks) };
}

function readMarks(marks) {
  const read = { ...marks, dots: rowsOf(marks.dots) };
  if (!marks.tags_after) return read;
  const emptied = marks.emptied.map((rank) => [rank, []]);
  return {
    ...read,
    tags_after: byRank(marks.tags_after),
    tags_during: new Map([...emptied, ...byRank(marks.tags_during)]),
    kv_tags: byRank(marks.kv_tags),
  };
}

function byRank(columns) {
  const found = new Map();
  for (const { rank, ...tag } of rowsOf(columns)) {
    if (!found.has(rank)) found.set(rank, []);
    found.get(rank).push(tag);
  }
  return found;
}
