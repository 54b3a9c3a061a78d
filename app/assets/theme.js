"use strict";
// Light, dark, or as the system says: a choice kept in the browser.
(function () {
  const NAMES = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };
  const KEY = "tokentrip-theme";

  function stored() {
    try { return localStorage.getItem(KEY) || ""; } catch { return ""; }
  }

  function apply(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = NAMES[theme];
  }

  function turn() {
    const order = Object.keys(NAMES);
    const theme = order[(order.indexOf(document.documentElement.dataset.theme || "") + 1) % order.length];
    try { localStorage.setItem(KEY, theme); } catch { /* private windows keep nothing */ }
    apply(theme);
  }

  apply(stored());
  document.addEventListener("click", (event) => { if (event.target.id === "theme") turn(); });
  window.tokentrip = Object.assign(window.tokentrip || {}, { applyTheme: () => apply(stored()) });
})();
