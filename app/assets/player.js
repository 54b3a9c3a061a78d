"use strict";
// The player: one trip, its controls and keys. It writes the page itself; nothing here talks to a server.
(function () {
  const SPEEDS = [0.5, 1, 2, 4, 8];

  function createPlayer(data, options) {
    const { core, createMap, createStrip, createCounters, createPanel } = window.tokentrip;
    const player = {
      data, options, hop: core.clampHop(options.hop, data.hops.length), playing: false, speed: options.speed || 1, timer: 0,
      map: createMap(data, options.gpus), counters: createCounters(data), panel: createPanel(),
    };
    player.strip = createStrip(data, (index) => { pause(player); go(player, index); });
    player.controls = window.tokentrip.createControls(player, { toggle, step, go, pause, setSpeed });
    show(player);
    return {
      parts: { map: player.map.element, counters: player.counters.element, panel: player.panel.element,
        strip: player.strip.element, tokens: window.tokentrip.createTokens(data, options.tripOf), controls: player.controls.element, live: player.controls.live },
      light: player.map.light,
      state: () => ({ hop: player.hop, playing: player.playing, speed: player.speed }),
      key: (event) => onKey(player, event),
      go: (index) => { pause(player); go(player, index); },
      forward: () => { pause(player); advance(player, () => {}); },
      destroy: () => { pause(player); player.map.stop(); },
    };
  }

  function last(player) {
    return player.data.hops.length - 1;
  }

  // Words, counters and strip of the current hop; the map is shown or travels there by itself.
  function tell(player) {
    const hop = player.data.hops[player.hop];
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
    player.hop = window.tokentrip.core.clampHop(index, player.data.hops.length);
    show(player);
  }

  function advance(player, done) {
    if (player.hop >= last(player)) return done();
    player.hop += 1;
    tell(player);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    player.map.travel(player.hop, still ? 0 : window.tokentrip.core.travelMs(player.speed), done);
  }

  function step(player, by) {
    pause(player);
    if (by > 0) advance(player, () => {});
    else go(player, player.hop + by);
  }

  function toggle(player) {
    if (player.playing) return pause(player);
    if (player.hop >= last(player)) go(player, 0);
    player.playing = true;
    player.controls.playing(true);
    run(player);
  }

  function run(player) {
    advance(player, () => {
      if (!player.playing) return;
      if (player.hop >= last(player)) return pause(player);
      player.timer = setTimeout(() => run(player), window.tokentrip.core.restMs(player.speed));
    });
  }

  function pause(player) {
    clearTimeout(player.timer);
    const was = player.playing;
    player.playing = false;
    if (was) {
      player.controls.playing(false);
      player.options.onRest?.();
    }
  }

  function setSpeed(player, speed) {
    player.speed = SPEEDS.includes(speed) ? speed : 1;
    player.options.onRest?.();
  }

  const KEYS = {
    " ": (player) => toggle(player),
    ArrowLeft: (player) => step(player, -1),
    ArrowRight: (player) => step(player, 1),
    Home: (player) => { pause(player); go(player, 0); },
    End: (player) => { pause(player); go(player, last(player)); },
  };

  // Fields keep their own keys; a button keeps space; the scrubber keeps its arrows.
  function onKey(player, event) {
    const act = KEYS[event.key];
    const tag = event.target.tagName;
    const type = event.target.type;
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    if (tag === "SELECT" || tag === "TEXTAREA" || (tag === "INPUT" && type !== "range")) return;
    if ((tag === "BUTTON" || tag === "SUMMARY" || tag === "A") && event.key === " ") return;
    if (tag === "INPUT" && event.key !== " ") return;
    event.preventDefault();
    act(player);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createPlayer, SPEEDS });
})();
