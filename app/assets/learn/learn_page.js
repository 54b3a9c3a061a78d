// Learn: read, predict on the map, then see. Progress is kept in this browser.

import { formatQuery, parseQuery, scenarioQuery } from "../core/address.js";
import { UNREACHABLE } from "../core/errors.js";
import { jsonText } from "../core/files.js";
import { asSeen, NO_PROGRESS, progressAfter, progressText } from "../core/lesson.js";
import { pageAddress } from "../shell/place.js";
import { readScene } from "../core/scene.js";
import { createPlayer } from "../player/player.js";
import { questionParts } from "../player/predict.js";
import { alertBox, labelled, make, option, waiting } from "../shell/dom.js";
import { downloadMenu } from "../shell/download.js";
import { fetchJson, fetchTripFile } from "../shell/fetch.js";
import { carryScenario, writeAddress } from "../shell/pages.js";

const KEY = "tokentrip-learn";
const QUIZ = "quiz";
const NO_GPUS = { look() {}, leave() {}, choose() {} };

export function learnPage(frame) {
  const page = {
    frame,
    query: parseQuery(location.search),
    chapters: [],
    player: null,
    progress: readProgress(),
    // The question on the page, whether it is the quiz's, and the option that was chosen.
    data: null,
    quiz: false,
    chosen: null,
    bar: make("div", { class: "toolbar" }),
    body: make("div", { class: "trip learn" }, [waiting("Loading the chapter …")]),
  };
  frame.replaceChildren(make("h1", { class: "unseen", text: "Learn" }), page.bar, page.body);
  page.go = (place) => {
    page.query = { ...scenarioQuery(page.query), ...place };
    load(page);
  };
  load(page);
}

function readProgress() {
  try {
    return { ...NO_PROGRESS, ...JSON.parse(localStorage.getItem(KEY) || "{}") };
  } catch {
    return NO_PROGRESS;
  }
}

function keepProgress(progress) {
  try {
    localStorage.setItem(KEY, JSON.stringify(progress));
  } catch {
    // A private window keeps nothing.
  }
}

async function load(page) {
  carryScenario(page.query);
  writeAddress(page.query);
  const quiz = page.query.chapter === QUIZ;
  page.frame.setAttribute("aria-busy", "true");
  if (!page.chapters.length) {
    const found = await fetchJson("/api/learn").catch(() => ({}));
    page.chapters = found.chapters || [];
  }
  const address = (quiz ? "/api/quiz" : "/api/learn") + formatQuery(page.query);
  const data = await fetchJson(address).catch(() => ({ error: { text: UNREACHABLE } }));
  page.frame.removeAttribute("aria-busy");
  Object.assign(page, { data, quiz, chosen: null });
  showBar(page);
  if (data.error) page.body.replaceChildren(alertBox([make("p", { text: data.error.text })]));
  else show(page);
}

function showBar(page) {
  const chosen = page.quiz ? QUIZ : page.data.slug;
  const { done } = page.progress;
  const select = make("select", { onchange: () => page.go({ chapter: select.value }) }, [
    ...page.chapters.map(({ slug, title }, i) =>
      option(slug, i + 1 + ". " + (done[slug] ? "✓ " : "") + title, slug === chosen),
    ),
    option(QUIZ, "Quiz: any mesh", page.quiz),
  ]);
  page.bar.replaceChildren(
    labelled("Chapter", select),
    ...(page.data.open ? [downloadMenu(() => filesOf(page))] : []),
    make("p", { class: "subtitle", text: progressText(page.progress, page.chapters) }),
  );
}

// The question and the trip as they stand, before or after the answer.
function filesOf({ data, query, chosen, player }) {
  const base = "learn-" + (data.slug ?? QUIZ + "-" + data.seed);
  const question = { page: "learn", query, ...asSeen(data, chosen) };
  const trip = formatQuery({ ...parseQuery(data.open), hop: player.state().hop });
  return [
    { name: base + "-question.json", content: () => jsonText(question) },
    ...data.exports.map((ending) => {
      const name = base + ending;
      return { name, content: () => fetchTripFile(name, trip) };
    }),
  ];
}

function show(page) {
  const scene = readScene(page.data.trip);
  page.player?.destroy();
  page.player = createPlayer(scene, { hop: page.data.hop, gpus: NO_GPUS });
  const { map, counters, panel, live } = page.player.parts;
  panel.hidden = true;
  page.body.replaceChildren(
    make("div", { class: "left" }, [counters, map, panel]),
    make("div", { class: "right lesson" }, [...heading(page), questionBox(page, panel)]),
    live,
  );
  page.body.classList.add("ready");
}

function heading({ quiz, data, chapters }) {
  const place = chapters.findIndex((each) => each.slug === data.slug);
  const drawn = `A mesh drawn at random: ${data.mesh_line}. The map shows the token after hop ${data.hop}.`;
  const eyebrow = quiz ? "Quiz, question " + data.seed : `Chapter ${place + 1} of ${chapters.length}`;
  return [
    make("p", { class: "eyebrow", text: eyebrow }),
    make("h2", { text: quiz ? "What happens next?" : data.title }),
    ...(quiz ? [drawn] : data.read).map((text) => make("p", { text })),
  ];
}

function questionBox(page, panel) {
  const box = make("section", { class: "predict", "aria-label": "Predict" });
  box.append(...questionParts(page.data.question, (chosen) => answer(page, chosen, box, panel)));
  return box;
}

function answer(page, chosen, box, panel) {
  const { data, quiz, player } = page;
  const { question, hop, reveal } = data;
  const right = chosen === question.answer;
  page.chosen = chosen;
  page.progress = progressAfter(page.progress, { quiz, slug: data.slug, right });
  keepProgress(page.progress);
  showBar(page);
  for (const button of box.querySelectorAll(".options button")) {
    button.disabled = true;
    if (button.textContent === question.answer) button.classList.add("answer");
  }
  const verdict = right ? "Right. " : "Not quite: it is " + question.answer + ". ";
  box.append(
    make("p", { role: "status", class: right ? "verdict right" : "verdict wrong" }, [
      make("b", { text: verdict }),
      question.explain,
    ]),
    ...(quiz ? [] : [make("p", { text: data.after })]),
    onward(page),
  );
  panel.hidden = false;
  if (reveal === hop + 1) player.forward();
  else player.go(reveal);
}

// To the next chapter or question, and to the trip itself.
function onward({ quiz, data, chapters, go }) {
  const next = chapters[chapters.findIndex((each) => each.slug === data.slug) + 1];
  const question = (seed) => ({ chapter: QUIZ, seed_of_quiz: seed });
  const [text, place] = quiz
    ? ["Another question", question(data.seed + 1)]
    : next
      ? ["Next: " + next.title, { chapter: next.slug }]
      : ["On to the quiz", question(1)];
  return make("p", { class: "links" }, [
    make("button", { type: "button", class: "button", text, onclick: () => go(place) }),
    make("a", { class: "button second", href: pageAddress("/") + "?" + data.open, text: "Open this trip" }),
  ]);
}
