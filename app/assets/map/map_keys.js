// Pointer and keys on the map: one listener for all of it; one GPU or row at a time is in the tab order.

import { neighbour } from "../core/geometry.js";
import { ZOOM_STEP } from "./sight.js";

const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

// `handlers` hear of a rank: `look` when it is pointed at or focused, `choose` when it is clicked; `leave` of
// none, `climb` of Escape where the map itself has nothing to leave.
export function listenToMap(map, handlers) {
  map.entry = map.scene.home;
  map.named = () => nameAll(map);
  const look = (rank) => {
    map.point(rank);
    handlers.look(rank);
  };
  const leave = () => {
    map.point(null);
    handlers.leave();
  };
  map.base.addEventListener("pointerover", (event) => {
    const rank = rankAt(event);
    if (rank !== null) look(rank);
  });
  map.base.addEventListener("focusin", (event) => {
    const rank = rankAt(event);
    if (rank === null) return;
    setEntry(map, rank);
    map.sight.bring(map.layout.boxes.get(rank));
    look(rank);
  });
  map.base.addEventListener("click", (event) => {
    const rank = rankAt(event);
    const row = rowAt(event);
    if (rank !== null) handlers.choose(rank);
    else if (row !== null) openRow(map, row);
  });
  map.base.addEventListener("keydown", (event) => onKey(map, handlers, event));
  map.base.addEventListener("pointerleave", leave);
  map.base.addEventListener("focusout", leave);
}

function rankAt(event) {
  const group = event.target.closest?.(".gpu");
  return group ? Number(group.dataset.rank) : null;
}

function rowAt(event) {
  const group = event.target.closest?.(".row");
  return group ? Number(group.dataset.row) : null;
}

// Names for screen readers, each time the ground is drawn.
function nameAll(map) {
  // Who speaks to the page says what stands in the box.
  for (const [rank, group] of map.gpus) {
    const [, held] = group.querySelectorAll("text");
    name(group, "GPU " + rank + (held ? " " + held.textContent : ""));
  }
  for (const group of map.rowGroups.values()) name(group, "Open " + group.dataset.name);
  if (!map.gpus.has(map.entry)) map.entry = map.gpus.has(map.scene.home) ? map.scene.home : undefined;
  setEntry(map, map.entry ?? map.gpus.keys().next().value);
  if (!map.gpus.size) map.rowGroups.values().next().value?.setAttribute("tabindex", "0");
}

function name(group, label) {
  group.setAttribute("role", "button");
  group.setAttribute("aria-label", label);
  group.setAttribute("tabindex", "-1");
}

function setEntry(map, rank) {
  if (map.entry !== undefined) map.gpus.get(map.entry)?.setAttribute("tabindex", "-1");
  map.entry = rank;
  map.gpus.get(rank)?.setAttribute("tabindex", "0");
}

// A row that the reader opens stays open; its first GPU gets the focus if the row had it.
export function openRow(map, at) {
  const row = map.layout.rows[at];
  const known = row.lines.filter((line) => map.lines[line].seats.length);
  for (const line of known) map.opened.add(line);
  const focused = map.rowGroups.get(at) === document.activeElement;
  map.refresh();
  if (focused) map.gpus.get(map.lines[known[0]].seats[0].rank)?.focus();
}

const ACTS = {
  f: (map) => map.sight.fit(),
  "+": (map) => map.sight.closer(ZOOM_STEP),
  "=": (map) => map.sight.closer(ZOOM_STEP),
  "-": (map) => map.sight.closer(1 / ZOOM_STEP),
};

function onKey(map, handlers, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const [rank, row] = [rankAt(event), rowAt(event)];
  const act = ACTS[event.key.toLowerCase()];
  if (event.key === "Enter" || event.key === " ") {
    if (rank !== null) handlers.choose(rank);
    else if (row !== null) openRow(map, row);
  } else if (event.key === "Escape") handlers.climb?.();
  else if (ARROWS.includes(event.key)) walk(map, rank ?? "row " + row, event.key);
  else if (act) act(map);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

// To the next GPU, or to a closed row that lies before it.
function walk(map, from, key) {
  const places = new Map([...map.gpus.keys()].map((rank) => [rank, map.layout.boxes.get(rank)]));
  const { left, pitch } = map.layout;
  const column = typeof from === "number" ? map.layout.boxes.get(from).x : (map.column ?? left);
  map.column = column;
  for (const at of map.rowGroups.keys()) {
    const { y, height } = map.layout.rows[at];
    places.set("row " + at, { x: column, y, width: pitch, height });
  }
  const next = neighbour(places, from, key);
  if (next === null) return;
  if (typeof next === "number") map.gpus.get(next).focus();
  else map.rowGroups.get(Number(next.slice(4))).focus();
}
