// The map's ground: bands of stages, rails, open and closed rows with their GPUs, folded runs.

import { makeSvg } from "../shell/dom.js";

const LETTER = 7.6;
const SMALL_LETTER = 6.7;
const WIDE = 52;
const ROOMY = 48;
const TALL = 36;
const CORNER = 8;

// Draws a layout; `gpus` are the groups of open rows' GPUs by rank, `rows` the groups of rows that can be opened.
// Without `experts` the boxes have room for what stands in them.
export function drawGround(layout, lines, labels, experts) {
  const gpus = new Map();
  const rows = new Map();
  const parts = [
    ...layout.bands.map((band) => bandRect(layout, band)),
    ...(layout.bands.length ? [] : layout.rows.map((row) => rowRect(layout, row))),
    ...railLines(layout),
    ...layout.rows.map((row, at) => drawRow(layout, row, at, { lines, gpus, rows, experts })),
    ...labels.map(drawLabel),
  ];
  return { parts: parts.filter(Boolean), gpus, rows };
}

function bandRect({ left, pitch, width, right }, { first, last, whole, top, bottom }) {
  const x = whole ? 0 : left + first * pitch - 4;
  const end = whole ? right + 6 : left + last * pitch + width + 4;
  return makeSvg("rect", { class: "f-band", x, y: top, width: end - x, height: bottom - top, rx: 10 });
}

// One stage has no bands: each row has its own ground.
function rowRect({ right, totals }, { kind, y, height }) {
  if (kind === "run") return null;
  const inset = kind === "open" ? 6 : 1;
  const width = right + (totals ? 152 : 4);
  return makeSvg("rect", { class: "f-band", x: 0, y: y - inset, width, height: height + 2 * inset, rx: 8 });
}

function railLines({ rows, columns, left, pitch, width }) {
  const first = rows.find((row) => row.kind !== "run");
  const last = rows.findLast((row) => row.kind !== "run");
  if (!first || first === last) return [];
  const d = Array.from({ length: columns }, (_, column) => {
    const x = left + column * pitch + width / 2;
    return `M${x.toFixed(1)} ${first.y.toFixed(1)}V${last.y.toFixed(1)}`;
  });
  return [makeSvg("path", { class: "rail-lines", d: d.join("") })];
}

function drawRow(layout, row, at, { lines, gpus, rows, experts }) {
  if (row.kind === "run") return drawRun(layout, row, at, lines, rows);
  const line = lines[row.lines[0]];
  if (row.kind === "closed") return drawClosed(layout, row, at, line, rows);
  const drawn = line.seats.map((seat) => {
    const group = drawGpu(layout.boxes.get(seat.rank), experts ? seat : { ...seat, experts: "" });
    gpus.set(seat.rank, group);
    return group;
  });
  return makeSvg("g", {}, drawn);
}

function drawGpu(box, { rank, tint, experts }) {
  const tall = box.height >= TALL;
  const wide = box.width >= WIDE;
  const size = tall && wide && box.height >= ROOMY ? 16 : 13;
  const inset = wide ? 7 : 4;
  const number = fitted(String(rank), box.width - inset - 4, LETTER * (size / 13));
  const y = tall ? box.y + size + (box.height >= ROOMY ? 5 : 2) : box.y + box.height / 2 + size * 0.36;
  const held = tall && wide ? expertText(experts, box.width - 12) : "";
  return makeSvg("g", { class: "gpu", "data-rank": rank }, [
    makeSvg("rect", {
      class: "f-tint" + tint + " s-edge",
      x: box.x,
      y: box.y,
      width: box.width,
      height: box.height,
      rx: Math.min(CORNER, box.height / 4),
    }),
    number
      ? makeSvg("text", {
          class: "f-soft number",
          x: box.x + inset,
          y,
          "font-size": size,
          text: number + " ",
        })
      : null,
    held
      ? makeSvg("text", {
          class: "f-soft",
          x: box.x + 7,
          y: box.y + box.height - (box.height >= ROOMY ? 9 : 4),
          "font-size": 12,
          text: held,
        })
      : null,
  ]);
}

// A number, or its last digits where it is too long.
function fitted(text, room, letter) {
  const most = Math.floor(room / letter);
  if (text.length <= most) return text;
  return most >= 3 ? "…" + text.slice(1 - most) : "";
}

// Experts, without their letter where that does not fit.
function expertText(experts, room) {
  return [experts, experts.replaceAll("E", "")].find((text) => text.length * SMALL_LETTER <= room) ?? "";
}

function drawClosed(layout, row, at, line, rows) {
  const cells = line.seats.map(({ rank }) => cellPath(layout.boxes.get(rank))).join("");
  const name = line.label || "GPUs " + line.seats[0].rank + "–" + line.seats.at(-1).rank;
  const group = makeSvg("g", { class: "row closed", "data-row": at, "data-name": name }, [
    makeSvg("rect", { class: "row-hit", x: 0, y: row.y - 1, width: layout.right, height: row.height + 2 }),
    makeSvg("path", { class: "f-box s-edge", d: cells }),
  ]);
  rows.set(at, group);
  return group;
}

// The outline of a closed GPU.
export function cellPath({ x, y, width, height }) {
  const [w, h] = [width.toFixed(1), (height - 4).toFixed(1)];
  return `M${x.toFixed(1)} ${(y + 2).toFixed(1)}h${w}v${h}h-${w}z`;
}

function drawRun(layout, row, at, lines, rows) {
  const { left, right } = layout;
  const y = row.y + row.height / 2;
  const known = row.lines.some((each) => lines[each].seats.length);
  const group = makeSvg(
    "g",
    { class: known ? "row run" : "run", "data-row": at, "data-name": "folded rows" },
    [
      makeSvg("rect", { class: "row-hit", x: 0, y: row.y, width: right, height: row.height }),
      makeSvg("path", { class: "run-line", d: `M${left} ${y}H${right}` }),
    ],
  );
  if (known) rows.set(at, group);
  return group;
}

function drawLabel({ x, y, text, look, bold, anchor }) {
  const words = bold
    ? [
        makeSvg("tspan", { class: "f-ink strong", text: text.slice(0, bold) }),
        makeSvg("tspan", { text: text.slice(bold) }),
      ]
    : [];
  const attributes = { x, y, class: "map-label " + look, "text-anchor": anchor, "font-size": 12 };
  return makeSvg("text", words.length ? attributes : { ...attributes, text }, words);
}
