// An opened GPU: what of this hop it has, its experts, heads, K/V positions and memory, each as a bar of a whole.

import { bytesText } from "../core/captions.js";
import { make } from "../shell/dom.js";

const LINKS = { nvlink: "NVLink", ib: "InfiniBand" };
const MAX_MOVES = 4;
const SHADES = ["attention", "experts", "shared expert", "dense", "embedding", "lm head", "K/V", "staging"];

export function insideGpu(page, gpu) {
  const { inside, rank } = gpu;
  return [
    ownMoves(page, rank),
    ...(inside
      ? [
          experts(inside.experts),
          bar("heads", inside.heads),
          bar("positions", inside.kv),
          memory(inside.memory),
        ]
      : []),
  ].filter(Boolean);
}

// What this hop, and the whole trip, bring to the GPU and take from it.
function ownMoves(page, rank) {
  const hops = page.data.hops;
  const hop = hops[page.player.state().hop];
  const here = (move) => move.src === rank || move.dst === rank;
  const moves = hop.moves.filter(here);
  const all = hops.flatMap((each) => each.moves.filter(here));
  const bytes = all.reduce((sum, move) => sum + move.bytes, 0);
  const row = (name, what, size) =>
    make("tr", {}, [
      name ? make("th", { scope: "row", text: name }) : make("td", {}),
      what,
      make("td", { class: "number", text: size }),
    ]);
  const rows = moves
    .slice(0, MAX_MOVES)
    .map((move, i) =>
      row(
        i ? "" : "this hop",
        make("td", {}, [
          move.src + " → " + move.dst + " ",
          make("span", { class: "tier " + move.tier, text: LINKS[move.tier] }),
        ]),
        move.bytes_text,
      ),
    );
  if (!moves.length) rows.push(row("this hop", make("td", { text: "leaves it alone" }), ""));
  if (moves.length > MAX_MOVES)
    rows.push(row("", make("td", { text: moves.length - MAX_MOVES + " more" }), ""));
  rows.push(
    row(
      "whole trip",
      make("td", { text: all.length.toLocaleString("en") + " of the token's copies" }),
      bytesText(bytes),
    ),
  );
  return make("table", { class: "own-moves" }, [make("tbody", {}, rows)]);
}

function experts(found) {
  if (!found) return null;
  const boxes = found.shown.map((expert) =>
    make("div", { class: "expert" }, [
      make("b", { text: "expert " + expert }),
      make("span", { text: found.width }),
    ]),
  );
  const more = found.more ? [make("div", { class: "expert", text: found.more + " more" })] : [];
  return make("div", { class: "inside" }, [
    make("p", { text: found.text }),
    make("div", { class: "expert-boxes" }, [...boxes, ...more]),
  ]);
}

// Runs [first, end) of a whole, and where the token is in it.
function bar(look, found) {
  if (!found) return null;
  const share = (value) => (100 * value) / found.of + "%";
  const runs = found.runs.map(([first, end]) => piece("run", share(first), share(end - first)));
  const mark = found.position === undefined ? [] : [piece("here", share(found.position), "3px")];
  const ends = [make("span", { text: "0" }), make("span", { text: (found.of - 1).toLocaleString("en") })];
  return make("div", { class: "inside" }, [
    make("p", { text: found.text }),
    make("div", { class: "inside-bar " + look }, [...runs, ...mark]),
    make("div", { class: "inside-ends" }, ends),
  ]);
}

function piece(look, left, width) {
  const drawn = make("span", { class: look });
  Object.assign(drawn.style, { left, width });
  return drawn;
}

function memory({ parts, whole, text, room, fits }) {
  const used = parts.reduce((sum, part) => sum + part.bytes, 0);
  const all = Math.max(whole ?? used, used);
  const pieces = parts.map((part) => {
    const drawn = make("span", { class: "shade shade" + shadeOf(part), title: part.name });
    drawn.style.width = (100 * part.bytes) / all + "%";
    return drawn;
  });
  const items = parts.map((part) =>
    make("li", {}, [make("span", { class: "shade shade" + shadeOf(part) }), part.name + " " + part.text]),
  );
  return make("div", { class: "inside" }, [
    make("p", { text: "Memory: " + text + (fits ? "" : ": it does not fit") }),
    make("div", { class: "inside-bar memory" }, pieces),
    make("ul", { class: "shades" }, items),
    room ? make("p", { text: room }) : null,
  ]);
}

function shadeOf({ name }) {
  const at = SHADES.findIndex((each) => name.startsWith(each.split(" ")[0]));
  return at < 0 ? SHADES.length : at;
}
