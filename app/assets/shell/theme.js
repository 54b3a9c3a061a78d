// Light, dark, or as the system says: a choice kept in the browser.

const NAMES = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const KEY = "tokentrip-theme";

// Sets the theme before anything is painted, and lets the button turn it.
export function startTheme() {
  apply(stored());
  document.addEventListener("click", (event) => {
    if (event.target.id === "theme") turn();
  });
}

// The button's words, once Dash has drawn it.
export function showTheme() {
  apply(stored());
}

function stored() {
  try {
    return localStorage.getItem(KEY) || "";
  } catch {
    return "";
  }
}

function apply(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const button = document.getElementById("theme");
  if (button) button.textContent = NAMES[theme];
}

function turn() {
  const order = Object.keys(NAMES);
  const now = order.indexOf(document.documentElement.dataset.theme || "");
  const theme = order[(now + 1) % order.length];
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A private window keeps nothing.
  }
  apply(theme);
}
