// A hop as the player has it, for tests.
export function hop(index, kind, more) {
  return {
    index,
    kind,
    layer: 1,
    part: "attention",
    crossings: 0,
    moves: [],
    marks: { newly_touched: [], kv_owners: [], kv_copies: [], dots: [] },
    words: { title: kind },
    tally: { gpus_touched: 1, node_crossings: 2, comm_ops: 3, bytes: 4, bytes_text: "4 B" },
    ...more,
  };
}
