// Dash draws the frame; this fills it with the page of the address. Links between pages load anew.

import { compareQuery, formatQuery, parseQuery, scenarioQuery } from "../core/address.js";
import { pageAddress, pathOf } from "./place.js";
import { make } from "./dom.js";
import { showTheme } from "./theme.js";

// `pages` has for each name its `path`, `fill(frame)` and, where it helps, `askEarly()`, which asks for the
// page's data while Dash still loads.
export function startPages(pages) {
  pages[document.documentElement.dataset.page]?.askEarly?.();
  const watch = new MutationObserver(() => {
    const frame = document.getElementById("page");
    if (!frame) return;
    watch.disconnect();
    mount(frame, pages);
  });
  watch.observe(document.documentElement, { childList: true, subtree: true });
}

function mount(frame, pages) {
  showTheme();
  const links = [...document.querySelectorAll(".nav-link")];
  const link = links.find((each) => pathOf(new URL(each.href).pathname) === pathOf());
  link?.setAttribute("aria-current", "page");
  frame.dataset.page = document.documentElement.dataset.page ?? "";
  listenToMenu();
  const fill = pages[frame.dataset.page]?.fill ?? noPage;
  fill(frame);
}

// On a phone the pages are behind a button.
function listenToMenu() {
  const button = document.getElementById("menu");
  button?.setAttribute("aria-expanded", "false");
  button?.addEventListener("click", () => {
    const open = button.closest(".top").classList.toggle("open");
    button.setAttribute("aria-expanded", String(open));
  });
}

function noPage(frame) {
  const words = "There is nothing at " + location.pathname + ". ";
  frame.replaceChildren(
    make("h1", { text: "No such page" }),
    make("p", {}, [words, make("a", { href: pageAddress("/"), text: "To the trip" })]),
  );
}

// Pages pass their scenario on to each other through the navigation.
export function carryScenario(query) {
  const scenario = scenarioQuery(query);
  for (const link of document.querySelectorAll(".nav-link")) {
    const own = link.id === "nav-compare" ? compareQuery(scenario) : scenario;
    link.href = new URL(link.href).pathname + formatQuery(own);
  }
}

export function writeAddress(query) {
  history.replaceState(history.state, "", location.pathname + formatQuery(query));
}

// Another mesh or token is a place of its own: Back leads to the one before.
export function pushAddress(query) {
  const address = location.pathname + formatQuery(query);
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
}

// `open(query)` hears where Back and Forward lead.
export function onBack(open) {
  addEventListener("popstate", () => open(parseQuery(location.search)));
}
