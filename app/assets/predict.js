"use strict";
// Predict: a question about the next hop, marked by what the engine says of it.
(function () {
  function createPredict(onward) {
    const { dom } = window.tokentrip;
    const element = dom.make("section", { class: "predict", "aria-label": "Predict", hidden: true });
    let verdict = null;

    // The question about the next hop, under the verdict on the last answer if there was one.
    function show(next) {
      const question = next?.question;
      element.hidden = !question && !verdict;
      element.replaceChildren(...(verdict || []), ...(question ? questionParts(dom, question, (option) => answer(question, option)) : []));
      verdict = null;
    }

    function answer(question, option) {
      const right = option === question.answer;
      const text = (right ? "Right: " : "Not quite: it is ") + question.answer + ". ";
      verdict = [dom.make("p", { role: "status", class: right ? "verdict right" : "verdict wrong" },
        [dom.make("b", { text }), document.createTextNode(question.explain)])];
      onward();
    }

    return { element, show };
  }

  function questionParts(dom, question, onAnswer) {
    return [
      dom.make("h3", { text: "Predict" }), dom.make("p", { text: question.ask }),
      dom.make("div", { class: "options" }, question.options.map((option) =>
        dom.make("button", { type: "button", text: option, onclick: () => onAnswer(option) }))),
    ];
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createPredict });
})();
