// Play, step, scrub and speed: native controls with names, and the line that screen readers hear.

import { SPEEDS, TIME_SCALE } from "../core/scales.js";
import { eyebrow, hopName, liveText } from "../core/words.js";
import { labelled, make, makeSvg, option } from "../shell/dom.js";

const ICONS = {
  play: "M8 5v14l11-7z",
  pause: "M7 5h4v14H7zM13 5h4v14h-4z",
  back: "M15 6l-6 6 6 6",
  next: "M9 6l6 6-6 6",
};

// `acts` are what the controls do: toggle(), step(by), jump(index), setSpeed(speed).
export function createControls(player, acts) {
  const last = player.scene.hops.length - 1;
  const play = button("play", "Play", "play", acts.toggle);
  const scrub = scrubber(player.hop, last, acts.jump);
  const label = make("p", { class: "hop-number" });
  const live = make("p", { class: "unseen", "aria-live": "polite" });
  const caption = make("div", { class: "hop-caption", "aria-hidden": "true" });
  const element = make("div", { class: "controls" }, [
    make("div", { class: "buttons" }, [
      button("step", "Previous hop", "back", () => acts.step(-1)),
      play,
      button("step", "Next hop", "next", () => acts.step(1)),
    ]),
    make("div", { class: "where" }, [
      label,
      make("p", { class: "keys", text: "space · ← → · Home End" }),
      make("p", { class: "swipe", text: "swipe the map: next hop" }),
    ]),
    scrub,
    make("p", { class: "time-scale", text: TIME_SCALE }),
    labelled("Speed", speedSelect(player.speed, acts.setSpeed)),
  ]);
  const show = (hop) => {
    label.textContent = "hop " + hop.index + " of " + last;
    scrub.value = hop.index;
    scrub.setAttribute("aria-valuetext", hopName(hop));
    live.textContent = liveText(hop, last, player.scene.domain_word);
    caption.replaceChildren(
      make("p", { class: "eyebrow", text: eyebrow(hop) }),
      make("p", { class: "said" }, [make("b", { text: hop.words.title + ". " }), hop.words.what]),
    );
  };
  const playing = (on) => {
    play.setAttribute("aria-label", on ? "Pause" : "Play");
    play.replaceChildren(icon(on ? "pause" : "play"));
  };
  return { element, live, caption, show, playing };
}

function button(look, label, name, act) {
  return make("button", { type: "button", class: look, "aria-label": label, onclick: () => act() }, [
    icon(name),
  ]);
}

function icon(name) {
  const size = { viewBox: "0 0 24 24", width: 24, height: 24 };
  return makeSvg("svg", { ...size, "aria-hidden": "true", class: "icon " + name }, [
    makeSvg("path", { d: ICONS[name] }),
  ]);
}

function scrubber(hop, last, jump) {
  const scrub = make("input", {
    type: "range",
    min: 0,
    max: last,
    step: 1,
    value: hop,
    "aria-label": "Hop",
    class: "scrub",
    oninput: () => jump(scrub.value),
  });
  return scrub;
}

function speedSelect(speed, setSpeed) {
  const select = make(
    "select",
    { onchange: () => setSpeed(Number(select.value)) },
    SPEEDS.map((each) => option(each, each + "×", each === speed)),
  );
  return select;
}
