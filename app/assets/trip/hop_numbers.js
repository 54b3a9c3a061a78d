// What a hop does to real arrays: the same mesh with a small model, run by the engine when a reader asks.

import { formatQuery, omit } from "../core/address.js";
import { UNREACHABLE } from "../core/errors.js";
import { make, waiting } from "../shell/dom.js";
import { fetchJson } from "../shell/fetch.js";

// A fold that is filled when it is opened; of one GPU, its rows alone.
export function hopNumbers(page, hop, rank = null) {
  if (page.data.tokens) return null;
  const inside = make("div", { class: "numbers" });
  const text = rank === null ? "This hop on real arrays" : "This hop's slice of the arrays here";
  const ontoggle = () => {
    if (fold.open && !inside.childElementCount) fill(page, hop, rank, inside);
  };
  const fold = make("details", { class: "fold", ontoggle }, [make("summary", { text }), inside]);
  return fold;
}

async function fill(page, hop, rank, inside) {
  inside.replaceChildren(waiting("Running it on arrays …"));
  const query = { ...omit(page.asked(), "speed", "rank", "rows", "follow"), hop: hop.index };
  const found = await fetchJson("/api/numbers" + formatQuery(query)).catch(() => ({
    error: { text: UNREACHABLE },
  }));
  if (found.error) inside.replaceChildren(make("p", { class: "note", text: found.error.text }));
  else inside.replaceChildren(...blocksOf(found.blocks, rank));
}

function blocksOf(blocks, rank) {
  const drawn = blocks.flatMap((block) => {
    if (block.kind === "note") return [make("p", { class: "note", text: block.text })];
    return block.kind === "table" ? tableOf(block, rank) : [];
  });
  return drawn.length > 1
    ? drawn
    : [...drawn, make("p", { class: "note", text: "Nothing of this hop is on this GPU." })];
}

function tableOf({ caption, heads, rows }, rank) {
  const own = rank === null ? rows : rows.filter(([where]) => new RegExp("^GPU " + rank + "\\b").test(where));
  if (!own.length) return [];
  const cells = ([first, ...rest]) =>
    make("tr", {}, [make("th", { scope: "row", text: first }), ...rest.map((text) => make("td", { text }))]);
  const table = make("table", {}, [
    make("caption", { text: caption }),
    make("thead", {}, [
      make(
        "tr",
        {},
        heads.map((text) => make("th", { scope: "col", text })),
      ),
    ]),
    make("tbody", {}, own.map(cells)),
  ]);
  return [
    make("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": caption }, [table]),
  ];
}
