// A count too long to wait for: Dash's background callback gets the question, and its answer is shown.

let asked = null;
let turn = 0;

// Whether this server runs jobs: then Dash has drawn their panel.
export function canRunJobs() {
  return document.getElementById("job") !== null;
}

// `show` gets the answer, `over` hears that the reader cancelled.
export function startJob(query, show, over) {
  turn += 1;
  asked = { turn, show, over };
  window.dash_clientside.set_props("job-query", { "data-json": JSON.stringify({ query, turn }) });
}

// A job whose question is no longer asked is ended on the server as well.
export function stopJob() {
  if (!asked) return;
  asked = null;
  document.getElementById("job-cancel")?.click();
}

// Dash finds a function of the page by its name in this global.
export function answerJobs() {
  window.dash_clientside = { ...window.dash_clientside, tokentrip: { jobAnswered } };
  document.addEventListener("click", (event) => {
    if (event.target.id === "job-cancel") cancelled();
  });
  hearRefusals();
}

// Dash keeps the words of an answer that is no job to itself: a full queue says who runs and when to ask again.
function hearRefusals() {
  const ask = window.fetch.bind(window);
  window.fetch = async (...request) => {
    const response = await ask(...request);
    if (asked && response.status === 503)
      response
        .clone()
        .json()
        .then(refused, () => null);
    return response;
  };
}

function refused({ error }) {
  const { show, over } = asked || {};
  asked = null;
  over?.();
  show?.({ error });
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
