// What is seen, as files: made in the page from what the server said, so that a file holds what the page shows.

import { whyFailed } from "../core/errors.js";
import { make } from "./dom.js";

const TYPES = {
  json: "application/json",
  csv: "text/csv",
  md: "text/markdown",
  svg: "image/svg+xml",
  png: "image/png",
  toml: "text/plain",
};
const KEEP_MS = 10_000;

export function saveFile(name, content) {
  const href = URL.createObjectURL(new Blob([content], { type: TYPES[name.split(".").pop()] }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), KEEP_MS);
}

// `list()` gives the files of the moment as { name, content }; `content()` gives what is in one, or a promise.
export function downloadMenu(list) {
  const inside = make("div", { class: "menu-list" });
  const said = make("p", { class: "help", role: "status" });
  const save = async (file) => {
    said.textContent = "";
    try {
      saveFile(file.name, await file.content());
    } catch (error) {
      said.textContent = file.name + " could not be made: " + whyFailed(error);
    }
  };
  const fill = () => {
    const buttons = list().map((file) =>
      make("button", { type: "button", text: file.name, onclick: () => save(file) }),
    );
    inside.replaceChildren(...buttons, said);
  };
  const onOpen = (event) => {
    if (event.target.open) fill();
  };
  return make("details", { class: "menu downloads", ontoggle: onOpen }, [
    make("summary", { text: "Export" }),
    inside,
  ]);
}
