"use strict";
// The blocks of a page of figures, as the server names them: headings, tables, charts, buttons, a job to start.
(function () {
  function act(page, { text, says, set: changes }) {
    return window.tokentrip.dom.make("button", { type: "button", text, "aria-label": says === text ? null : says, onclick: () => page.set(changes) });
  }

  const BLOCKS = {
    heading: (page, { text }) => window.tokentrip.dom.make("h2", { text }),
    note: (page, { text }) => window.tokentrip.dom.make("p", { class: "help", text }),
    alert: (page, { text }) => window.tokentrip.dom.make("div", { class: "alert" }, [window.tokentrip.dom.make("p", { text })]),
    counts: (page, { caption, rows }) => {
      const { dom } = window.tokentrip;
      return dom.make("section", { "aria-label": caption }, [dom.make("dl", { class: "counters report-counters" }, rows.map(([label, value]) =>
        dom.make("div", { class: "counter" }, [dom.make("dt", { text: label }), dom.make("dd", { text: value })])))]);
    },
    table: (page, block) => {
      const { dom } = window.tokentrip;
      const marked = new Set(block.marked);
      return dom.make("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": block.caption }, [dom.make("table", { class: block.prose ? "prose" : null }, [
        dom.make("thead", {}, [dom.make("tr", {}, [...block.heads, ...(block.actions.length ? [""] : [])].map((text) => (text ? dom.make("th", { scope: "col", text }) : dom.make("td", {}))))]),
        dom.make("tbody", {}, block.rows.map((row, index) => dom.make("tr", { class: marked.has(index) ? "marked" : null }, [
          ...row.map((text, place) => (place ? dom.make("td", { text, class: text.length > 40 ? "long" : null }) : dom.make("th", { scope: "row", text }))),
          block.actions.length ? dom.make("td", { class: "act" }, [block.actions[index] ? act(page, block.actions[index]) : null]) : null])))])]);
    },
    buttons: (page, { caption, actions }) => {
      const { dom } = window.tokentrip;
      return dom.make("div", { class: "options", role: "group", "aria-label": caption }, actions.map((each) => act(page, each)));
    },
    job: (page, block) => {
      const { dom, job } = window.tokentrip;
      if (!job.canRun()) return dom.make("p", { class: "help", text: block.without });
      const begin = ({ target }) => {
        target.disabled = true;
        job.start(page.query, (data) => page.answer(data), () => { target.disabled = false; });
      };
      return dom.make("div", { class: "offer" }, [dom.make("p", { text: block.text }), dom.make("button", { type: "button", class: "button", text: block.start, onclick: begin })]);
    },
    picture: (page, { name, svg, files }) => {
      const { core, dom } = window.tokentrip;
      const here = core.formatQuery(page.query);
      const saves = files.flatMap(([text, path]) => [" ", dom.make("a", { href: path + here, download: "", text })]);
      return dom.make("section", {}, [dom.picture(svg, name), ...(saves.length ? [dom.make("p", { class: "help" }, ["Save this picture:", ...saves])] : [])]);
    },
    chart: (page, block) => {
      const made = window.tokentrip.chart(block);
      page.charts.push(made);
      return made.element;
    },
  };

  function reportBlock(page, block) {
    return BLOCKS[block.kind](page, block);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { reportBlock });
})();
