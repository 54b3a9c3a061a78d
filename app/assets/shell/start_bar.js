// Where a mesh starts from: a preset, launch flags, or a file of the reader's own.

import { DEFAULT_SCENARIO, formatQuery, withoutModel } from "../core/address.js";
import { labelled, make, option } from "./dom.js";
import { fetchJson } from "./fetch.js";

const MAX_BYTES = 262_144;

export function startBar(page) {
  const note = make("p", { class: "subtitle", role: "status" });
  const chosen = page.query.scenario ?? DEFAULT_SCENARIO;
  const select = make("select", { onchange: () => page.reset({ scenario: select.value }) }, [
    option(chosen, chosen || DEFAULT_SCENARIO, true),
  ]);
  const file = make("input", {
    type: "file",
    accept: ".json,.toml",
    onchange: () => file.files[0] && send(page, file, note),
  });
  page.start.replaceChildren(
    labelled("Start from", select),
    labelled("or a scenario file, or a model's config.json", file),
    flagsForm(page, note),
    note,
  );
  fillPresets(page, select);
}

async function fillPresets(page, select) {
  const found = await fetchJson("/api/presets");
  const chosen = page.query.scenario ?? DEFAULT_SCENARIO;
  const own = chosen ? [] : [option("", "my own", true)];
  const presets = (found.presets || []).map((each) => option(each.name, each.name, each.name === chosen));
  select.replaceChildren(...own, ...presets);
}

// A launch line, with the number of GPUs when the line does not say it.
function flagsForm(page, note) {
  const line = make("input", {
    type: "text",
    placeholder: "vllm serve -tp 2 -dp 8 --enable-expert-parallel",
    spellcheck: "false",
    class: "line",
  });
  const gpus = make("input", { type: "number", min: 1, inputmode: "numeric", placeholder: "16" });
  const onsubmit = (event) => {
    event.preventDefault();
    readFlags(page, line.value, gpus.value, note);
  };
  return make("form", { class: "flags", onsubmit }, [
    labelled("or launch flags", line),
    labelled("GPUs", gpus),
    make("button", { type: "submit", text: "Read flags" }),
  ]);
}

async function readFlags(page, line, gpus, note) {
  const found = await fetchJson("/api/flags" + formatQuery({ ...page.query, line, gpus }));
  if (found.error) {
    note.textContent = found.error.text;
    return;
  }
  const unknown = found.unknown.map((flag) => flag + " is not known here.");
  note.textContent = ["Read as " + found.framework + ".", ...found.warnings, ...unknown].join(" ");
  page.reset(found.keys);
}

async function send(page, input, note) {
  const chosen = input.files[0];
  input.value = "";
  if (chosen.size > MAX_BYTES) {
    const limit = MAX_BYTES.toLocaleString("en");
    note.textContent = chosen.name + " is over " + limit + " bytes: send a scenario or a config.json.";
    return;
  }
  const address = "/api/upload?name=" + encodeURIComponent(chosen.name);
  const response = await fetch(address, { method: "POST", body: chosen });
  const found = await response.json();
  if (found.error) {
    note.textContent = found.error.text;
    return;
  }
  note.textContent = ["Read " + chosen.name + ".", ...found.warnings].join(" ");
  page.reset(found.reset ? found.keys : { ...withoutModel(page.query), ...found.keys });
}
