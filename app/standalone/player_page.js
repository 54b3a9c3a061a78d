"use strict";
// The page of an exported trip: the player, its scene read from the page itself, nothing from a network.
(function () {
  // A GPU of the map leads to the first hop that touches it.
  function handlers(data, page) {
    const first = window.tokentrip.core.firstHops(data.hops, (hop) => hop.marks.new);
    const choose = (rank) => { if (first.has(rank)) page.player.go(first.get(rank)); };
    return { look: () => {}, leave: () => {}, choose };
  }

  function start() {
    const { core, createPlayer, createPredict, dom } = window.tokentrip;
    const data = JSON.parse(document.getElementById("scene").textContent);
    const page = { predict: createPredict(() => page.player.forward()) };
    const hop = core.clampHop(new URLSearchParams(location.hash.slice(1)).get("hop") ?? data.start, data.hops.length);
    page.player = createPlayer(data, {
      hop, speed: 1, gpus: handlers(data, page), onHop: (at) => page.predict.show(data.hops[at.index + 1]),
    });
    const { map, counters, panel, strip, controls, live, tokens } = page.player.parts;
    const left = dom.make("div", { class: "left" }, [map, window.tokentrip.legend(data)]);
    const right = dom.make("div", { class: "right" }, [counters, panel, tokens, page.predict.element]);
    const note = dom.make("p", { class: "strip-note", text: core.crossingsText(data.crossings_by_axis, data.island_word) });
    const dock = dom.make("div", { class: "dock" }, [controls, strip, note]);
    document.querySelector(".trip").append(left, right, dock, live);
    document.addEventListener("keydown", (event) => page.player.key(event));
  }

  start();
})();
