"use strict";
// Several tokens on the map: numbered dots, counts where they do not fit, whose K/V stays, the busiest link.
(function () {
  const DOT = { top: 28, height: 16 };
  const KEPT = { top: 48, height: 16 };

  function createCrowd(map) {
    const { core } = window.tokentrip;
    const hops = map.data.hops;
    const tagged = (pairs, at) => [...pairs].flatMap(([rank, tags]) => tags.map((tag) => inBox(map, rank, tag, at)).filter(Boolean));
    return {
      rest: (index) => [...links(map, hops[index]), ...tagged(core.keptAt(hops, index), KEPT), ...tagged(hops[index].marks.crowds, DOT)],
      going: (index) => [...links(map, hops[index]), ...tagged(core.keptAt(hops, index - 1), KEPT), ...tagged(core.standing(hops, index), DOT)],
      rider: (hop, place) => rider(map, hop, place),
    };
  }

  // Each path once; the busiest link last and heavier.
  function links(map, hop) {
    const { core, dom, data } = map;
    const paths = new Map(hop.moves.filter((move) => move[9] >= 0).map((move) => [move[9], move]));
    const drawn = [...paths.values()].map((move) => [core.isBusiest(move, hop.busiest), move]);
    drawn.sort(([a], [b]) => a - b);
    return drawn.map(([busy, move]) => dom.makeSvg("path", {
      d: data.paths[move[9]], class: "link " + move[5] + (move[8] ? "" : " off-rail") + (busy ? " busy" : ""),
    }));
  }

  function inBox(map, rank, tag, at) {
    const box = map.data.boxes[rank];
    return box ? mark(map, box[0] + tag[0], box[1] + at.top, at.height, tag) : null;
  }

  function mark(map, x, y, height, [, width, text, look, token]) {
    const { dom } = map;
    const round = look === "kept" || look === "lent" ? 2 : height / 2;
    const [fill, ink] = token === null ? [null, null] : map.data.tokens[token].colours;
    const hollow = look === "relay";
    return dom.makeSvg("g", { class: "tag " + look, "data-token": token }, [
      dom.makeSvg("rect", { x, y, width, height, rx: round, fill: hollow ? null : fill, stroke: hollow ? fill : null }),
      dom.makeSvg("text", { x: x + width / 2, y: y + height / 2 + 4, fill: hollow ? null : ink, text }),
    ]);
  }

  // What rides a link: a token's own dot, a count of tokens, or their K/V.
  function rider(map, hop, place) {
    const [text, token] = hop.riders[place];
    const width = text.length === 1 ? DOT.height : 7 * text.length + 6;
    const own = hop.kind !== "kv_exchange" && hop.kind !== "weight_pull" && token !== null;
    const look = hop.kind === "kv_exchange" ? "kept" : own ? "copy" : "count";
    return mark(map, -width / 2, -DOT.height / 2, DOT.height, [0, width, text, look, own ? token : null]);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createCrowd });
})();
