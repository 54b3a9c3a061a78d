// The player: one trip, its controls and keys. It writes the page itself; nothing here talks to a server.

import { clampHop } from "../core/hops.js";
import { playerAction } from "../core/keys.js";
import { restMs } from "../core/motion.js";
import { SPEEDS } from "../core/scales.js";
import { createMap } from "../map/map.js";
import { createControls } from "./controls.js";
import { createCounters, createPanel } from "./panel.js";
import { createStrip } from "./strip.js";
import { createTokenTable } from "./token_table.js";

// `scene` is what `readScene` gives. Options: `hop` and `speed` to start with; `gpus`, the map's handlers;
// `fitted` for a map as high as the page makes it; `onHop(hop, player)` after each change; `onPlay(playing)` when
// it starts and stops; `onRest()` when it pauses; `tripOf(token)`, a token's own address; `numbers(hop)`, what a
// hop does to real arrays.
export function createPlayer(scene, options) {
  const player = {
    scene,
    options,
    hop: clampHop(options.hop, scene.hops.length),
    playing: false,
    speed: options.speed || 1,
    timer: 0,
    counters: createCounters(scene),
    panel: createPanel(options.numbers),
  };
  player.map = createMap(
    scene,
    { swipe: (by) => step(player, by), ...options.gpus },
    { fitted: options.fitted },
  );
  const jump = (index) => {
    pause(player);
    go(player, index);
  };
  player.strip = createStrip(scene, jump);
  player.controls = createControls(player, {
    toggle: () => toggle(player),
    step: (by) => step(player, by),
    jump,
    setSpeed: (speed) => setSpeed(player, speed),
  });
  show(player);
  return {
    parts: {
      map: player.map.element,
      counters: player.counters.element,
      panel: player.panel.element,
      strip: player.strip.element,
      tokens: createTokenTable(scene, options.tripOf),
      controls: player.controls.element,
      live: player.controls.live,
    },
    light: player.map.light,
    map: player.map.map,
    caption: player.controls.caption,
    // Plays on to a hop; `done()` when it is there, not when the reader stops it before.
    playTo: (index, done) => playTo(player, index, done),
    pause: () => pause(player),
    state: () => ({ hop: player.hop, playing: player.playing, speed: player.speed }),
    key: (event) => onKey(player, event),
    go: jump,
    forward: () => step(player, 1),
    destroy: () => {
      pause(player);
      player.map.stop();
    },
  };
}

function last(player) {
  return player.scene.hops.length - 1;
}

// Words, counters and strip of the current hop; the map is shown or travels there by itself.
function tell(player) {
  const hop = player.scene.hops[player.hop];
  player.counters.show(hop);
  player.panel.show(hop);
  player.strip.show(player.hop);
  player.controls.show(hop);
  player.options.onHop?.(hop, player);
}

function show(player) {
  player.map.show(player.hop);
  tell(player);
}

function go(player, index) {
  player.hop = clampHop(index, player.scene.hops.length);
  show(player);
}

// One hop on; `done()` when it has arrived.
function advance(player, done) {
  if (player.hop >= last(player)) {
    done();
    return;
  }
  player.hop += 1;
  tell(player);
  if (!isStill()) {
    player.map.travel(player.hop, player.speed, done);
    return;
  }
  player.map.show(player.hop);
  done();
}

// Readers who asked for less motion see where each hop ends.
export function isStill() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function step(player, by) {
  pause(player);
  if (by > 0) advance(player, () => {});
  else go(player, player.hop + by);
}

function toggle(player) {
  if (player.playing) {
    pause(player);
    return;
  }
  if (player.hop >= last(player)) go(player, 0);
  playTo(player, last(player), () => {});
}

function playTo(player, until, done) {
  player.playing = true;
  player.controls.playing(true);
  player.options.onPlay?.(true);
  run(player, until, done);
}

function run(player, until, done) {
  advance(player, () => {
    if (!player.playing) return;
    if (player.hop < until) {
      player.timer = setTimeout(() => run(player, until, done), restMs(player.speed));
      return;
    }
    pause(player);
    done();
  });
}

function pause(player) {
  clearTimeout(player.timer);
  if (!player.playing) return;
  player.playing = false;
  player.controls.playing(false);
  player.options.onPlay?.(false);
  player.options.onRest?.();
}

function setSpeed(player, speed) {
  player.speed = SPEEDS.includes(speed) ? speed : 1;
  player.options.onRest?.();
}

const ACTS = {
  toggle,
  back: (player) => step(player, -1),
  forward: (player) => step(player, 1),
  first: (player) => {
    pause(player);
    go(player, 0);
  },
  last: (player) => {
    pause(player);
    go(player, last(player));
  },
};

function onKey(player, event) {
  const action = playerAction(event);
  if (!action) return;
  event.preventDefault();
  ACTS[action](player);
}
