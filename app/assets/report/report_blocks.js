// The blocks of a page of figures, as the server names them: headings, tables, charts, buttons, a job to start.

import { formatQuery } from "../core/address.js";
import { ownAddress, pageAddress } from "../shell/place.js";
import { make, picture } from "../shell/dom.js";
import { canRunJobs, startJob } from "../shell/job.js";
import { chart } from "./chart.js";
import { runPlayer } from "./run_player.js";

// Words longer than this may wrap in a table.
const LONG_CELL = 40;

const BLOCKS = {
  heading: (page, { text }) => make("h2", { text }),
  note: (page, { text }) => make("p", { class: "help", text }),
  alert: (page, { text }) => make("div", { class: "alert" }, [make("p", { text })]),
  counts: (page, block) => countsBlock(block),
  table: tableBlock,
  buttons: buttonsBlock,
  job: jobBlock,
  picture: pictureBlock,
  chart: chartBlock,
  run: runBlock,
  links: linksBlock,
};

export function reportBlock(page, block) {
  return BLOCKS[block.kind](page, block);
}

function countsBlock({ caption, rows }) {
  const counters = rows.map(([label, value]) =>
    make("div", { class: "counter" }, [make("dt", { text: label }), make("dd", { text: value })]),
  );
  return make("section", { "aria-label": caption }, [
    make("dl", { class: "counters report-counters" }, counters),
  ]);
}

function tableBlock(page, block) {
  const marked = new Set(block.marked);
  const heads = block.actions.length ? [...block.heads, ""] : block.heads;
  const rows = block.rows.map((cells, index) =>
    make("tr", { class: marked.has(index) ? "marked" : null }, [
      ...cells.map(tableCell),
      block.actions.length ? actionCell(page, block.actions[index]) : null,
    ]),
  );
  const table = make("table", { class: block.prose ? "prose" : null }, [
    make("thead", {}, [make("tr", {}, heads.map(headCell))]),
    make("tbody", {}, rows),
  ]);
  const frame = { class: "wide-table", tabindex: "0", role: "region", "aria-label": block.caption };
  return make("div", frame, [table]);
}

function headCell(text) {
  return text ? make("th", { scope: "col", text }) : make("td", {});
}

function tableCell(text, column) {
  if (column === 0) return make("th", { scope: "row", text });
  return make("td", { text, class: text.length > LONG_CELL ? "long" : null });
}

function actionCell(page, action) {
  return make("td", { class: "act" }, [action ? actionButton(page, action) : null]);
}

// `says` is what a screen reader hears, where it is more than the text.
function actionButton(page, { text, says, set: changes }) {
  const label = says === text ? null : says;
  return make("button", { type: "button", text, "aria-label": label, onclick: () => page.set(changes) });
}

function buttonsBlock(page, { caption, actions }) {
  const buttons = actions.map((each) => actionButton(page, each));
  return make("div", { class: "options", role: "group", "aria-label": caption }, buttons);
}

function jobBlock(page, block) {
  if (!canRunJobs()) return make("p", { class: "help", text: block.without });
  const said = make("p", { text: block.text, role: "status" });
  const begin = ({ target }) => {
    target.disabled = true;
    const enable = () => {
      target.disabled = false;
    };
    const show = (data) => {
      if (data.error?.field === "job") said.textContent = data.error.text;
      else page.answer(data);
    };
    startJob(page.query, show, enable);
  };
  return make("div", { class: "offer" }, [
    said,
    make("button", { type: "button", class: "button", text: block.start, onclick: begin }),
  ]);
}

function pictureBlock(page, { name, svg, files }) {
  const here = formatQuery(page.query);
  const links = files.flatMap(([text, path]) => [
    " ",
    make("a", { href: ownAddress(path) + here, download: "", text }),
  ]);
  const save = links.length ? make("p", { class: "help" }, ["Save this picture:", ...links]) : null;
  return make("section", {}, [picture(svg, name), save]);
}

function runBlock(page, block) {
  return runPlayer(block);
}

function linksBlock(page, { links }) {
  return make(
    "p",
    { class: "options" },
    links.map(([text, path, query]) => make("a", { class: "button", href: pageAddress(path) + query, text })),
  );
}

function chartBlock(page, block) {
  const made = chart(block);
  page.charts.push(made);
  return made.element;
}
