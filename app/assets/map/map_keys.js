// Pointer and keys on the map: one listener for all GPUs; one GPU at a time is in the tab order.

import { neighbour } from "../core/geometry.js";

const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

// `handlers` hear of a rank: `look` when it is pointed at or focused, `choose` when it is clicked; `leave` of none.
export function listenToMap(map, handlers) {
  for (const [rank, group] of map.gpus) {
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", "GPU " + rank);
    group.setAttribute("tabindex", "-1");
  }
  const { home } = map.scene;
  setEntry(map, map.gpus.has(home) ? home : map.gpus.keys().next().value);
  const look = (rank) => {
    map.point(rank);
    handlers.look(rank);
  };
  const leave = () => {
    map.point(null);
    handlers.leave();
  };
  const enter = (rank) => {
    setEntry(map, rank);
    look(rank);
  };
  const onGpu = (name, act) =>
    map.base.addEventListener(name, (event) => {
      const rank = rankAt(event);
      if (rank !== null) act(rank, event);
    });
  onGpu("pointerover", look);
  onGpu("focusin", enter);
  onGpu("click", (rank) => handlers.choose(rank));
  onGpu("keydown", (rank, event) => onKey(map, handlers, rank, event));
  map.base.addEventListener("pointerleave", leave);
  map.base.addEventListener("focusout", leave);
}

function rankAt(event) {
  const group = event.target.closest?.(".gpu");
  return group ? Number(group.dataset.rank) : null;
}

function setEntry(map, rank) {
  if (map.entry !== undefined) map.gpus.get(map.entry)?.setAttribute("tabindex", "-1");
  map.entry = rank;
  map.gpus.get(rank)?.setAttribute("tabindex", "0");
}

function onKey(map, handlers, rank, event) {
  if (event.key === "Enter" || event.key === " ") {
    handlers.choose(rank);
  } else if (ARROWS.includes(event.key)) {
    const next = neighbour(map.scene.boxes, rank, event.key);
    if (next !== null) map.gpus.get(next).focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}
