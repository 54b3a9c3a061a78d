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
import { UNREACHABLE } from "../core/errors.js";
import { readScene } from "../core/scene.js";
import { crossingsText } from "../core/words.js";
import { legend } from "../map/legend.js";
import { centerHome } from "../map/map.js";
import { createPlayer } from "../player/player.js";
import { createPredict } from "../player/predict.js";
import { make, parseSvg, waiting } from "../shell/dom.js";
import { askEarly, fetchJson } from "../shell/fetch.js";
import { carryScenario, writeAddress } from "../shell/pages.js";
import { createGpuCard } from "./gpu_card.js";
import { toolbarParts } from "./toolbar.js";

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
    alert: make("div", { class: "alert", role: "alert", hidden: true }),
    toolbar: make("div", { class: "toolbar" }),
    body: make("div", { class: "trip" }, [waiting("Loading the trip …")]),
  };
  frame.replaceChildren(make("h1", { class: "unseen", text: "Trip" }), page.toolbar, page.alert, page.body);
  carryScenario(page.query);
  document.addEventListener("keydown", (event) => page.player?.key(event));
  page.startOver = (scenario) => startOver(page, scenario);
  page.change = (changes, keepHop) => change(page, changes, keepHop);
  page.save = () => save(page);
  page.asked = () => askedQuery(page);
  page.card = createGpuCard(page);
  loadPresets(page);
  load(page);
}

export function askTripEarly() {
  askEarly("/api/trip" + formatQuery(tripQuery(parseQuery(location.search))), withDrawnMap);
  askEarly(PRESETS);
}

// The map's text as a picture: a big one takes a while, and an early answer has time.
function withDrawnMap(data) {
  return data.map ? { ...data, drawn: parseSvg(data.map) } : data;
}

async function loadPresets(page) {
  const found = await fetchJson(PRESETS);
  page.presets = found.presets || [];
  if (page.data) showToolbar(page);
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

function showError(page, { field, text }) {
  const rest = field ? " " + text.slice(field.length).replace(/^=/, "= ") : text;
  const again = () => startOver(page, DEFAULT_SCENARIO);
  page.alert.replaceChildren(
    make("p", {}, [field ? make("strong", { text: field }) : null, rest]),
    make("button", { type: "button", class: "plain", text: "Back to " + DEFAULT_SCENARIO, onclick: again }),
  );
  page.alert.hidden = false;
  page.body.querySelector(".loading")?.remove();
}

function startOver(page, scenario) {
  page.query = { scenario };
  page.refused = null;
  page.keepHop = false;
  save(page);
  load(page);
}

// New values for keys of the address; null takes a key out. The trip starts again at its first hop.
function change(page, changes, keepHop = false) {
  page.query = changedQuery(page.query, changes);
  page.refused = null;
  page.keepHop = Boolean(keepHop && page.player);
  if (!keepHop) delete page.query.hop;
  save(page);
  load(page);
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
    const { hop, speed } = page.player.state();
    page.query = changedQuery(page.query, { hop: hop || null, speed: speed === 1 ? null : speed });
    save(page);
  }, SAVE_WAIT_MS);
}

function showTrip(page, scene) {
  if (page.keepHop) page.query.hop = page.player.state().hop;
  page.keepHop = false;
  page.player?.destroy();
  page.data = scene;
  if (page.asked().follow && !scene.tokens) {
    page.query = aloneQuery(page.query, scene.token);
    save(page);
  }
  page.alert.hidden = true;
  page.predict = createPredict(() => page.player.forward());
  page.player = createPlayer(scene, {
    hop: page.query.hop,
    speed: Number(page.query.speed) || 1,
    gpus: page.card.handlers,
    onHop: (hop) => {
      page.predict.show(scene.hops[hop.index + 1]);
      saveHop(page);
    },
    onRest: () => saveHop(page),
    tripOf: (token) => location.pathname + formatQuery(ownTripQuery(page.query, token, scene.token)),
  });
  lay(page, scene);
  showToolbar(page);
  page.card.restore();
  centerHome(scene, page.player.parts.map);
}

function lay(page, scene) {
  const { map, counters, panel, strip, controls, live, tokens } = page.player.parts;
  const note = crossingsText(scene.crossings_by_axis, scene.domain_word);
  page.body.replaceChildren(
    make("div", { class: "left" }, [map, page.card.tip, legend(scene)]),
    make("div", { class: "right" }, [counters, page.card.element, panel, tokens, page.predict.element]),
    make("div", { class: "dock" }, [controls, strip, make("p", { class: "strip-note", text: note })]),
    live,
  );
}

function showToolbar(page) {
  const focused = document.activeElement?.dataset.keep;
  page.toolbar.replaceChildren(...toolbarParts(page));
  if (focused) page.toolbar.querySelector(`[data-keep="${focused}"]`)?.focus();
}
