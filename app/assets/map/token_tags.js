// Several tokens on the map: numbered dots, counts where they do not fit, whose K/V stays, the busiest link.

import { isOnLink, keptAt, standing } from "../core/tokens.js";
import { make, makeSvg } from "../shell/dom.js";

// Where tags stand under a GPU's number, and the room that they were counted for.
const DOT = { top: 0, height: 16 };
const ROOM = { width: 76, height: 34 };
const NUMBER = 21;
const LOW = 40;
const KEPT = { top: 18, height: 16 };
const LETTER_WIDTH = 7;

// All marks after a hop.
export function tagsAtRest(map, index) {
  const { hops } = map.scene;
  const { marks } = hops[index];
  return [...inBoxes(map, keptAt(hops, index), KEPT), ...inBoxes(map, marks.tags_after, DOT)];
}

// All marks while a hop travels.
export function tagsGoing(map, index) {
  const { hops } = map.scene;
  return [...inBoxes(map, keptAt(hops, index - 1), KEPT), ...inBoxes(map, standing(hops, index), DOT)];
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

// What is said of a link's look: the busiest one is heavier.
export function busyLook(hop) {
  return (move) => (isOnLink(move, hop.busiest) ? " busy" : "");
}

function inBoxes(map, tagsOf, at) {
  return [...tagsOf].flatMap(([rank, tags]) => {
    const box = map.layout.boxes.get(rank);
    if (!box || !tags.length) return [];
    const transform = placeIn(box);
    return [
      makeSvg(
        "g",
        { transform },
        tags.map((tag) => drawTag(map, tag.x, at.top, at.height, tag)),
      ),
    ];
  });
}

// Under the number, or in a low box beside it.
function placeIn({ x, y, width, height }) {
  const low = height < LOW;
  const [left, top] = low ? [x + width * 0.4, y + 2] : [x, y + NUMBER];
  const scale = Math.min(1, (x + width - left) / ROOM.width, (y + height - top - 2) / ROOM.height);
  return `translate(${left.toFixed(1)} ${top.toFixed(1)}) scale(${scale.toFixed(3)})`;
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
