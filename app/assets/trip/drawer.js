// Which token is followed, and which picks it makes: folded away until it is wanted.

import { rerollChanges } from "../core/address.js";
import { labelled, make } from "../shell/dom.js";
import { followForm } from "./follow.js";

export function drawer(page, open) {
  const { token, tokens } = page.data;
  const name = tokens ? "Tokens" : token.replicas > 1 ? "Token and replica" : "Token";
  return make("details", { class: "drawer", open }, [
    make("summary", { text: name }),
    make("div", { class: "drawer-list" }, [
      tokens ? null : positionField(page, token),
      token.replicas > 1 ? replicaField(page, token) : null,
      token.top_k ? rerollButton(page, token) : null,
      followForm(page),
    ]),
  ]);
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
