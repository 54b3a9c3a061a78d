"use strict";
// Pointer and keys on the map: one listener for all GPUs; one GPU at a time is in the tab order.
(function () {
  const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

  function mapKeys(map, handlers) {
    const rankAt = (event) => {
      const group = event.target.closest?.(".gpu");
      return group ? Number(group.dataset.rank) : null;
    };
    for (const [rank, group] of map.gpus) {
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", "GPU " + rank);
      group.setAttribute("tabindex", "-1");
    }
    setEntry(map, map.gpus.has(map.data.home) ? map.data.home : map.gpus.keys().next().value);
    const on = (name, listener) => map.base.addEventListener(name, listener);
    const look = (rank) => { map.point(rank); handlers.look(rank); };
    const leave = () => { map.point(null); handlers.leave(); };
    on("pointerover", (event) => { const rank = rankAt(event); if (rank !== null) look(rank); });
    on("pointerleave", leave);
    on("focusin", (event) => { const rank = rankAt(event); if (rank !== null) { setEntry(map, rank); look(rank); } });
    on("focusout", leave);
    on("click", (event) => { const rank = rankAt(event); if (rank !== null) handlers.choose(rank); });
    on("keydown", (event) => onKey(map, handlers, event, rankAt(event)));
  }

  function setEntry(map, rank) {
    if (map.entry !== undefined) map.gpus.get(map.entry)?.setAttribute("tabindex", "-1");
    map.entry = rank;
    map.gpus.get(rank)?.setAttribute("tabindex", "0");
  }

  function onKey(map, handlers, event, rank) {
    if (rank === null) return;
    if (event.key === "Enter" || event.key === " ") {
      handlers.choose(rank);
    } else if (ARROWS.includes(event.key)) {
      const next = map.core.neighbour(map.data.boxes, rank, event.key);
      if (next !== null) map.gpus.get(next).focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { mapKeys });
})();
