// What is seen, for others: its address, its picture, a frame for another page, and the full screen.

import { formatQuery, omit } from "../core/address.js";
import { whyFailed } from "../core/errors.js";
import { ownAddress } from "../shell/place.js";
import { make } from "../shell/dom.js";
import { fetchTripFile } from "../shell/fetch.js";

const SAID_MS = 1600;
const FRAME = { width: 960, height: 720 };

export function copyButton() {
  const button = make("button", {
    type: "button",
    class: "copy-link",
    text: "Copy link",
    onclick: () =>
      said(button, () => navigator.clipboard.writeText(location.href), "Copy it from the address bar"),
  });
  return button;
}

// Entries for the menu of files; the frame only where the server lets others frame it.
export function shareEntries(page) {
  const entry = (text, act, instead) => {
    const button = make("button", { type: "button", text, onclick: () => said(button, act, instead) });
    return button;
  };
  const shown = () =>
    formatQuery({ ...omit(page.asked(), "speed", "rank", "rows"), hop: page.player.state().hop });
  const framed = "embed" in document.documentElement.dataset;
  return [
    entry("Copy image", () => copyImage(shown()), "Save it as png below"),
    framed ? entry("Copy iframe", () => copyFrame(shown()), "The browser refuses to copy") : null,
    make("button", { type: "button", text: "Present", onclick: present }),
  ];
}

// A button that says for a moment how it went.
async function said(button, act, instead) {
  const text = button.textContent;
  try {
    await act();
    button.textContent = "Copied";
  } catch (error) {
    button.textContent =
      error.name === "NotAllowedError" || error.name === "TypeError" ? instead : whyFailed(error);
  }
  setTimeout(() => {
    button.textContent = text;
  }, SAID_MS);
}

// The promise goes in at once: a browser that waited for the picture would have forgotten the press.
function copyImage(query) {
  const picture = fetchTripFile("trip.png", query).then((blob) => new Blob([blob], { type: "image/png" }));
  return navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
}

function copyFrame(query) {
  const frame = make("iframe", {
    src: location.origin + ownAddress("/embed" + query),
    title: "One token's trip through a GPU mesh",
    loading: "lazy",
    ...FRAME,
  });
  frame.style.border = "0";
  return navigator.clipboard.writeText(frame.outerHTML);
}

// The whole screen with larger type, for a room; Escape or the end of the full screen leaves it.
function present(event) {
  event.target.closest("details")?.removeAttribute("open");
  const root = document.documentElement;
  const leave = () => {
    root.classList.remove("presenting");
    document.removeEventListener("fullscreenchange", onChange);
    document.removeEventListener("keydown", onKey, true);
  };
  const onChange = () => {
    if (!document.fullscreenElement) leave();
  };
  const onKey = (key) => {
    if (key.key !== "Escape") return;
    key.preventDefault();
    if (document.fullscreenElement) document.exitFullscreen();
    leave();
  };
  root.classList.add("presenting");
  document.addEventListener("keydown", onKey, true);
  root
    .requestFullscreen?.()
    .then(() => document.addEventListener("fullscreenchange", onChange))
    .catch(() => {}); // refused: the larger type stays, and Escape leaves it
}
