// What lines and marks mean, under the map of the explorer and of a page in a file.

import { make } from "../shell/dom.js";
import { tokenDot } from "./token_tags.js";

const MAX_NAMED = 8;

export function legend(scene) {
  const links = [item("nvlink", "NVLink: along a row"), item("ib", "InfiniBand: down a rail")];
  const marks = scene.tokens ? severalItems(scene) : oneItems();
  const tints = scene.replicas > 1 ? [item("tints", "tints: replicas")] : [];
  return make("ul", { class: "legend", "aria-label": "Legend" }, [...links, ...marks, ...tints]);
}

function item(sample, text) {
  return make("li", {}, [make("span", { class: "sample " + sample }), text]);
}

function oneItems() {
  return [item("token", "the token"), item("kv", "its K/V"), item("kv-copy", "a borrowed copy")];
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
