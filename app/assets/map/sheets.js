// A tall map's GPUs in sheets, one below the other: the browser lays out those that are in view, the
// others when they come into it. A sheet says how tall it is, so nothing moves.

import { sheetsOf } from "../core/geometry.js";
import { makeSvg } from "../shell/dom.js";

// Takes the GPUs out of the map's SVG into sheets over it; a map of less than two sheets stays whole.
export function sheets(scene, gpus) {
  const { width, height } = scene.size;
  const boxes = new Map([...gpus.keys()].map((rank) => [rank, scene.boxes.get(rank)]));
  return sheetsOf(boxes, height).map((place) => {
    const sheet = makeSvg(
      "svg",
      { class: "sheet", viewBox: `0 ${place.top} ${width} ${place.height}` },
      place.ranks.map((rank) => gpus.get(rank)),
    );
    sheet.style.top = (100 * place.top) / height + "%";
    sheet.style.height = (100 * place.height) / height + "%";
    return sheet;
  });
}
