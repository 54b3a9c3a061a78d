// Above the map: which scenario, which token, which picks.

import { DEFAULT_SCENARIO, rerollChanges } from "../core/address.js";
import { labelled, make, option } from "../shell/dom.js";
import { exportMenu } from "./export_menu.js";
import { followForm } from "./follow.js";

const SAID_MS = 1600;

export function toolbarParts(page) {
  const { token, tokens, folded, subtitle } = page.data;
  return [
    labelled("Scenario", scenarioSelect(page)),
    tokens ? null : positionField(page, token),
    token.replicas > 1 ? replicaField(page, token) : null,
    followForm(page),
    token.top_k ? rerollButton(page, token) : null,
    folded || page.query.rows ? rowsButton(page) : null,
    copyButton(),
    exportMenu(page),
    make("p", { class: "subtitle", text: subtitle }),
  ].filter(Boolean);
}

function scenarioSelect(page) {
  const chosen = page.query.scenario || DEFAULT_SCENARIO;
  const names = page.presets.length ? page.presets.map((each) => each.name) : [chosen];
  const select = make(
    "select",
    { onchange: () => page.startOver(select.value) },
    names.map((name) => option(name, name, name === chosen)),
  );
  return select;
}

function positionField(page, token) {
  const [first, last] = token.positions;
  const shown = first.toLocaleString("en");
  const range = last === null ? "from " + shown : shown + "–" + last.toLocaleString("en");
  const limits = { value: token.position, min: first, max: last };
  return labelled("Position, " + range, numberField(page, "token.position", limits));
}

function replicaField(page, token) {
  const max = token.replicas - 1;
  const limits = { value: token.replica, min: 0, max };
  return labelled("Replica, 0–" + max, numberField(page, "token.replica", limits));
}

// Another token: its own GPU and, for one token, the tokens followed no longer apply.
function numberField(page, key, { value, min, max }) {
  const changed = () => {
    if (input.value === "") return;
    const alone = page.data.tokens ? {} : { follow: null };
    page.change({ "token.gpu": null, ...alone, [key]: input.value });
  };
  const input = make("input", {
    type: "number",
    min,
    max,
    step: 1,
    value,
    inputmode: "numeric",
    onchange: changed,
  });
  return input;
}

function rerollButton(page, token) {
  const reroll = () => page.change(rerollChanges(page.query, token), true);
  return make("button", { type: "button", text: "Re-roll picks", onclick: reroll });
}

function rowsButton(page) {
  const all = page.query.rows === "all";
  const turn = () => page.change({ rows: all ? null : "all" }, true);
  return make("button", { type: "button", "aria-pressed": String(all), text: "All rows", onclick: turn });
}

function copyButton() {
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
  const button = make("button", { type: "button", text: "Copy link", onclick: copy });
  return button;
}
