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

  // Pages that show one scenario pass it on to each other through the navigation.
  function carry(query) {
    const { hop, speed, rank, rows, chapter, seed_of_quiz, a, b, ...scenario } = query;
    for (const name of ["trip", "mesh", "traffic", "batch", "time", "roofline", "decode"]) {
      const link = document.getElementById("nav-" + name);
      if (link) link.href = new URL(link.href).pathname + window.tokentrip.core.formatQuery(scenario);
    }
  }

  // `make(frame)` fills a page's frame and may return `{destroy}`.
  function definePage(name, make) {
    makers[name] = make;
    if (mounted && mounted.frame.dataset.page === name && !mounted.page) mounted.page = make(mounted.frame);
  }

  async function fetchJson(address, signal) {
    const response = await fetch(address, { signal, headers: { Accept: "application/json" } });
    const body = await response.json().catch(() => ({ error: { text: "The explorer did not answer (" + response.status + ")." } }));
    return body.error || response.ok ? body : { error: { text: "The explorer did not answer (" + response.status + ")." } };
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { definePage, fetchJson, carry });
  new MutationObserver(mount).observe(document.documentElement, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", mount);
})();
