// The first time a reader comes, layer 1 plays once by itself; then it is theirs.

import { isStill } from "../player/player.js";

const KEY = "tokentrip-played";
const WAIT_MS = 700;
const INVITED_MS = 12_000;
const INVITATION = "Now yours: paste what launches your mesh, or pick one.";
const STOPS = ["pointerdown", "keydown", "wheel", "touchstart"];

// Nothing plays for a link to a hop, for readers who asked for less motion, or a second time.
export function playFirstLayer(page, scene) {
  if (page.query.hop !== undefined || page.query.rank !== undefined || isStill() || wasPlayed()) return;
  const last = lastOfFirstLayer(scene.hops);
  if (last < 1) return;
  remember();
  const invite = () => {
    page.invite.textContent = INVITATION;
    page.yours.classList.add("invited");
    setTimeout(() => {
      page.invite.textContent = "";
    }, INVITED_MS);
  };
  const timer = setTimeout(() => page.player.playTo(last, invite), WAIT_MS);
  const stop = () => {
    clearTimeout(timer);
    for (const name of STOPS) document.removeEventListener(name, stop, true);
  };
  for (const name of STOPS) document.addEventListener(name, stop, true);
}

function lastOfFirstLayer(hops) {
  const first = hops.find((hop) => hop.layer)?.layer;
  return hops.findLastIndex((hop) => hop.layer === first && hop.kind !== "pp_send");
}

function wasPlayed() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return true;
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "1");
  } catch {
    // A private window keeps nothing.
  }
}
