// A trip with everything around it: map, counters, the hop in words, the GPU that is opened, the dock. The
// trip page and the mesh page show it.

import { crossingsText } from "../core/words.js";
import { createMapBar } from "../map/bar.js";
import { legend } from "../map/legend.js";
import { createPlayer } from "../player/player.js";
import { createPredict } from "../player/predict.js";
import { make } from "../shell/dom.js";
import { exportMenu } from "./export_menu.js";
import { createGpuCard } from "./gpu_card.js";
import { hopNumbers } from "./hop_numbers.js";
import { copyButton } from "./share.js";

// `page` has `query`, `save()`, `change(changes, keepHop)` and, while it shows a trip, `player` and `data`.
// `options` are the player's. `aside` stands beside the map, above what is said of the hop.
export function showTripView(page, scene, body, options, aside = []) {
  page.player?.destroy();
  page.data = scene;
  page.predict = createPredict(() => page.player.forward());
  page.card ??= createGpuCard(page);
  let bar = null;
  page.player = createPlayer(scene, {
    fitted: true,
    ...options,
    gpus: {
      ...page.card.handlers,
      view: () => bar?.show(),
      climb: () => bar.climb(),
    },
    // Nobody answers while it plays: the question would only jump about.
    onPlay: (playing) => page.predict.element.classList.toggle("away", playing),
    numbers: (hop) => hopNumbers(page, hop),
    onHop: (hop, player) => {
      page.predict.show(scene.hops[hop.index + 1]);
      bar?.show();
      options.onHop?.(hop, player);
    },
  });
  const acts = { open: (rank) => page.card.open(rank), close: () => page.card.close() };
  bar = createMapBar(page.player.map, acts, [copyButton(), exportMenu(page)]);
  page.card.onOpen = (rank) => bar.opened(rank);
  lay(page, scene, body, bar, aside);
  page.card.restore();
}

function lay(page, scene, body, bar, aside) {
  const { map, counters, panel, strip, controls, live, tokens } = page.player.parts;
  const dense = strip.classList.contains("dense");
  const note =
    crossingsText(scene.hops, scene.domain_word) + " A stroke through a hop: work whose result nobody reads.";
  body.replaceChildren(
    make("div", { class: "left" }, [
      page.player.caption,
      bar.element,
      make("div", { class: "map-place" }, [map, page.card.tip]),
      legend(scene),
    ]),
    make("div", { class: "right" }, [
      counters,
      page.card.element,
      ...aside,
      panel,
      tokens,
      page.predict.element,
      bar.overview,
    ]),
    make("div", { class: "dock" + (dense ? " short" : "") }, [
      controls,
      strip,
      make("p", { class: "strip-note", text: note }),
    ]),
    live,
  );
}
