// The mesh page: the map of where everything lives, beside it the sizes that make it, and what the engine says
// of them, at once.

import { changedQuery, DEFAULT_SCENARIO, formatQuery, omit, parseQuery, tripQuery } from "../core/address.js";
import { UNREACHABLE } from "../core/errors.js";
import { endsOf } from "../core/lines.js";
import { keepGpus } from "../core/lock.js";
import { readScene } from "../core/scene.js";
import { meshQuestion } from "../core/words.js";
import { escapeTo } from "../shell/escape.js";
import { make, waiting } from "../shell/dom.js";
import { fetchJson } from "../shell/fetch.js";
import { carryScenario, onBack, pushAddress, writeAddress } from "../shell/pages.js";
import { firstScreen, showPicker } from "../trip/first.js";
import { showTripView } from "../trip/trip_view.js";
import { buildMeshForm, sizesOf } from "./mesh_form.js";
import { showWorking, showWrong } from "./verdict.js";

const WAIT_MS = 200;

export function meshPage(frame) {
  const page = {
    frame,
    query: parseQuery(location.search),
    controls: new Map(),
    values: {},
    presets: [],
    locked: true,
    timer: 0,
    abort: null,
    player: null,
    said: make("p", { class: "follows", role: "status" }),
    form: make("form", {
      class: "mesh-form",
      "aria-label": "Mesh",
      onsubmit: (event) => event.preventDefault(),
    }),
    verdict: make("section", { class: "mesh-verdict", "aria-label": "What it does", "aria-live": "polite" }),
    body: make("div", { class: "trip mesh-map" }, [waiting("Placing the mesh …")]),
  };
  page.set = (changes) => set(page, changes);
  page.resize = (axis, value) => resize(page, axis, value);
  page.reset = (query) => reset(page, query);
  page.startOver = (scenario) => reset(page, { scenario });
  page.change = (changes) => set(page, changes);
  page.reroute = (layer, changes) => set(page, changes);
  page.save = () => writeAddress(page.query);
  page.asked = () => page.query;
  // A launch that is not read leaves no other mesh standing as if it were its own.
  page.unread = () => {
    page.verdict.replaceChildren();
    page.body.classList.add("stale");
  };
  lay(page);
  loadPresets(page);
  load(page);
}

function lay(page) {
  page.frame.classList.add("playing-page");
  const side = make("div", { class: "mesh-side" }, [page.form, page.verdict]);
  page.frame.replaceChildren(firstScreen(page), make("div", { class: "mesh-view" }, [page.body, side]));
  document.addEventListener("keydown", (event) => page.player?.key(event));
  escapeTo(() => page.card?.close());
  onBack((query) => {
    page.query = query;
    load(page);
  });
}

async function loadPresets(page) {
  const found = await fetchJson("/api/presets").catch(() => ({}));
  page.presets = found.presets || [];
  showPicker(page);
}

// Sizes that follow from others are left to follow. A moment later, for a reader who is still typing.
function set(page, changes) {
  page.query = changedQuery(page.query, { ...changes, hop: null });
  pushAddress(page.query);
  clearTimeout(page.timer);
  page.timer = setTimeout(() => load(page), WAIT_MS);
}

function reset(page, query) {
  page.query = query;
  page.said.textContent = "";
  pushAddress(query);
  load(page);
}

// A size of the attention mesh: another follows, so that the GPUs stay as many, unless the reader unlocked them.
function resize(page, axis, value) {
  const sizes = sizesOf(page.values);
  if (!page.locked) {
    const before = sizes.tp * sizes.cp * sizes.dp * sizes.pp;
    const after = (before / sizes[axis]) * value;
    page.said.textContent =
      before === after ? "" : "GPUs " + before.toLocaleString("en") + " → " + after.toLocaleString("en");
    set(page, { ["mesh." + axis]: value, "cluster.nodes": "" });
    return;
  }
  const { changes, said, choices } = keepGpus(sizes, axis, value);
  if (choices) {
    page.said.textContent =
      axis.toUpperCase() +
      " " +
      value +
      " cannot keep the number of GPUs: take " +
      choices.join(", ") +
      ", or unlock it.";
    return;
  }
  page.said.textContent = said && axis.toUpperCase() + " " + value + ": " + said + ".";
  const keys = { replica: "token.replica" };
  const given = Object.entries(changes).map(([key, size]) => [keys[key] ?? "mesh." + key, size]);
  set(page, Object.fromEntries(given));
}

async function load(page) {
  carryScenario(page.query);
  page.abort?.abort();
  const { signal } = (page.abort = new AbortController());
  page.frame.setAttribute("aria-busy", "true");
  try {
    const asked = omit(page.query, "hop", "speed", "rank");
    const data = await fetchJson("/api/mesh" + formatQuery(asked), signal);
    if (data.error) wrong(page, data.error);
    else await show(page, data, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    wrong(page, { text: UNREACHABLE });
  }
  showPicker(page);
  page.frame.removeAttribute("aria-busy");
}

function wrong(page, error) {
  page.body.classList.add("stale");
  page.body.querySelector(".loading")?.remove();
  showWrong(page, error);
}

async function show(page, data, signal) {
  if (!page.controls.size) buildMeshForm(page, data.fields);
  page.values = { ...data.values, ...data.token };
  for (const control of page.controls.values()) control.show(page.values, data.wrong?.field);
  if (data.wrong) {
    wrong(page, data.wrong);
    return;
  }
  showWorking(page, data);
  const trip = await fetchJson("/api/trip" + formatQuery(tripQuery(page.query)), signal);
  if (trip.error) wrong(page, trip.error);
  else if (!signal.aborted) showMap(page, readScene(trip));
}

function showMap(page, scene) {
  page.body.classList.remove("stale");
  const ask = (hop) => page.question.replaceChildren(...question(page, scene, hop));
  const start = scene.hops.findIndex((hop) => hop.moves.length);
  showTripView(page, scene, page.body, { hop: page.query.hop ?? Math.max(0, start), onHop: ask });
}

function question({ query }, scene, hop) {
  const place = hop.layer ? "Layer " + hop.layer + ", " : "";
  return [
    make("h1", { text: meshQuestion(scene, endsOf(hop).size) }),
    make("p", { class: "promise", text: place + hop.words.title + ". Open: the rows that it needs." }),
    make("p", { class: "subtitle", text: (query.scenario ?? DEFAULT_SCENARIO) + ": " + scene.subtitle }),
  ];
}
