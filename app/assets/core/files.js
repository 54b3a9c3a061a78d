// Names and texts of the files that a page offers.

import { DEFAULT_SCENARIO } from "./address.js";

// A name as part of a file's name.
export function slug(text) {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, "-")
    .replace(/^-|-$/g, "");
}

// What files of a page start with: the scenario, or "my" for one that is no preset, and the page.
export function baseName(query, page) {
  return slug(((query.scenario ?? DEFAULT_SCENARIO) || "my") + " " + page);
}

export function csvText(heads, rows) {
  const cell = (text) => (/[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  return [heads, ...rows].map((row) => row.map((each) => cell(String(each))).join(",") + "\r\n").join("");
}

export function jsonText(value) {
  return JSON.stringify(value, null, 1) + "\n";
}
