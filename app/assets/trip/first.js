// The first screen: the trip in one sentence, and where a reader's own mesh begins: one box, or a preset.

import { DEFAULT_SCENARIO, scenarioName } from "../core/address.js";
import { tripPromise, tripQuestion } from "../core/words.js";
import { launchBox } from "../shell/launch_box.js";
import { make, option } from "../shell/dom.js";
import { drawer } from "./drawer.js";

// What stays on the page while trips come and go: `question` and `yours` are filled for each.
export function firstScreen(page) {
  page.question = make("div", { class: "question" }, [make("h1", { text: "One token through a GPU mesh" })]);
  page.picker = make("div", { class: "picker" });
  page.read = make("section", { class: "launch-read", "aria-label": "What was read" });
  page.invite = make("p", { class: "invite", role: "status" });
  page.yours = make("div", { class: "yours", id: "yours" }, [launchBox(page), page.picker, page.read]);
  return make("div", { class: "first" }, [openButton(), page.question, page.yours, page.invite]);
}

// On a phone the box is behind a button of the header's line.
function openButton() {
  const onclick = (event) => {
    const open = event.currentTarget.closest(".first").classList.toggle("show-yours");
    event.currentTarget.setAttribute("aria-expanded", String(open));
  };
  const attributes = {
    type: "button",
    class: "open-box",
    "aria-expanded": "false",
    "aria-controls": "yours",
  };
  return make("button", { ...attributes, text: "Paste or drop", onclick });
}

export function showQuestion(page, scene) {
  const { subtitle } = scene;
  page.question.replaceChildren(
    make("h1", { text: tripQuestion(scene) }),
    make("p", { class: "promise", text: tripPromise(scene) }),
    make("p", { class: "subtitle", title: subtitle, text: scenarioName(page.query) + ": " + subtitle }),
  );
}

export function showPicker(page) {
  const focused = document.activeElement?.dataset.keep;
  const open = page.picker.querySelector(".drawer")?.open ?? false;
  page.picker.replaceChildren(
    make("span", { class: "or", text: "or start from" }),
    scenarioSelect(page),
    ...(page.data ? [drawer(page, open || Boolean(page.refused))] : []),
  );
  if (focused) page.picker.querySelector(`[data-keep="${focused}"]`)?.focus();
}

function scenarioSelect(page) {
  const { query, presets } = page;
  const chosen = query.scenario ?? DEFAULT_SCENARIO;
  const name = scenarioName(query);
  const names = presets.length ? presets.map((each) => each.name) : chosen ? [chosen] : [];
  const own = name === chosen ? [] : [option("*", name, true)];
  const onchange = () => {
    if (select.value !== "*") page.startOver(select.value);
  };
  const choices = names.map((each) => option(each, each, !own.length && each === chosen));
  const select = make("select", { "aria-label": "Scenario", onchange }, [...own, ...choices]);
  return select;
}
