// The pages of figures: controls above, then what the engine says as tables and charts.

import { changedQuery, DEFAULT_SCENARIO, formatQuery, omit, parseQuery } from "../core/address.js";
import { UNREACHABLE } from "../core/errors.js";
import { pathOf } from "../shell/place.js";
import { alertBox, labelled, make, waiting } from "../shell/dom.js";
import { downloadMenu } from "../shell/download.js";
import { askEarly, fetchJson } from "../shell/fetch.js";
import { stopJob } from "../shell/job.js";
import { carryScenario, writeAddress } from "../shell/pages.js";
import { startBar } from "../shell/start_bar.js";
import { watchTheme } from "./chart.js";
import { reportBlock } from "./report_blocks.js";
import { aboutFile, reportControl } from "./report_controls.js";
import { reportFiles } from "./report_files.js";

// The page of figures that the server says this is, as `startPages` takes it; none on other pages.
export function reportPages() {
  const { page: name, report: title } = document.documentElement.dataset;
  if (!title) return {};
  const page = {
    path: pathOf(),
    fill: (frame) => reportPage(name, title, frame),
    askEarly: () => askEarly(addressOf(name, parseQuery(location.search))),
  };
  return { [name]: page };
}

function reportPage(name, heading, frame) {
  const page = {
    name,
    frame,
    query: parseQuery(location.search),
    charts: [],
    abort: null,
    // A file that goes along with every question, by the key of its control: the server keeps none.
    sent: {},
    start: make("div", { class: "toolbar" }),
    form: make("form", {
      class: "toolbar report-controls",
      "aria-label": "Controls",
      onsubmit: (event) => event.preventDefault(),
    }),
    body: make("div", { class: "report" }, [waiting("Working it out …")]),
    links: make("p", { class: "same-mesh" }),
  };
  const title = make("h1", { class: "unseen", text: heading });
  frame.replaceChildren(title, page.start, page.form, page.body, page.links);
  page.reset = (query) => {
    page.query = query;
    load(page);
  };
  page.set = (changes) => page.reset(changedQuery(page.query, changes));
  page.load = () => load(page);
  page.answer = (data) => answer(page, data);
  page.show = (data) => show(page, data);
  if (isOfOneMesh(name)) startBar(page);
  watchTheme(() => page.charts.forEach((each) => each.draw()));
  load(page);
}

async function load(page) {
  if (isOfOneMesh(page.name)) carryScenario(page.query);
  stopJob();
  writeAddress(page.query);
  page.abort?.abort();
  const { signal } = (page.abort = new AbortController());
  page.body.classList.remove("ready");
  page.frame.setAttribute("aria-busy", "true");
  const failed = (error) => (error.name === "AbortError" ? null : { error: { text: UNREACHABLE } });
  const data = await ask(page, signal).catch(failed);
  if (!data || signal.aborted) return;
  answer(page, data);
  page.frame.removeAttribute("aria-busy");
  page.body.classList.add("ready");
}

function addressOf(name, query) {
  return "/api/" + name + formatQuery(query);
}

function ask(page, signal) {
  const [sent] = Object.entries(page.sent);
  if (!sent) return fetchJson(addressOf(page.name, page.query), signal);
  const [key, file] = sent;
  const query = { ...page.query, [key + "_file"]: file.name };
  return fetchJson(addressOf(page.name, query), signal, { method: "POST", body: file });
}

function answer(page, data) {
  if (data.error) showWrong(page, data.error);
  else show(page, data);
}

function clear(page) {
  page.charts.forEach((each) => each.purge());
  page.charts = [];
}

function showWrong(page, { field, text }) {
  const button = (words, query) =>
    make("button", { type: "button", text: words, onclick: () => page.reset(query) });
  // A wrong key goes, the rest of the scenario stays.
  const without =
    page.query[field] === undefined ? null : button("Leave out " + field, omit(page.query, field));
  const start = isOfOneMesh(page.name) ? { scenario: page.query.scenario || DEFAULT_SCENARIO } : {};
  const again = button("Start over", start);
  clear(page);
  page.body.replaceChildren(
    alertBox([
      make("h2", { text: "This does not work" }),
      make("p", { text }),
      make("div", { class: "options" }, [without, again]),
    ]),
  );
}

function show(page, data) {
  page.data = data;
  if (data.controls.some((each) => each.wrong)) page.sent = {};
  showControls(page, data.controls);
  clear(page);
  const title = make("p", { class: "place", text: data.title });
  page.body.replaceChildren(title, ...data.blocks.map((each) => reportBlock(page, each)));
  if (isOfOneMesh(page.name)) showLinks(page);
}

// A page of recordings starts from files, and its layout is its own.
function isOfOneMesh(name) {
  return document.getElementById("nav-" + name)?.dataset.mesh !== undefined;
}

function showControls(page, controls) {
  const focused = page.form.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const drawn = controls.flatMap((each) => [
    each.kind === "files" ? reportControl(page, each) : labelled(each.label, reportControl(page, each)),
    ...(each.kind === "file" ? aboutFile(page, each) : []),
  ]);
  page.form.replaceChildren(
    ...drawn,
    downloadMenu(() => reportFiles(page)),
  );
  if (focused) page.form.querySelector('[data-key="' + CSS.escape(focused) + '"]')?.focus();
}

// The same scenario on the other pages.
function showLinks(page) {
  const others = [...document.querySelectorAll(".nav-link[data-mesh]")].filter((link) => !link.ariaCurrent);
  const here = formatQuery(page.query);
  const links = others.flatMap((link, index) => [
    index ? " · " : "",
    make("a", { href: new URL(link.href).pathname + here, text: link.textContent }),
  ]);
  page.links.replaceChildren("The same mesh on ", ...links);
}
