"use strict";
// Dash draws the frame; this fills it with the page of the address. Links between pages load anew.
(function () {
  const makers = {};
  const early = new Map();
  const watch = new MutationObserver(mount);

  function mount() {
    const frame = document.getElementById("page");
    if (!frame) return;
    watch.disconnect();
    const link = [...document.querySelectorAll(".nav-link")].find((each) => new URL(each.href).pathname === location.pathname);
    link?.setAttribute("aria-current", "page");
    frame.dataset.page = link ? link.textContent.toLowerCase() : "";
    (makers[frame.dataset.page] ?? noPage)(frame);
  }

  function noPage(frame) {
    const { make } = window.tokentrip.dom;
    frame.replaceChildren(make("h1", { text: "No such page" }),
      make("p", {}, ["There is nothing at " + location.pathname + ". ", make("a", { href: "/", text: "To the trip" })]));
  }

  // Pages pass their scenario on to each other through the navigation.
  function carry(query) {
    const { compareQuery, formatQuery, scenarioQuery } = window.tokentrip.core;
    const scenario = scenarioQuery(query);
    for (const link of document.querySelectorAll(".nav-link")) {
      const own = link.id === "nav-compare" ? compareQuery(scenario) : scenario;
      link.href = new URL(link.href).pathname + formatQuery(own);
    }
  }

  // `make(frame)` fills a page's frame.
  function definePage(name, make) {
    makers[name] = make;
  }

  // A question whose answer the page will need: asked while Dash still loads, and kept for whoever asks it again.
  function askEarly(address, prepare = (data) => data) {
    early.set(address, fetchJson(address).then(prepare));
    early.get(address).catch(() => early.delete(address));
  }

  async function fetchJson(address, signal, more) {
    const asked = early.get(address);
    if (asked && !more) {
      early.delete(address);
      return asked;
    }
    const response = await fetch(address, { signal, headers: { Accept: "application/json" }, ...more });
    const body = await response.json().catch(() => ({ error: { text: "The explorer did not answer (" + response.status + ")." } }));
    return body.error || response.ok ? body : { error: { text: "The explorer did not answer (" + response.status + ")." } };
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { definePage, fetchJson, askEarly, carry });
  watch.observe(document.documentElement, { childList: true, subtree: true });
})();
