// Where a mesh starts from: a preset, what launches a framework, or a file of the reader's own.

import { DEFAULT_SCENARIO } from "../core/address.js";
import { labelled, make, option } from "./dom.js";
import { fetchJson } from "./fetch.js";
import { launchBox } from "./launch_box.js";

export function startBar(page) {
  const chosen = page.query.scenario ?? DEFAULT_SCENARIO;
  const select = make("select", { onchange: () => page.reset({ scenario: select.value }) }, [
    option(chosen, chosen || DEFAULT_SCENARIO, true),
  ]);
  const placed = page.read;
  const box = launchBox(page);
  page.start.replaceChildren(labelled("Start from", select), box, ...(placed ? [] : [page.read]));
  fillPresets(page, select);
}

async function fillPresets(page, select) {
  const found = await fetchJson("/api/presets");
  const chosen = page.query.scenario ?? DEFAULT_SCENARIO;
  const own = chosen ? [] : [option("", "my own", true)];
  const presets = (found.presets || []).map((each) => option(each.name, each.name, each.name === chosen));
  select.replaceChildren(...own, ...presets);
}
