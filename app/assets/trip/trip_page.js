// The trip page: address → trip → player, and back into the address.

import {
  aloneQuery,
  changedQuery,
  DEFAULT_SCENARIO,
  formatQuery,
  omit,
  ownTripQuery,
  parseQuery,
  tripQuery,
} from "../core/address.js";
import { fixValues, UNREACHABLE } from "../core/errors.js";
import { readScene } from "../core/scene.js";
import { escapeTo } from "../shell/escape.js";
import { make, waiting } from "../shell/dom.js";
import { askEarly, fetchJson } from "../shell/fetch.js";
import { carryScenario, onBack, pushAddress, writeAddress } from "../shell/pages.js";
import { firstScreen, showPicker, showQuestion } from "./first.js";
import { playFirstLayer } from "./opening.js";
import { showTripView } from "./trip_view.js";

const SAVE_WAIT_MS = 250;
const PRESETS = "/api/presets";
// Fields of an error that are about the tokens to follow.
const TOKEN_FIELDS = ["follow", "tokens"];

export function tripPage(frame) {
  const page = {
    frame,
    query: parseQuery(location.search),
    player: null,
    abort: null,
    presets: [],
    saveTimer: 0,
    refused: null,
    keepHop: false,
    whenShown: null,
    alert: make("div", { class: "alert", role: "alert", hidden: true }),
    body: make("div", { class: "trip" }, [waiting("Loading the trip …")]),
  };
  page.startOver = (scenario) => startOver(page, { scenario });
  page.reset = (query) => startOver(page, query);
  page.change = (changes, keepHop) => change(page, changes, keepHop);
  page.reroute = (layer, changes) => reroute(page, layer, changes);
  // A launch that is not read leaves no other mesh standing as if it were its own.
  page.unread = () => page.body.classList.add("stale");
  page.save = () => save(page);
  page.asked = () => askedQuery(page);
  frame.classList.add("playing-page");
  frame.replaceChildren(firstScreen(page), page.alert, page.body);
  showPicker(page);
  carryScenario(page.query);
  document.addEventListener("keydown", (event) => page.player?.key(event));
  escapeTo(() => page.card?.close());
  onBack((query) => {
    page.query = query;
    page.keepHop = false;
    load(page);
  });
  loadPresets(page);
  load(page);
}

export function askTripEarly() {
  askEarly("/api/trip" + formatQuery(tripQuery(parseQuery(location.search))));
  askEarly(PRESETS);
}

async function loadPresets(page) {
  const found = await fetchJson(PRESETS);
  page.presets = found.presets || [];
  showPicker(page);
}

async function load(page) {
  page.abort?.abort();
  const { signal } = (page.abort = new AbortController());
  page.frame.setAttribute("aria-busy", "true");
  try {
    const data = await fetchJson("/api/trip" + formatQuery(tripQuery(page.asked())), signal);
    if (signal.aborted) return;
    if (data.error && page.asked().follow && TOKEN_FIELDS.includes(data.error.field)) {
      await refuseTokens(page, data.error);
      return;
    }
    if (data.error) showError(page, data.error);
    else showTrip(page, readScene(data));
  } catch (error) {
    if (error.name === "AbortError") return;
    showError(page, { text: UNREACHABLE });
  }
  page.frame.removeAttribute("aria-busy");
}

// The address without tokens that were refused: they stay in their field, with what is wrong beside it.
function askedQuery(page) {
  const isRefused = page.refused && page.refused.names === page.query.follow;
  return isRefused ? omit(page.query, "follow") : page.query;
}

// Without the tokens there is still a trip to show.
function refuseTokens(page, error) {
  page.refused = { names: page.query.follow, error };
  return load(page);
}

// The last good picture stays, greyed; the fault, and values that work, stand above it.
function showError(page, { field, text, fix }) {
  const rest = field ? " " + text.slice(field.length).replace(/^=/, "= ") : text;
  const again = () => startOver(page, { scenario: DEFAULT_SCENARIO });
  const key = field?.includes(".") ? field : null;
  const values = key ? fixValues(fix || "") : [];
  const fixes = values.map((value) =>
    make("button", {
      type: "button",
      text: key.split(".").pop() + " = " + value,
      onclick: () => change(page, { [key]: value }),
    }),
  );
  page.alert.replaceChildren(
    make("p", {}, [field ? make("strong", { text: field }) : null, rest]),
    make("div", { class: "options" }, [
      ...fixes,
      make("button", { type: "button", class: "plain", text: "Back to " + DEFAULT_SCENARIO, onclick: again }),
    ]),
  );
  page.alert.hidden = false;
  page.body.classList.add("stale");
  page.body.querySelector(".loading")?.remove();
}

function startOver(page, query) {
  page.query = query;
  page.refused = null;
  page.keepHop = false;
  push(page);
  load(page);
}

// New values for keys of the address; null takes a key out. The trip starts again at its first hop.
function change(page, changes, keepHop = false) {
  page.query = changedQuery(page.query, changes);
  page.refused = null;
  page.keepHop = Boolean(keepHop && page.player);
  if (!keepHop) delete page.query.hop;
  push(page);
  load(page);
}

// Another pick for a layer: seen at once, from the hop before its dispatch.
function reroute(page, layer, changes) {
  page.whenShown = (scene) => {
    const at = scene.hops.findIndex((hop) => hop.layer === layer && hop.kind === "dispatch");
    if (at < 1) return;
    page.player.go(at - 1);
    page.player.playTo(at, () => {});
  };
  change(page, changes, true);
}

// Another mesh or token is a place to come back to.
function push(page) {
  clearTimeout(page.saveTimer);
  carryScenario(page.query);
  pushAddress(page.query);
}

function save(page) {
  clearTimeout(page.saveTimer);
  carryScenario(page.query);
  writeAddress(page.query);
}

// A moment later: a hop that is passed by is not written.
function saveHop(page) {
  clearTimeout(page.saveTimer);
  page.saveTimer = setTimeout(() => {
    if (!page.player) return;
    const { hop, speed } = page.player.state();
    page.query = changedQuery(page.query, { hop: hop || null, speed: speed === 1 ? null : speed });
    save(page);
  }, SAVE_WAIT_MS);
}

function showTrip(page, scene) {
  if (page.keepHop) page.query.hop = page.player.state().hop;
  page.keepHop = false;
  page.data = scene;
  if (page.asked().follow && !scene.tokens) {
    page.query = aloneQuery(page.query, scene.token);
    save(page);
  }
  page.alert.hidden = true;
  page.body.classList.remove("stale");
  showTripView(page, scene, page.body, {
    hop: page.query.hop,
    speed: Number(page.query.speed) || 1,
    onHop: () => saveHop(page),
    onRest: () => saveHop(page),
    tripOf: (token) => location.pathname + formatQuery(ownTripQuery(page.query, token, scene.token)),
  });
  showQuestion(page, scene);
  showPicker(page);
  page.whenShown?.(scene);
  page.whenShown = null;
  playFirstLayer(page, scene);
}
