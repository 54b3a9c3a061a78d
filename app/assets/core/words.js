// What is said of hops, for screen readers and under the strip.

export function hopName(hop) {
  const words = hop.kind.replaceAll("_", " ").replace("kv", "K/V").replace("pp", "PP");
  const place = hop.layer ? "layer " + hop.layer + ", " : "";
  const crosses = hop.crossings ? ", crosses " + hop.crossings + " times" : "";
  return "Hop " + hop.index + ": " + place + words + crosses.replace(" 1 times", " once");
}

// Crossings of the whole trip by axis; `unit` is what is crossed, a node or an island.
export function crossingsText(byAxis, unit) {
  const word = (/^[aeiou]/.test(unit) ? "an " : "a ") + unit;
  const counts = Object.entries(byAxis).filter(([, count]) => count);
  if (!counts.length) return "No hop of this trip crosses " + word + ".";
  const parts = counts.map(([axis, count]) => count + " by " + axis.toUpperCase());
  return "Orange ticks are hops that cross " + word + ": " + parts.join(", ") + " in the whole trip.";
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
