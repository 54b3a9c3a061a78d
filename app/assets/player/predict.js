// Predict: a question about the next hop, marked by what the engine says of it.

import { make } from "../shell/dom.js";

// `onward()` shows the hop that was asked about.
export function createPredict(onward) {
  const element = make("section", { class: "predict", "aria-label": "Predict", hidden: true });
  let verdict = [];

  // The question about the next hop, under the verdict on the last answer if there was one.
  const show = (next) => {
    const question = next?.question;
    element.hidden = !question && !verdict.length;
    const asked = question ? questionParts(question, (option) => answer(question, option)) : [];
    element.replaceChildren(...verdict, ...asked);
    verdict = [];
  };

  const answer = (question, option) => {
    verdict = [verdictOn(question, option)];
    onward();
  };

  return { element, show };
}

// A question with a button for each option; `onAnswer(option)` hears which was pressed.
export function questionParts(question, onAnswer) {
  const buttons = question.options.map((option) =>
    make("button", { type: "button", text: option, onclick: () => onAnswer(option) }),
  );
  return [
    make("h3", { text: "Predict" }),
    make("p", { text: question.ask }),
    make("div", { class: "options" }, buttons),
  ];
}

function verdictOn(question, option) {
  const right = option === question.answer;
  const text = (right ? "Right: " : "Not quite: it is ") + question.answer + ". ";
  const look = right ? "verdict right" : "verdict wrong";
  return make("p", { role: "status", class: look }, [make("b", { text }), question.explain]);
}
