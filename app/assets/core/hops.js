// Hops of a trip: their groups on the strip, their numbers, and when each GPU is first marked.

// A hop number from an address or a control, brought into the trip.
export function clampHop(value, count) {
  const number = Number.parseInt(value, 10);
  return Number.isNaN(number) ? 0 : Math.min(Math.max(number, 0), count - 1);
}

// For each rank, the first hop whose marks name it; `ranksOf(marks)` reads them.
export function firstHops(hops, ranksOf) {
  const since = new Map();
  hops.forEach((hop, index) => {
    for (const rank of ranksOf(hop.marks)) if (!since.has(rank)) since.set(rank, index);
  });
  return since;
}

export function ranksSince(since, index) {
  return [...since].filter(([, hop]) => hop <= index).map(([rank]) => rank);
}

// Groups of the strip: one per layer, pipeline sends between, landing and LM head at the ends.
export function stripGroups(hops) {
  const groups = [];
  for (const hop of hops) {
    const label = groupLabel(hop);
    const last = groups.at(-1);
    if (last?.label === label) last.hops.push(hop);
    else groups.push({ label, hops: [hop] });
  }
  return groups;
}

function groupLabel(hop) {
  if (hop.part === "land" || hop.part === "embedding") return "land";
  if (hop.kind === "pp_send") return "";
  if (hop.part === "lm_head") return "head";
  return "layer " + hop.layer;
}

// The label of a group: on a dense strip a layer is its number alone.
export function shortLabel(label, roomy) {
  return roomy ? label : label.replace("layer ", "");
}
