// The address of what is seen, into the clipboard.

import { make } from "../shell/dom.js";

const SAID_MS = 1600;

export function copyButton() {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy it from the address bar";
    }
    setTimeout(() => {
      button.textContent = "Copy link";
    }, SAID_MS);
  };
  const button = make("button", { type: "button", class: "copy-link", text: "Copy link", onclick: copy });
  return button;
}
