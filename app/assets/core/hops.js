// Hops of a trip: their kinds on the strip, their numbers, and when each GPU is first marked.

// The short name of each kind on the strip, and the axis whose colour it has.
export const KINDS = {
  land: { short: "L", family: "rest" },
  all_gather: { short: "AG", family: "tp" },
  reduce_scatter: { short: "RS", family: "tp" },
  all_reduce: { short: "AR", family: "tp" },
  head_copy: { short: "HC", family: "tp" },
  logits_gather: { short: "LG", family: "tp" },
  kv_exchange: { short: "KV", family: "cp" },
  query_send: { short: "Q", family: "cp" },
  partials_return: { short: "O", family: "cp" },
  kv_transfer: { short: "KT", family: "cp" },
  dispatch: { short: "D", family: "ep" },
  combine: { short: "C", family: "ep" },
  weight_pull: { short: "W", family: "ep" },
  pp_send: { short: "PP", family: "pp" },
};

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
