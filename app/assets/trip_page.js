"use strict";
// The trip page: address → trip → player, and back into the address.
(function () {
  const WAIT_MS = 250;
  const PRESETS = "/api/presets";
  const TOKEN_FIELDS = ["follow", "tokens"];

  function tripPage(frame) {
    const { core, dom } = window.tokentrip;
    const page = { frame, query: core.parseQuery(location.search), player: null, abort: null, presets: [], saveTimer: 0, refused: null };
    page.alert = dom.make("div", { class: "alert", role: "alert", hidden: true });
    page.toolbar = dom.make("div", { class: "toolbar" });
    page.body = dom.make("div", { class: "trip" }, [dom.waiting("Loading the trip …")]);
    frame.replaceChildren(dom.make("h1", { class: "unseen", text: "Trip" }), page.toolbar, page.alert, page.body);
    window.tokentrip.carry(page.query);
    document.addEventListener("keydown", (event) => page.player?.key(event));
    page.change = (changes, keepHop) => change(page, changes, keepHop);
    page.save = () => save(page);
    page.asked = () => askedQuery(page);
    page.card = window.tokentrip.createGpuCard(page);
    loadPresets(page);
    load(page);
  }

  async function loadPresets(page) {
    const found = await window.tokentrip.fetchJson(PRESETS);
    page.presets = found.presets || [];
    if (page.data) showToolbar(page);
  }

  async function load(page) {
    page.abort?.abort();
    const { signal } = (page.abort = new AbortController());
    page.frame.setAttribute("aria-busy", "true");
    try {
      const data = await window.tokentrip.fetchJson("/api/trip" + tripQuery(page.asked()), signal);
      if (signal.aborted) return;
      if (data.error && page.asked().follow && TOKEN_FIELDS.includes(data.error.field)) return refuseTokens(page, data.error);
      if (data.error) showError(page, data.error);
      else showTrip(page, data);
    } catch (error) {
      if (error.name === "AbortError") return;
      showError(page, { text: window.tokentrip.core.UNREACHABLE });
    }
    page.frame.removeAttribute("aria-busy");
  }

  // The map's text as a picture: a big one takes a while, and an early answer has time.
  function withDrawnMap(data) {
    return data.map ? { ...data, drawn: window.tokentrip.dom.parseSvg(data.map) } : data;
  }

  // Only what decides the trip is asked for; the hop, for one, is the player's.
  function tripQuery(query) {
    const { hop, speed, rank, ...asked } = query;
    return window.tokentrip.core.formatQuery(asked);
  }

  // The address without tokens that were refused: they stay in their field, with what is wrong beside it.
  function askedQuery(page) {
    const { follow, ...others } = page.query;
    return page.refused && page.refused.names === follow ? others : page.query;
  }

  // Without the tokens there is still a trip to show.
  function refuseTokens(page, error) {
    page.refused = { names: page.query.follow, error };
    return load(page);
  }

  function showError(page, error) {
    const { dom } = window.tokentrip;
    const parts = error.field
      ? [dom.make("strong", { text: error.field }), document.createTextNode(" " + error.text.slice(error.field.length).replace(/^=/, "= "))]
      : [document.createTextNode(error.text)];
    page.alert.replaceChildren(dom.make("p", {}, parts),
      dom.make("button", { type: "button", class: "plain", text: "Back to six-cuts", onclick: () => startOver(page, "six-cuts") }));
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
  function change(page, changes, keepHop) {
    page.query = { ...page.query, ...changes };
    page.refused = null;
    for (const [key, value] of Object.entries(page.query)) if (value === null) delete page.query[key];
    page.keepHop = Boolean(keepHop && page.player);
    if (!keepHop) delete page.query.hop;
    save(page);
    load(page);
  }

  function save(page) {
    clearTimeout(page.saveTimer);
    window.tokentrip.carry(page.query);
    history.replaceState(history.state, "", location.pathname + window.tokentrip.core.formatQuery(page.query));
  }

  function saveHop(page) {
    clearTimeout(page.saveTimer);
    page.saveTimer = setTimeout(() => {
      const { hop, speed } = page.player.state();
      page.query.hop = hop || null;
      page.query.speed = speed === 1 ? null : speed;
      for (const key of ["hop", "speed"]) if (page.query[key] === null) delete page.query[key];
      save(page);
    }, WAIT_MS);
  }

  function showTrip(page, data) {
    const { createPlayer, dom, createPredict } = window.tokentrip;
    if (page.keepHop) page.query.hop = page.player.state().hop;
    page.keepHop = false;
    page.player?.destroy();
    page.data = data;
    if (page.asked().follow && !data.tokens) {
      page.query = window.tokentrip.core.aloneQuery(page.query, data.token);
      save(page);
    }
    page.alert.hidden = true;
    page.predict = createPredict(() => page.player.forward());
    page.player = createPlayer(data, {
      hop: page.query.hop, speed: Number(page.query.speed) || 1,
      gpus: page.card.handlers,
      onHop: (hop) => { page.predict.show(data.hops[hop.index + 1]); saveHop(page); },
      onRest: () => saveHop(page),
      tripOf: (token) => location.pathname + window.tokentrip.core.formatQuery(window.tokentrip.core.ownTripQuery(page.query, token, data.token)),
    });
    const { map, counters, panel, strip, controls, live, tokens } = page.player.parts;
    const left = dom.make("div", { class: "left" }, [map, page.card.tip, window.tokentrip.legend(data)]);
    const right = dom.make("div", { class: "right" }, [counters, page.card.element, panel, tokens, page.predict.element]);
    const { crossingsText } = window.tokentrip.core;
    const dock = dom.make("div", { class: "dock" }, [controls, strip,
      dom.make("p", { class: "strip-note", text: crossingsText(data.crossings_by_axis, data.island_word) })]);
    page.body.replaceChildren(left, right, dock, live);
    showToolbar(page);
    page.card.restore();
    centerHome(page, map);
  }

  // A map wider than its frame starts where the token does.
  function centerHome(page, map) {
    const box = page.data.boxes[page.data.home];
    if (box && map.scrollWidth > map.clientWidth) map.scrollLeft = box[0] - map.clientWidth / 2;
  }

  function showToolbar(page) {
    const focused = document.activeElement?.dataset.keep;
    page.toolbar.replaceChildren(...window.tokentrip.toolbarParts(page, startOver, change));
    if (focused) page.toolbar.querySelector(`[data-keep="${focused}"]`)?.focus();
  }

  window.tokentrip.definePage("trip", tripPage);
  if (location.pathname === "/") {
    window.tokentrip.askEarly("/api/trip" + tripQuery(window.tokentrip.core.parseQuery(location.search)), withDrawnMap);
    window.tokentrip.askEarly(PRESETS);
  }
})();
