// Follow several tokens: a field for positions and runs of them, and what is wrong with them beside it.

import { labelled, make } from "../shell/dom.js";

const ERROR_ID = "follow-error";

export function followForm(page) {
  const { follow } = page.query;
  const refused = page.refused && page.refused.names === follow ? page.refused.error : null;
  const input = make("input", {
    type: "text",
    value: follow || "",
    placeholder: "0,5,9 or 0-7",
    spellcheck: "false",
    autocomplete: "off",
    "data-keep": "follow",
    "aria-invalid": refused ? "true" : null,
    "aria-describedby": refused ? ERROR_ID : null,
  });
  const onsubmit = (event) => {
    event.preventDefault();
    page.change({ follow: input.value.trim() || null });
  };
  const followOne = () => page.change({ follow: null });
  return make("form", { class: "follow", onsubmit }, [
    labelled("Follow several tokens", input),
    make("button", { type: "submit", text: "Follow" }),
    follow ? make("button", { type: "button", text: "Follow one", onclick: followOne }) : null,
    refused ? refusal(refused) : null,
  ]);
}

function refusal({ rule, fix }) {
  const text = rule.replace("is refused: ", "") + "; " + fix;
  return make("p", { class: "follow-error", id: ERROR_ID, role: "alert", text });
}
