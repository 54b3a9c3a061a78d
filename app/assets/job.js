"use strict";
// A count too long to wait for: Dash's background callback gets the question, and its answer is shown.
(function () {
  let asked = null;
  let turn = 0;

  // Whether this server runs jobs: then Dash has drawn their panel.
  function canRun() {
    return document.getElementById("job") !== null;
  }

  // `show` gets the answer, `over` hears that the reader cancelled.
  function start(query, show, over) {
    turn += 1;
    asked = { turn, show, over };
    window.dash_clientside.set_props("job-query", { "data-json": JSON.stringify({ query, turn }) });
  }

  // A job whose question is no longer asked is ended on the server as well.
  function stop() {
    if (!asked) return;
    asked = null;
    document.getElementById("job-cancel")?.click();
  }

  function jobAnswered(text) {
    const answer = text && JSON.parse(text);
    if (answer && asked && answer.turn === asked.turn) {
      const { show } = asked;
      asked = null;
      show(answer.report);
    }
    return window.dash_clientside.no_update;
  }

  function cancelled() {
    const { over } = asked || {};
    asked = null;
    over?.();
  }

  document.addEventListener("click", (event) => { if (event.target.id === "job-cancel") cancelled(); });
  window.dash_clientside = Object.assign({}, window.dash_clientside, { tokentrip: { jobAnswered } });
  window.tokentrip = Object.assign(window.tokentrip || {}, { job: { canRun, start, stop } });
})();
