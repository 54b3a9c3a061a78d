"use strict";
// Play, step, scrub and speed: native controls with names, and the line that screen readers hear.
(function () {
  const ICONS = { play: "M8 5v14l11-7z", pause: "M7 5h4v14H7zM13 5h4v14h-4z", back: "M15 6l-6 6 6 6", next: "M9 6l6 6-6 6" };

  function icon(name) {
    const { makeSvg } = window.tokentrip.dom;
    return makeSvg("svg", { viewBox: "0 0 24 24", width: 24, height: 24, "aria-hidden": "true", class: "icon " + name },
      [makeSvg("path", { d: ICONS[name] })]);
  }

  function createControls(player, act) {
    const { core, dom, SPEEDS } = window.tokentrip;
    const last = player.data.hops.length - 1;
    const play = dom.make("button", { type: "button", class: "play", "aria-label": "Play", onclick: () => act.toggle(player) }, [icon("play")]);
    const button = (name, label, by) => dom.make("button", { type: "button", class: "step", "aria-label": label,
      onclick: () => act.step(player, by) }, [icon(name)]);
    const scrub = dom.make("input", { type: "range", min: 0, max: last, step: 1, value: player.hop, "aria-label": "Hop",
      class: "scrub", oninput: () => { act.pause(player); act.go(player, scrub.value); } });
    const speed = dom.make("select", { onchange: () => act.setSpeed(player, Number(speed.value)) },
      SPEEDS.map((each) => dom.option(each, each + "×", each === player.speed)));
    const label = dom.make("p", { class: "hop-number" });
    const live = dom.make("p", { class: "unseen", "aria-live": "polite" });
    const element = dom.make("div", { class: "controls" }, [
      dom.make("div", { class: "buttons" }, [button("back", "Previous hop", -1), play, button("next", "Next hop", 1)]),
      dom.make("div", { class: "where" }, [label, dom.make("p", { class: "keys", text: "space · ← → · Home End" })]),
      scrub, dom.labelled("Speed", speed),
    ]);
    const show = (hop) => {
      label.textContent = "hop " + hop.index + " of " + last;
      scrub.value = hop.index;
      scrub.setAttribute("aria-valuetext", core.hopName(hop));
      live.textContent = core.liveText(hop, last, player.data.island_word);
    };
    const playing = (on) => {
      play.setAttribute("aria-label", on ? "Pause" : "Play");
      play.replaceChildren(icon(on ? "pause" : "play"));
    };
    return { element, live, show, playing };
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createControls });
})();
