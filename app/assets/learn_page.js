"use strict";
// Learn: read, predict on the map, then see. Progress is kept in this browser.
(function () {
  const KEY = "tokentrip-learn";
  const QUIZ = "quiz";

  function learnPage(frame) {
    const { core, dom } = window.tokentrip;
    const page = { frame, query: core.parseQuery(location.search), chapters: [], player: null, progress: readProgress() };
    page.bar = dom.make("div", { class: "toolbar" });
    page.body = dom.make("div", { class: "trip learn" }, [dom.waiting("Loading the chapter …")]);
    frame.replaceChildren(dom.make("h1", { class: "unseen", text: "Learn" }), page.bar, page.body);
    page.go = (place) => { page.query = { ...core.scenarioQuery(page.query), ...place }; load(page); };
    load(page);
  }

  function readProgress() {
    try { return { done: {}, right: 0, asked: 0, ...JSON.parse(localStorage.getItem(KEY) || "{}") }; } catch { return { done: {}, right: 0, asked: 0 }; }
  }

  function keepProgress(page) {
    try { localStorage.setItem(KEY, JSON.stringify(page.progress)); } catch { /* private windows keep nothing */ }
  }

  async function load(page) {
    const { carry, core, fetchJson, dom } = window.tokentrip;
    carry(page.query);
    history.replaceState(history.state, "", location.pathname + core.formatQuery(page.query));
    const quiz = page.query.chapter === QUIZ;
    page.frame.setAttribute("aria-busy", "true");
    if (!page.chapters.length) page.chapters = (await fetchJson("/api/learn").catch(() => ({}))).chapters || [];
    const data = await fetchJson((quiz ? "/api/quiz" : "/api/learn") + core.formatQuery(page.query)).catch(() => ({ error: { text: core.UNREACHABLE } }));
    page.frame.removeAttribute("aria-busy");
    page.data = data;
    page.chosen = null;
    drawBar(page, quiz ? QUIZ : data.slug);
    if (data.error) page.body.replaceChildren(dom.make("div", { class: "alert", role: "alert" }, [dom.make("p", { text: data.error.text })]));
    else draw(page, data, quiz);
  }

  function drawBar(page, slug) {
    const { dom } = window.tokentrip;
    const mark = (chapter) => (page.progress.done[chapter.slug] ? "✓ " : "") + chapter.title;
    const select = dom.make("select", { onchange: () => page.go({ chapter: select.value }) }, [
      ...page.chapters.map((each, i) => dom.option(each.slug, i + 1 + ". " + mark(each), each.slug === slug)),
      dom.option(QUIZ, "Quiz: any mesh", slug === QUIZ)]);
    const done = page.chapters.filter((each) => page.progress.done[each.slug]).length;
    page.bar.replaceChildren(dom.labelled("Chapter", select),
      ...(page.data.open ? [window.tokentrip.downloadMenu(() => filesOf(page))] : []),
      dom.make("p", { class: "subtitle", text: done + " of " + page.chapters.length + " chapters done" +
        (page.progress.asked ? " · quiz: " + page.progress.right + " of " + page.progress.asked + " right" : "") }));
  }

  // The question and the trip as they stand, before or after the answer.
  function filesOf(page) {
    const { core, tripFile } = window.tokentrip;
    const base = "learn-" + (page.data.slug ?? QUIZ + "-" + page.data.seed);
    const query = core.formatQuery({ ...core.parseQuery(page.data.open), hop: page.player.state().hop });
    return [[base + "-question.json", () => core.jsonText({ page: "learn", query: page.query, ...asSeen(page) })],
      ...page.data.exports.map((ending) => [base + ending, () => tripFile(base + ending, query)])];
  }

  // What is told by words; the answer is in it once it has been given.
  function asSeen(page) {
    const { trip, chapters, exports, ...all } = page.data;
    if (page.chosen !== null) return { ...all, chosen: page.chosen };
    const { after, reveal, open, question, ...before } = all;
    return { ...before, question: { ask: question.ask, options: question.options } };
  }

  function draw(page, data, quiz) {
    const { createPlayer, dom } = window.tokentrip;
    page.player?.destroy();
    page.player = createPlayer(data.trip, { hop: data.hop, gpus: { look() {}, leave() {}, choose() {} } });
    const { map, counters, panel, live } = page.player.parts;
    panel.hidden = true;
    const text = dom.make("div", { class: "right lesson" }, [...heading(dom, page, data, quiz), ask(page, data, quiz, panel)]);
    page.body.replaceChildren(dom.make("div", { class: "left" }, [counters, map, panel]), text, live);
    page.body.classList.add("ready");
    const box = data.trip.boxes[data.trip.home];
    if (box && map.scrollWidth > map.clientWidth) map.scrollLeft = box[0] - map.clientWidth / 2;
  }

  function heading(dom, page, data, quiz) {
    const place = page.chapters.findIndex((each) => each.slug === data.slug);
    const read = quiz ? ["A mesh drawn at random: " + data.mesh_line + ". The map shows the token after hop " + data.hop + "."] : data.read;
    return [
      dom.make("p", { class: "eyebrow", text: quiz ? "Quiz, question " + data.seed : "Chapter " + (place + 1) + " of " + page.chapters.length }),
      dom.make("h2", { text: quiz ? "What happens next?" : data.title }),
      ...read.map((text) => dom.make("p", { text })),
    ];
  }

  function ask(page, data, quiz, panel) {
    const { dom } = window.tokentrip;
    const box = dom.make("section", { class: "predict", "aria-label": "Predict" });
    const buttons = data.question.options.map((option) => dom.make("button", { type: "button", text: option,
      onclick: () => answer(page, data, quiz, option, box, panel) }));
    box.append(dom.make("h3", { text: "Predict" }), dom.make("p", { text: data.question.ask }), dom.make("div", { class: "options" }, buttons));
    return box;
  }

  function answer(page, data, quiz, option, box, panel) {
    const { dom } = window.tokentrip;
    const right = option === data.question.answer;
    page.chosen = option;
    note(page, data, quiz, right);
    for (const button of box.querySelectorAll(".options button")) {
      button.disabled = true;
      if (button.textContent === data.question.answer) button.classList.add("answer");
    }
    const verdict = dom.make("p", { role: "status", class: right ? "verdict right" : "verdict wrong" }, [
      dom.make("b", { text: right ? "Right. " : "Not quite: it is " + data.question.answer + ". " }), document.createTextNode(data.question.explain)]);
    const more = quiz ? [] : [dom.make("p", { text: data.after })];
    box.append(verdict, ...more, onward(page, data, quiz));
    panel.hidden = false;
    if (data.reveal === data.hop + 1) page.player.forward();
    else page.player.go(data.reveal);
  }

  function note(page, data, quiz, right) {
    if (quiz) {
      page.progress.asked += 1;
      page.progress.right += right ? 1 : 0;
    } else page.progress.done[data.slug] = true;
    keepProgress(page);
    drawBar(page, quiz ? QUIZ : data.slug);
  }

  function onward(page, data, quiz) {
    const { dom } = window.tokentrip;
    const open = dom.make("a", { class: "button second", href: "/?" + data.open, text: "Open this trip" });
    if (quiz) {
      return dom.make("p", { class: "links" }, [dom.make("button", { type: "button", class: "button", text: "Another question",
        onclick: () => page.go({ chapter: QUIZ, seed_of_quiz: data.seed + 1 }) }), open]);
    }
    const next = page.chapters[page.chapters.findIndex((each) => each.slug === data.slug) + 1];
    return dom.make("p", { class: "links" }, [
      dom.make("button", { type: "button", class: "button", text: next ? "Next: " + next.title : "On to the quiz",
        onclick: () => page.go(next ? { chapter: next.slug } : { chapter: QUIZ, seed_of_quiz: 1 }) }),
      open]);
  }

  window.tokentrip.definePage("learn", learnPage);
})();
