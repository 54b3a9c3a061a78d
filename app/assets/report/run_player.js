// A recorded run, played: a cursor moves over the operations, and the map lights the group of the newest one.

import { newestAt, timeWords } from "../core/run_clock.js";
import { make, parseSvg } from "../shell/dom.js";

const STEPS = 1000;
const PLAY_MS = 12_000;

export function runPlayer(block) {
  const map = parseSvg(block.map);
  const timeline = parseSvg(block.timeline);
  const ranks = new Map([...map.querySelectorAll(".run-rank")].map((each) => [each.dataset.rank, each]));
  const said = make("p", { class: "run-said", role: "status" });
  const slider = make("input", {
    type: "range",
    min: 0,
    max: STEPS,
    value: STEPS,
    "aria-label": "Time of the run",
    oninput: () => {
      stop();
      show();
    },
  });
  const button = make("button", { type: "button", text: "Play", onclick: () => (timer ? stop() : play()) });
  let timer = 0;
  let lit = [];

  function show() {
    const time = (slider.value / STEPS) * block.span_ns;
    const op = newestAt(block.ops, time);
    const members = op ? block.groups[op[2]] : [];
    for (const each of lit) each.classList.remove("lit", "calls");
    lit = members.map((rank) => ranks.get(String(rank))).filter(Boolean);
    for (const each of lit) each.classList.add("lit");
    if (op) ranks.get(String(op[1]))?.classList.add("calls");
    moveCursor(timeline.querySelector(".run-cursor"), slider.value / STEPS);
    const at = timeWords(time) + ": ";
    said.textContent = op
      ? at + "rank " + op[1] + " issues " + op[3] + withPeers(op[1], members)
      : at + "nothing yet";
    slider.setAttribute("aria-valuetext", said.textContent);
  }

  function play() {
    if (Number(slider.value) >= STEPS) slider.value = 0;
    const from = Number(slider.value);
    const begun = performance.now();
    said.setAttribute("aria-live", "off");
    button.textContent = "Pause";
    const step = (now) => {
      slider.value = Math.min(STEPS, from + ((now - begun) / PLAY_MS) * STEPS);
      show();
      if (Number(slider.value) >= STEPS || !slider.isConnected) stop();
      else timer = requestAnimationFrame(step);
    };
    timer = requestAnimationFrame(step);
  }

  function stop() {
    cancelAnimationFrame(timer);
    timer = 0;
    said.removeAttribute("aria-live");
    button.textContent = "Play";
  }

  show();
  const frame = (svg, label) => {
    svg.style.minWidth = svg.getAttribute("width") + "px";
    return make("div", { class: "picture", tabindex: "0", role: "group", "aria-label": label }, [svg]);
  };
  return make("section", { class: "run", "aria-label": block.name }, [
    frame(map, "The ranks of the run"),
    make("div", { class: "run-bar" }, [button, slider]),
    said,
    frame(timeline, "Operations against time"),
  ]);
}

function moveCursor(line, share) {
  const x = Number(line.dataset.left) + share * Number(line.dataset.width);
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
}

function withPeers(rank, members) {
  const others = members.filter((each) => each !== rank);
  if (!others.length) return "";
  const shown = others.slice(0, 8).join(", ") + (others.length > 8 ? ", …" : "");
  return " with " + (others.length === 1 ? "rank " : "ranks ") + shown;
}
