// The words that stand on the map by themselves: names of rails, stages and lines, totals of closed ones.
// Each is { x, y, text, look, anchor }, `y` its base line; `boxOf` is the room that it takes.

const LETTER = 6.7;
const SIZE = 12;
const MIN_RAIL = 48;
const COUNT = { gpus: 46, inset: 12 };

export function boxOf({ x, y, text, anchor }) {
  const width = LETTER * text.length;
  const left = anchor === "end" ? x - width : anchor === "middle" ? x - width / 2 : x;
  return { x: left, y: y - SIZE + 2, width, height: SIZE + 2 };
}

// `words` are { domain, stages, copies }: what a domain is called, the layers of each stage, copies into a line.
export function labelsOf(layout, lines, words) {
  return [
    ...railLabels(layout, lines),
    ...layout.bands.map((band) => bandLabel(layout, band, words)),
    ...layout.rows.flatMap((row) => rowLabels(layout, row, lines, words)),
    ...(layout.totals ? heads(layout, lines) : []),
  ].filter((label) => label.text);
}

function railLabels({ left, pitch, width, columns, top, rows }, lines) {
  const wraps = lines.some((line, at) => at > 0 && line.seats.length && !line.label);
  if (wraps || !rows.some((row) => row.kind !== "run")) return [];
  const word = pitch >= MIN_RAIL ? "rail " : "";
  return Array.from({ length: columns }, (_, column) => ({
    x: left + column * pitch + width / 2,
    y: top + 13,
    text: word + column,
    look: "soft",
    anchor: "middle",
  }));
}

function bandLabel({ left, pitch }, { stage, first, last, top, whole }, { stages }) {
  const room = (whole ? Infinity : (last - first + 1) * pitch - 8) / LETTER;
  const name = "Stage " + stage;
  const text = name + "  " + stages[stage];
  const x = whole ? 12 : left + first * pitch;
  return {
    x,
    y: top + 15,
    text: text.length <= room ? text : name,
    look: "band",
    bold: name.length,
    anchor: "start",
  };
}

function rowLabels(layout, row, lines, words) {
  if (row.kind === "run") return [runLabel(layout, row, lines, words)];
  const [at] = row.lines;
  const y = row.y + row.height / 2 + 4;
  const name = {
    x: layout.left - 9,
    y,
    text: shortName(layout, lines[at].label),
    look: "name",
    anchor: "end",
  };
  return [
    ...(lines[at].label ? [name] : []),
    ...(layout.totals ? totalsOf(layout, lines[at], words.copies.get(at) ?? 0, y) : []),
  ];
}

// On a narrow window a long name is its number.
function shortName({ left }, label) {
  return label.length * LETTER <= left - 6 ? label : label.replace(/^\D+/, "");
}

function totalsOf({ right }, line, copies, y) {
  return [
    { x: right + COUNT.inset, y, text: line.experts, look: "soft", anchor: "start" },
    { x: right + 146, y, text: copies.toLocaleString("en"), look: "soft", anchor: "end" },
  ].filter((each) => each.text);
}

function heads({ right, top }, lines) {
  const held = lines.some((line) => line.experts) ? "experts" : "";
  return [
    { x: right + COUNT.inset, y: top + 13, text: held, look: "soft", anchor: "start" },
    { x: right + 146, y: top + 13, text: "copies in", look: "soft", anchor: "end" },
  ];
}

function runLabel({ left, right }, row, lines, words) {
  return {
    x: (left + right) / 2,
    y: row.y + row.height / 2 + 4,
    text: runText(row.lines, lines, words),
    look: "soft",
    anchor: "middle",
  };
}

// Lines that are folded to one: domains that no token ever touches, and domains that this hop leaves alone.
export function runText(members, lines, { domain, copies }) {
  const plural = (count) => count.toLocaleString("en") + " " + domain + (count === 1 ? "" : "s");
  const far = members.reduce((total, at) => total + lines[at].count, 0);
  const known = members.filter((at) => lines[at].seats.length);
  const domains = new Set(known.map((at) => lines[at].domain)).size;
  const into = known.reduce((total, at) => total + (copies.get(at) ?? 0), 0);
  if (!known.length) return plural(far) + " not touched";
  const { seats } = lines[known[0]];
  const gpus = known.reduce((total, at) => total + lines[at].seats.length, 0);
  const name = known.some((at) => !lines[at].label)
    ? gpus + " GPUs from " + seats[0].rank
    : plural(domains + far);
  return (
    name +
    ", not in this hop: " +
    (into ? into.toLocaleString("en") + " copies in the trip" : "no copy in the trip")
  );
}
