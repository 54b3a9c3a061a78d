// Several tokens on one map: whose tags stand on which GPU, at rest and while a hop travels.

// K/V tags of each rank after a hop, each as the last hop that changed them left them.
export function keptAt(hops, index) {
  const kept = new Map();
  for (const hop of hops.slice(0, index + 1)) {
    for (const [rank, tags] of hop.marks.kv_tags) kept.set(rank, tags);
  }
  return kept;
}

// Who stands where while a hop travels: everyone as before it, but for the ranks that some leave.
export function standing(hops, index) {
  const before = index ? hops[index - 1].marks.tags_after : [];
  return new Map([...before, ...hops[index].marks.tags_during]);
}

// Whether a move goes over a link, in either direction.
export function isOnLink(move, link) {
  if (!link) return false;
  return (move.src === link.src && move.dst === link.dst) || (move.src === link.dst && move.dst === link.src);
}
