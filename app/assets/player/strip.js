// The hop strip: the whole trip at a glance, and the scrubber.

import { shortLabel, stripGroups } from "../core/hops.js";
import { hopName } from "../core/words.js";
import { make } from "../shell/dom.js";

// Up to so many hops the cells have room for their short names.
const ROOMY_HOPS = 60;
// On a dense strip so many layers have one label.
const TENTH = 10;
const NO_LABEL = "\u00a0";

export function createStrip(scene, onPick) {
  const cells = [];
  const roomy = scene.hops.length <= ROOMY_HOPS;
  const first = scene.hops.find((hop) => hop.layer)?.layer ?? 0;
  const groups = stripGroups(scene.hops).map((group) => {
    const made = group.hops.map((hop) => (cells[hop.index] = makeCell(hop, scene.kinds[hop.kind])));
    const label = shortLabel(group.label, roomy) || NO_LABEL;
    // Groups share the strip's width by their hops.
    const style = "flex-grow: " + group.hops.length;
    const tenth = !roomy && (group.hops[0].layer - first) % TENTH === 0 && group.label.startsWith("layer");
    return make("div", { class: "layer-group" + (tenth ? " tenth" : ""), style }, [
      make("span", { class: "layer-label", text: label }),
      make("div", { class: "cells" }, made),
    ]);
  });
  const look = roomy ? "strip" : "strip dense";
  const element = make(
    "div",
    { class: look, role: "group", tabindex: "0", "aria-label": "Hops, by layer" },
    groups,
  );
  element.addEventListener("click", (event) => {
    const cell = event.target.closest(".cell");
    if (cell) onPick(Number(cell.dataset.hop));
  });
  let current = null;
  const show = (index) => {
    cells[current]?.closest(".layer-group").classList.remove("here");
    current = mark(cells, current, index);
    cells[index].closest(".layer-group").classList.add("here");
    requestAnimationFrame(() => keepInView(element, cells[index]));
  };
  return { element, show };
}

// `kind` has the short name of the hop and the family whose colour it wears.
function makeCell(hop, kind) {
  const { family, short } = kind;
  const name = short + ", " + hopName(hop);
  return make("button", {
    type: "button",
    tabindex: "-1",
    "data-hop": hop.index,
    "aria-label": name,
    title: name,
    class: "cell " + family + (hop.crossings ? " crosses" : "") + (hop.dead ? " dead" : ""),
    text: short,
  });
}

// Cells up to the current one are strong, the rest pale; only those in between change.
function mark(cells, previous, index) {
  const first = previous === null ? 0 : Math.min(previous, index);
  const last = previous === null ? cells.length - 1 : Math.max(previous, index);
  for (let i = first; i <= last; i++) {
    cells[i].classList.toggle("done", i <= index);
    if (i === index) cells[i].setAttribute("aria-current", "step");
    else cells[i].removeAttribute("aria-current");
  }
  return index;
}

function keepInView(element, cell) {
  const frame = element.getBoundingClientRect();
  const box = cell.getBoundingClientRect();
  if (box.left < frame.left + 24 || box.right > frame.right - 24) {
    element.scrollLeft += box.left - frame.left - frame.width / 3;
  }
  if (box.top < frame.top || box.bottom > frame.bottom) {
    element.scrollTop += box.top - frame.top - frame.height / 3;
  }
}
