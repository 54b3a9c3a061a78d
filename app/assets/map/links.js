// Links of a hop: as wide as their bytes, with a head that says which way, and the words beside them.

import { linkWidth } from "../core/scales.js";
import { makeSvg } from "../shell/dom.js";

const HEAD = { length: 6, per: 0.7, half: 3.2, halfPer: 0.55 };

// All links; `busiest(move)` says which stands out among those of several tokens.
export function drawLinks(scene, moves, routes, look = () => "") {
  return moves.flatMap((move, at) =>
    routes[at] ? [drawLink(scene, move, routes[at], look(move, at), at)] : [],
  );
}

export function drawLink(scene, move, route, more, at) {
  const width = linkWidth(move.bytes, scene.row_bytes);
  const kind = move.tier + more;
  return makeSvg("g", { class: "link-group " + kind, "data-move": at }, [
    makeSvg("path", { class: "link " + kind, d: route.d, "stroke-width": width.toFixed(1) }),
    makeSvg("path", { class: "head", d: headPath(route.end, width) }),
  ]);
}

// A triangle with its tip at the end of the link.
function headPath({ x, y, angle }, width) {
  const turn = (angle * Math.PI) / 180;
  const [length, half] = [HEAD.length + HEAD.per * width, HEAD.half + HEAD.halfPer * width];
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const at = (along, aside) =>
    (x + along * cos - aside * sin).toFixed(1) + " " + (y + along * sin + aside * cos).toFixed(1);
  return `M${at(0, 0)}L${at(-length, half)}L${at(-length, -half)}z`;
}

export function drawCaption({ x, y, width, height, text, tier }) {
  return makeSvg("g", { class: "caption " + tier }, [
    makeSvg("rect", { x, y, width, height, rx: height / 2 }),
    makeSvg("text", { x: x + width / 2, y: y + 14, text }),
  ]);
}
