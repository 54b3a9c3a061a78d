// Several tokens on the map: numbered dots, counts where they do not fit, whose K/V stays, the busiest link.

import { isOnLink, keptAt, standing } from "../core/tokens.js";
import { make, makeSvg } from "../shell/dom.js";
import { linkPath } from "./marks.js";

// Where tags stand in a GPU's box.
const DOT = { top: 28, height: 16 };
const KEPT = { top: 48, height: 16 };
const LETTER_WIDTH = 7;

// All marks after a hop.
export function tagsAtRest(map, index) {
  const { hops } = map.scene;
  const { marks } = hops[index];
  return [
    ...links(map, hops[index]),
    ...inBoxes(map, keptAt(hops, index), KEPT),
    ...inBoxes(map, marks.tags_after, DOT),
  ];
}

// All marks while a hop travels.
export function tagsGoing(map, index) {
  const { hops } = map.scene;
  return [
    ...links(map, hops[index]),
    ...inBoxes(map, keptAt(hops, index - 1), KEPT),
    ...inBoxes(map, standing(hops, index), DOT),
  ];
}

// What rides a link: a token's own dot, a count of tokens, or their K/V.
export function tokenRider(map, hop, { text, token }) {
  const width = text.length === 1 ? DOT.height : LETTER_WIDTH * text.length + 6;
  const own = hop.kind !== "kv_exchange" && hop.kind !== "weight_pull" && token !== null;
  const look = hop.kind === "kv_exchange" ? "kept" : own ? "copy" : "count";
  const tag = { width, text, look, token: own ? token : null };
  return drawTag(map, -width / 2, -DOT.height / 2, DOT.height, tag);
}

// A token's number in its colours, for the legend and the table of tokens.
export function tokenDot(token) {
  const drawn = make("span", { class: "token-dot", "aria-hidden": "true", text: token.index });
  drawn.style.background = token.colours.fill;
  drawn.style.color = token.colours.ink;
  return drawn;
}

// Each path once; the busiest link last and heavier.
function links(map, hop) {
  const byPath = new Map(hop.moves.filter((move) => move.path !== null).map((move) => [move.path, move]));
  const drawn = [...byPath.values()].map((move) => ({ move, busy: isOnLink(move, hop.busiest) }));
  drawn.sort((a, b) => a.busy - b.busy);
  return drawn.map(({ move, busy }) => linkPath(move, busy ? " busy" : ""));
}

function inBoxes(map, tagsOf, at) {
  return [...tagsOf].flatMap(([rank, tags]) => {
    const box = map.scene.boxes.get(rank);
    return box ? tags.map((tag) => drawTag(map, box.x + tag.x, box.y + at.top, at.height, tag)) : [];
  });
}

function drawTag(map, x, y, height, { width, text, look, token }) {
  const round = look === "kept" || look === "lent" ? 2 : height / 2;
  const { fill, ink } = token === null ? { fill: null, ink: null } : map.scene.tokens[token].colours;
  const hollow = look === "relay";
  return makeSvg("g", { class: "tag " + look, "data-token": token }, [
    makeSvg("rect", {
      x,
      y,
      width,
      height,
      rx: round,
      fill: hollow ? null : fill,
      stroke: hollow ? fill : null,
    }),
    makeSvg("text", { x: x + width / 2, y: y + height / 2 + 4, fill: hollow ? null : ink, text }),
  ]);
}
