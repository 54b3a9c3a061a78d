// Where everything of the map stands in a window: rows that a hop needs are open, others close when there is
// no room, and runs of closed rows fold to one line. All lengths are pixels.

const HEADER = 20;
const BAND = { head: 20, foot: 8, gap: 8 };
const CLOSED = { good: 17, most: 17, least: 13 };
const CLOSED_GAP = 2;
const OVER_FIRST = 0.65;
const FOLD_FROM = 2;
const MAX_REACH = 24;
const PITCH = 128;
const WIDE = 560;
const LEFT = { wide: 75, narrow: 46 };
const RIGHT = { totals: 156, plain: 10, narrow: 6 };

// The smallest sizes that read well, the largest that look well, and how far they shrink before all is scaled.
const BOX = { good: 44, most: 76, alone: 108, least: 15, tolerable: 36 };
const BUSY = { good: 40, most: 90, least: 12 };
const QUIET = { good: 8, most: 20, least: 3 };

// Room beside the boxes: for names of lines and, where lines close, for their totals.
export function margins(width, totals) {
  if (width < WIDE) return { left: LEFT.narrow, right: RIGHT.narrow };
  return { left: LEFT.wide, right: totals ? RIGHT.totals : RIGHT.plain };
}

// The map in a window. `lines` as `linesOf` gives them; `needs` are { hop, layer } as `needsOf` gives, and
// `opened`, lines opened by hand. At level "cluster" every line is closed. `frame` is { width, height }.
export function layOut(lines, columns, needs, frame, level) {
  const plans = plansOf(lines, needs, level);
  const bands = bandsOf(lines);
  const tried = plans.map((plan) => roomiest(lines, plan, bands, frame));
  const chosen = tried.find(fits) ?? tried.at(-1);
  return place(lines, columns, chosen, frame);
}

// Boxes may be a little lower before more rows close, and before closed ones fold.
function fits({ short, sizes, plan }) {
  return short <= 0 || (plan.lenient && sizes.box >= BOX.tolerable);
}

// A plan that folds keeps as many closed rows beside the open ones as there is room for.
function roomiest(lines, plan, bands, frame) {
  const first = sized(lines, plan, bands, frame);
  if (!plan.fold || first.short > 0) return first;
  let best = first;
  for (let reach = 1; reach < MAX_REACH; reach++) {
    const next = sized(lines, { ...plan, keep: around(plan, reach) }, bands, frame);
    if (next.short > 0) break;
    best = next;
  }
  return best;
}

function around({ open, keep = new Set() }, reach) {
  const near = new Set(keep);
  for (const at of [...open, ...keep]) for (let i = -reach; i <= reach; i++) near.add(at + i);
  return near;
}

// What may be open, from the most generous to what the hop needs alone.
function plansOf(lines, { hop, layer, opened }, level) {
  const all = lines.map((_, at) => at).filter((at) => lines[at].seats.length);
  const open = (wanted) => new Set(all.filter((at) => wanted.open.has(at) || opened.has(at)));
  if (level === "cluster") {
    return [
      { open: new Set(opened), busy: new Set(), fold: false },
      { open: new Set(opened), busy: new Set(), fold: true, keep: hop.open },
    ];
  }
  return [
    { open: new Set(all), busy: new Set([...all, ...layer.busy]), fold: false, lenient: true },
    { open: open(layer), busy: layer.busy, fold: false, lenient: true },
    { open: open(layer), busy: layer.busy, fold: true },
    { open: open(hop), busy: hop.busy, fold: false, lenient: true },
    { open: open(hop), busy: hop.busy, fold: true },
  ];
}

// Stages as bands: lines in a row with the same runs of stages. A mesh of one stage has none.
function bandsOf(lines) {
  const stages = new Set(lines.flatMap((line) => line.segments.map(({ stage }) => stage)));
  const many = stages.size > 1;
  return lines.map((line) => (many && line.segments.length ? JSON.stringify(line.segments) : ""));
}

const SIZES = { busy: BUSY, quiet: QUIET, closed: CLOSED };

// The plan as items from top to bottom, with sizes between good and most, or as small as it takes.
function sized(lines, plan, bands, { width, height }) {
  const items = itemsOf(lines, plan, bands);
  const open = items.filter((item) => item.kind === "open").length;
  const most = open > 2 || width < WIDE ? BOX.most : BOX.alone;
  const kinds = { box: { ...BOX, most }, ...SIZES };
  const at = (name, share) => between(kinds, name, share);
  const overFirst = plan.busy.has(-1);
  const total = (sizes) => measure(items, { ...sizes, overFirst });
  const good = total(at("good", 0));
  const end = good > height ? "least" : "most";
  const far = total(at(end, 1));
  const share = far === good ? 1 : Math.min(1, (height - good) / (far - good));
  const sizes = at(end, share);
  return { items, plan, sizes: { ...sizes, overFirst }, short: good - height, total: total(sizes) };
}

// Sizes on the way from good to the least or the most.
function between(kinds, end, share) {
  const entries = Object.entries(kinds).map(([name, size]) => {
    const far = size[end === "good" ? "good" : end];
    return [name, size.good + (far - size.good) * share];
  });
  return Object.fromEntries(entries);
}

function itemsOf(lines, plan, bands) {
  const items = [];
  const kindOf = (at) => (plan.open.has(at) ? "open" : "closed");
  const known = (at) => lines[at].seats.length > 0;
  const folds = (at) => !known(at) || (plan.fold && !plan.open.has(at) && !plan.keep?.has(at));
  for (let at = 0; at < lines.length; at++) {
    const last = items.at(-1);
    const same = last?.band === bands[at] || !lines[at].seats.length || last?.band === undefined;
    if (folds(at) && last?.kind === "run" && same) last.lines.push(at);
    else if (folds(at)) items.push({ kind: "run", lines: [at], band: bands[at] });
    else items.push({ kind: kindOf(at), lines: [at], band: bands[at], busy: plan.busy.has(at) });
  }
  return items.flatMap((item) => unfolded(item, lines, plan));
}

// A run of one known line is that line, closed: its name says more than "1 node".
function unfolded(item, lines, plan) {
  const known = item.lines.every((at) => lines[at].seats.length);
  if (item.kind !== "run" || !known || item.lines.length >= FOLD_FROM) return [item];
  return item.lines.map((at) => ({ kind: "closed", lines: [at], band: item.band, busy: plan.busy.has(at) }));
}

function gapAfter(item, next, { busy, quiet }) {
  if (item.busy) return busy;
  return item.kind === "open" || next?.kind === "open" ? quiet : CLOSED_GAP;
}

// Room over the first row: the names of the rails and, where links run there, a gutter.
function firstY(items, { busy, overFirst }) {
  return HEADER + (overFirst && !items[0]?.band ? busy * OVER_FIRST : 0);
}

function measure(items, sizes) {
  let y = firstY(items, sizes);
  let band = "";
  items.forEach((item, i) => {
    if (item.band !== band) {
      y += (band ? BAND.foot : 0) + (item.band ? BAND.gap + BAND.head : 0);
      band = item.band;
    }
    y += item.kind === "open" ? sizes.box : sizes.closed;
    if (i < items.length - 1) y += gapAfter(item, items[i + 1], sizes);
  });
  const last = items.at(-1);
  // Under the last row arcs may run.
  return y + (band ? BAND.foot : 0) + (last?.busy ? sizes.busy * OVER_FIRST : 4);
}

function place(lines, columns, { items, sizes, total }, frame) {
  const totals = items.some((item) => item.kind === "closed") && frame.width >= WIDE;
  const { left, right } = margins(frame.width, totals);
  const pitch = Math.min(PITCH, (frame.width - left - right) / columns);
  const width = pitch - Math.min(14, Math.max(3, pitch * 0.13));
  const grid = { left, pitch, width, columns, right: left + pitch * columns };
  const found = { ...grid, height: Math.max(total, frame.height), total, totals, rows: [], bands: [] };
  const top = Math.max(0, (frame.height - total) / 2);
  const walk = { y: top + firstY(items, sizes), band: "" };
  found.top = top;
  items.forEach((item, i) => {
    turnBand(walk, item, found, lines);
    const height = item.kind === "open" ? sizes.box : sizes.closed;
    found.rows.push({ ...item, y: walk.y, height });
    walk.y += height;
    if (i < items.length - 1) walk.y += gapAfter(item, items[i + 1], sizes);
  });
  turnBand(walk, { band: "" }, found, lines);
  found.bottom = Math.max(walk.y, found.top + total);
  found.boxes = boxesOf(found, lines);
  return found;
}

// Closes the band that is open and opens the next one.
function turnBand(walk, item, found, lines) {
  if (item.band === walk.band) return;
  if (walk.band) {
    const last = found.rows.at(-1);
    const bottom = last.y + last.height + BAND.foot;
    for (const each of found.bands) if (each.bottom === undefined) each.bottom = bottom;
    walk.y += BAND.foot;
  }
  if (item.band) {
    walk.y += BAND.gap;
    const { segments } = lines[item.lines[0]];
    for (const segment of segments)
      found.bands.push({ ...segment, whole: segments.length === 1, top: walk.y });
    walk.y += BAND.head;
  }
  walk.band = item.band;
}

// The place of every GPU whose line is shown, open or closed.
function boxesOf({ rows, left, pitch, width }, lines) {
  const boxes = new Map();
  rows.forEach((row, at) => {
    if (row.kind === "run") return;
    for (const { rank, column } of lines[row.lines[0]].seats) {
      const x = left + column * pitch;
      boxes.set(rank, { x, y: row.y, width, height: row.height, column, row: at, open: row.kind === "open" });
    }
  });
  return boxes;
}

// The free strip above or below a row, in which links run.
export function gutter(layout, row, below) {
  const { rows, top } = layout;
  const { y, height } = rows[row];
  if (!below) {
    const before = rows[row - 1];
    return { top: before ? before.y + before.height : top + HEADER - 6, bottom: y };
  }
  const next = rows[row + 1];
  return { top: y + height, bottom: next ? next.y : Math.max(layout.bottom, y + height + 12) };
}
