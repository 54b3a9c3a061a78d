// Several tokens beside the map: who meets in a hop, and each token with the totals of its own trip.

import { tokenDot } from "../map/token_tags.js";
import { make } from "../shell/dom.js";

const NAME = "Each token's own trip";
const HEADS = ["Token", "Replica", "Position", "Home", "GPUs", "Crossings", "Ops", "Moved"];
// A list of more lines scrolls, so it is in the tab order.
const MAX_UNSCROLLED = 6;

// What the panel adds to a hop that tokens take together.
export function meetingParts(hop) {
  if (!hop.meetings) return [];
  const meet = hop.meetings.length > 0;
  return [
    make("h3", { class: "meet", text: meet ? "They meet here" : "No two of them meet here" }),
    meet ? list(hop.meetings, "Who meets on which GPU") : null,
    make("details", {}, [
      make("summary", { text: "Where they are after this hop" }),
      list(hop.places, "Which tokens are on which GPU"),
    ]),
    hop.busiest ? busiest("this hop", hop.busiest) : null,
  ];
}

function list(lines, label) {
  const tabindex = lines.length > MAX_UNSCROLLED ? "0" : null;
  const items = lines.map((text) => make("li", { text }));
  return make("ul", { class: "meetings", tabindex, "aria-label": label }, items);
}

function busiest(where, link) {
  return make("p", { class: "busiest", text: "Busiest link of " + where + ": " + link.text + "." });
}

// `tripOf(token)` is the address of a token's own trip; a page in a file has none. One token has no table.
export function createTokenTable(scene, tripOf) {
  if (!scene.tokens) return null;
  const heads = HEADS.map((text) => make("th", { scope: "col", text }));
  const table = make("table", {}, [
    make("caption", { class: "unseen", text: NAME }),
    make("thead", {}, [make("tr", {}, heads)]),
    make(
      "tbody",
      {},
      scene.tokens.map((token) => row(token, tripOf)),
    ),
  ]);
  const help = "A token's number leads to its own trip, with its own log.";
  return make("section", { class: "tokens", "aria-label": "Tokens" }, [
    make("h2", { text: scene.tokens.length + " tokens" }),
    scene.busiest ? busiest("the trip", scene.busiest) : null,
    make("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": NAME }, [table]),
    tripOf ? make("p", { class: "why", text: help }) : null,
  ]);
}

function row(token, tripOf) {
  const spoken = "Token " + token.index + (tripOf ? ", its own trip" : "");
  const words = [make("span", { class: "unseen", text: spoken }), tokenDot(token)];
  const name = tripOf
    ? make("a", { href: tripOf(token), class: "token-link" }, words)
    : make("span", { class: "token-link" }, words);
  const { gpus_touched, node_crossings, comm_ops, bytes_text } = token.totals;
  const values = [
    token.replica,
    token.position,
    token.home,
    gpus_touched,
    node_crossings,
    comm_ops,
    bytes_text,
  ];
  return make("tr", { "data-token": token.index }, [
    make("th", { scope: "row" }, [name]),
    ...values.map((value) => make("td", { class: "number", text: value.toLocaleString("en") })),
  ]);
}
