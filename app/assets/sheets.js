"use strict";
// A tall map's GPUs in sheets, one below the other: the browser lays out those that are in view, the
// others when they come into it. A sheet says how tall it is, so nothing moves.
(function () {
  const SHEET = 640;
  const EDGE = 2;

  // Takes the GPUs out of the map's SVG into sheets over it; a map of less than two sheets stays whole.
  function sheets(data, gpus) {
    const { dom } = window.tokentrip;
    const [width, height] = data.size;
    if (height < 2 * SHEET) return [];
    const groups = new Map();
    for (const [rank, group] of gpus) {
      const place = Math.floor(data.boxes[rank][1] / SHEET);
      if (!groups.has(place)) groups.set(place, []);
      groups.get(place).push([data.boxes[rank], group]);
    }
    return [...groups.values()].map((each) => {
      const top = Math.min(...each.map(([box]) => box[1])) - EDGE;
      const tall = Math.max(...each.map(([box]) => box[1] + box[3])) + EDGE - top;
      const sheet = dom.makeSvg("svg", { class: "sheet", viewBox: `0 ${top} ${width} ${tall}` }, each.map(([, group]) => group));
      Object.assign(sheet.style, { top: (100 * top) / height + "%", height: (100 * tall) / height + "%" });
      return sheet;
    });
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { sheets });
})();
