// What lines and marks mean, under the map of the explorer and of a page in a file.

import { WIDTH_SCALE } from "../core/scales.js";
import { make } from "../shell/dom.js";
import { tokenDot } from "./token_tags.js";

const MAX_NAMED = 8;
const OWN_COLOURS = 4;

export function legend(scene) {
  const links = [item("nvlink", "NVLink", ", along a row"), item("ib", "InfiniBand", ", down a rail")];
  const marks = scene.tokens
    ? severalItems(scene)
    : [item("width", "width: bytes", WIDTH_SCALE), ...oneItems()];
  const tints = scene.replicas > 1 ? [tintItem(scene.replicas)] : [];
  return make("ul", { class: "legend", "aria-label": "Legend" }, [...links, ...marks, ...tints]);
}

// `more` is left out where there is little room.
function item(sample, text, more = "") {
  const words = make("span", {}, [text, make("span", { class: "more", text: more })]);
  return make("li", {}, [make("span", { class: "sample " + sample }), words]);
}

function oneItems() {
  return [item("token", "token"), item("kv", "K/V"), item("kv-copy", "its copy")];
}

// Each of a few replicas has its colour; of many only the token's stands out.
function tintItem(replicas) {
  return replicas <= OWN_COLOURS
    ? item("tints", "a tint: a replica")
    : item("tint", "tint: the token's replica");
}

function severalItems(scene) {
  const named = scene.tokens.length <= MAX_NAMED ? scene.tokens : [];
  const notes = named.length ? scene.legend_notes : [...scene.legend_notes, "the table of tokens names each"];
  return [
    item("busy", "busiest link"),
    item("kv", "K/V of a token, or of ×n"),
    item("kv-copy", "a borrowed copy"),
    ...named.map((token) => make("li", {}, [tokenDot(token), token.name])),
    ...notes.map((text) => make("li", { text })),
  ];
}
