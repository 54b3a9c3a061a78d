// What is said of hops, for screen readers and under the strip.

export function hopName(hop) {
  const words = hop.kind.replaceAll("_", " ").replace("kv", "K/V").replace("pp", "PP");
  const place = hop.layer ? "layer " + hop.layer + ", " : "";
  const crosses = hop.crossings ? ", crosses " + hop.crossings + " times" : "";
  return "Hop " + hop.index + ": " + place + words + crosses.replace(" 1 times", " once");
}

// What the ticks under the strip are: hops that cross, by axis, and how many copies they take across.
// `unit` is what is crossed, a node or an island.
export function crossingsText(hops, unit) {
  const word = (/^[aeiou]/.test(unit) ? "an " : "a ") + unit;
  const crossing = hops.filter((hop) => hop.crossings);
  if (!crossing.length) return "No hop of this trip crosses " + word + ".";
  const byAxis = new Map();
  for (const { axis } of crossing) byAxis.set(axis, (byAxis.get(axis) ?? 0) + 1);
  const parts = [...byAxis].map(([axis, count]) => count + " by " + axis.toUpperCase());
  const copies = crossing.reduce((sum, hop) => sum + hop.crossings, 0);
  const more = copies > crossing.length ? ", " + copies.toLocaleString("en") + " crossings in all" : "";
  return "Orange ticks: hops that cross " + word + ", " + parts.join(" and ") + more + ".";
}

// The trip in one sentence, and what to watch.
export function tripQuestion({ tokens, world_size, crossings_by_axis }) {
  const who = tokens ? tokens.length + " tokens" : "One token";
  const crossings = Object.values(crossings_by_axis).reduce((sum, count) => sum + count, 0);
  const gpus = world_size.toLocaleString("en") + (world_size === 1 ? " GPU" : " GPUs");
  const slow = crossings.toLocaleString("en") + (crossings === 1 ? " slow crossing" : " slow crossings");
  return who + ", " + gpus + ", " + (crossings ? slow : "no slow crossing");
}

// The mesh in one sentence, for a hop that needs so many of its GPUs.
export function meshQuestion({ world_size }, needed) {
  const all = world_size.toLocaleString("en") + (world_size === 1 ? " GPU" : " GPUs");
  return needed
    ? all + ", and this hop needs " + needed.toLocaleString("en")
    : all + ", and this hop moves nothing";
}

export function tripPromise({ tokens, token }) {
  if (tokens) return "Watch where they travel together, and who meets whom.";
  return (
    "Watch position " + token.position.toLocaleString("en") + " visit every GPU it needs, layer by layer."
  );
}

// A hop as the live line says it. Several tokens share comm ops, so theirs are not counted.
export function liveText(hop, last, unit) {
  const { tally, takers } = hop;
  const place = hop.layer ? "layer " + hop.layer + ". " : "";
  const alone = takers === undefined;
  const who = alone ? "" : " " + takers + (takers === 1 ? " token." : " tokens.");
  const ops = alone ? tally.comm_ops + " comm ops, " : "";
  return (
    `Hop ${hop.index} of ${last}, ${place}${hop.words.title}.${who} ${tally.gpus_touched} GPUs touched, ` +
    `${tally.node_crossings} ${unit} crossings, ${ops}${tally.bytes_text} moved.`
  );
}

// Where a hop is in the trip, above its title.
export function eyebrow(hop) {
  const words = [hop.layer ? "Layer " + hop.layer : "Before layer 1", hop.words.stop];
  if (hop.axis) words.push(hop.axis.toUpperCase() + " axis");
  if (hop.dead) words.push("dead work");
  return words.join(" · ");
}
