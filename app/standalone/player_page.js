// The page of an exported trip: the player, its scene read from the page itself, nothing from a network.

import { firstHops } from "../assets/core/hops.js";
import { readScene } from "../assets/core/scene.js";
import { crossingsText } from "../assets/core/words.js";
import { legend } from "../assets/map/legend.js";
import { createPlayer } from "../assets/player/player.js";
import { createPredict } from "../assets/player/predict.js";
import { make } from "../assets/shell/dom.js";

const scene = readScene(JSON.parse(document.getElementById("scene").textContent));
const asked = new URLSearchParams(location.hash.slice(1)).get("hop");
const firstTouch = firstHops(scene.hops, (marks) => marks.newly_touched);
const predict = createPredict(() => player.forward());
const player = createPlayer(scene, {
  hop: asked ?? scene.start,
  speed: 1,
  gpus: {
    look: () => {},
    leave: () => {},
    // A GPU of the map leads to the first hop that touches it.
    choose: (rank) => {
      if (firstTouch.has(rank)) player.go(firstTouch.get(rank));
    },
  },
  onHop: (hop) => predict.show(scene.hops[hop.index + 1]),
});
const { map, counters, panel, strip, controls, live, tokens } = player.parts;
const note = crossingsText(scene.hops, scene.domain_word);
document
  .querySelector(".trip")
  .append(
    make("div", { class: "left" }, [map, legend(scene)]),
    make("div", { class: "right" }, [counters, panel, tokens, predict.element]),
    make("div", { class: "dock" }, [controls, strip, make("p", { class: "strip-note", text: note })]),
    live,
  );
document.addEventListener("keydown", (event) => player.key(event));
