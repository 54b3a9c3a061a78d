"use strict";
// Dash draws a page's frame; this fills it. Frames come and go with Dash's own navigation.
(function () {
  const makers = {};
  let mounted = null;

  function mount() {
    const frame = document.querySelector("[data-page]");
    if (mounted && mounted.frame === frame) return;
    mounted?.page?.destroy?.();
    mounted = frame ? { frame, page: makers[frame.dataset.page]?.(frame) } : null;
    markNavigation();
  }

  function markNavigation() {
    for (const link of document.querySelectorAll(".nav-link")) {
      if (new URL(link.href).pathname === location.pathname) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
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

  // `make(frame)` fills a page's frame and may return `{destroy}`.
  function definePage(name, make) {
    makers[name] = make;
    if (mounted && mounted.frame.dataset.page === name && !mounted.page) mounted.page = make(mounted.frame);
  }

  async function fetchJson(address, signal, more) {
    const response = await fetch(address, { signal, headers: { Accept: "application/json" }, ...more });
    const body = await response.json().catch(() => ({ error: { text: "The explorer did not answer (" + response.status + ")." } }));
    return body.error || response.ok ? body : { error: { text: "The explorer did not answer (" + response.status + ")." } };
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { definePage, fetchJson, carry });
  new MutationObserver(mount).observe(document.documentElement, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", mount);
})();
