"use strict";
// The hop strip: the whole trip at a glance, and the scrubber.
(function () {
  const ROOMY = 60;

  function createStrip(data, onPick) {
    const { core, dom } = window.tokentrip;
    const cells = [];
    const roomy = data.hops.length <= ROOMY;
    const groups = core.stripGroups(data.hops).map((group) => {
      const row = dom.make("div", { class: "cells" }, group.hops.map((hop) => {
        const cell = makeCell(hop, roomy);
        cells[hop.index] = cell;
        return cell;
      }));
      const label = roomy || group.label === "land" || group.label === "head" ? group.label : group.label.replace("layer ", "");
      return dom.make("div", { class: "layer-group" }, [dom.make("span", { class: "layer-label", text: label || "\u00a0" }), row]);
    });
    const element = dom.make("div", { class: "strip" + (roomy ? "" : " dense"), role: "group", tabindex: "0", "aria-label": "Hops, by layer" }, groups);
    element.addEventListener("click", (event) => {
      const cell = event.target.closest(".cell");
      if (cell) onPick(Number(cell.dataset.hop));
    });
    let current = null;
    return { element, show: (index) => { current = mark(cells, current, index); requestAnimationFrame(() => keepInView(element, cells[index])); } };
  }

  function makeCell(hop, roomy) {
    const { core, dom } = window.tokentrip;
    return dom.make("button", {
      type: "button", tabindex: "-1", "data-hop": hop.index, "aria-label": core.hopName(hop), title: core.hopName(hop),
      class: "cell " + core.FAMILIES[hop.kind] + (hop.crossings ? " crosses" : "") + (hop.dead ? " dead" : ""),
      text: roomy ? core.ABBREVIATIONS[hop.kind] : "",
    });
  }

  // Cells up to the current one are strong, the rest pale.
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
    if (box.left < frame.left + 24 || box.right > frame.right - 24) element.scrollLeft += box.left - frame.left - frame.width / 3;
    if (box.top < frame.top || box.bottom > frame.bottom) element.scrollTop += box.top - frame.top - frame.height / 3;
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createStrip });
})();
