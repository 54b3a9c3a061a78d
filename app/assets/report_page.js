"use strict";
// The pages of figures: controls above, then what the engine says as tables and charts.
(function () {
  const PAGES = { numbers: "Numbers", traffic: "Traffic", batch: "Batch", time: "Time", roofline: "Roofline", decode: "Decode" };
  const LOST = "The explorer cannot be reached. Is it still running?";

  function reportPage(name, frame) {
    const { core, dom } = window.tokentrip;
    const page = { name, frame, query: core.parseQuery(location.search), charts: [], abort: null, sent: {} };
    page.start = dom.make("div", { class: "toolbar" });
    page.form = dom.make("form", { class: "toolbar report-controls", "aria-label": "Controls", onsubmit: (event) => event.preventDefault() });
    page.body = dom.make("div", { class: "report" });
    page.links = dom.make("p", { class: "same-mesh" });
    frame.replaceChildren(dom.make("h1", { class: "unseen", text: PAGES[name] }), page.start, page.form, page.body, page.links);
    page.reset = (query) => { page.query = query; load(page); };
    window.tokentrip.startBar(page);
    const unwatch = window.tokentrip.watchTheme(() => page.charts.forEach((each) => each.draw()));
    load(page);
    return { destroy: () => { page.abort?.abort(); window.tokentrip.job.stop(); unwatch(); clear(page); } };
  }

  function set(page, changes) {
    page.query = { ...page.query, ...changes };
    load(page);
  }

  async function load(page) {
    const { core, carry, job } = window.tokentrip;
    carry(page.query);
    job.stop();
    history.replaceState(history.state, "", location.pathname + core.formatQuery(page.query));
    page.abort?.abort();
    const abort = (page.abort = new AbortController());
    page.body.classList.remove("ready");
    page.frame.setAttribute("aria-busy", "true");
    const data = await ask(page, abort.signal).catch((error) => (error.name === "AbortError" ? null : { error: { text: LOST } }));
    if (!data || abort.signal.aborted) return;
    answer(page, data);
    page.frame.removeAttribute("aria-busy");
    page.body.classList.add("ready");
  }

  // A file in use goes along with every question: the server keeps none.
  function ask(page, signal) {
    const { core, fetchJson } = window.tokentrip;
    const [[key, file] = []] = Object.entries(page.sent);
    if (!file) return fetchJson("/api/" + page.name + core.formatQuery(page.query), signal);
    const query = core.formatQuery({ ...page.query, [key + "_file"]: file.name });
    return fetchJson("/api/" + page.name + query, signal, { method: "POST", body: file });
  }

  function answer(page, data) {
    if (data.error) showWrong(page, data.error);
    else show(page, data);
  }

  function clear(page) {
    page.charts.forEach((each) => each.purge());
    page.charts = [];
  }

  function showWrong(page, error) {
    const { dom } = window.tokentrip;
    const again = dom.make("button", { type: "button", text: "Start over", onclick: () => page.reset({ scenario: page.query.scenario || "six-cuts" }) });
    const without = page.query[error.field] === undefined ? null
      : dom.make("button", { type: "button", text: "Leave out " + error.field, onclick: () => leaveOut(page, error.field) });
    clear(page);
    page.body.replaceChildren(dom.make("div", { class: "alert", role: "alert" }, [dom.make("h2", { text: "This does not work" }),
      dom.make("p", { text: error.text }), dom.make("div", { class: "options" }, [without, again])]));
  }

  // A wrong key goes, the rest of the scenario stays.
  function leaveOut(page, key) {
    const { [key]: gone, ...query } = page.query;
    page.query = query;
    load(page);
  }

  function show(page, data) {
    page.data = data;
    if (data.controls.some((each) => each.wrong)) page.sent = {};
    const { core, dom, downloadMenu, reportFiles } = window.tokentrip;
    const focused = page.form.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    page.form.replaceChildren(...data.controls.flatMap((each) => [dom.labelled(each.label, control(page, each)), ...(each.kind === "file" ? aboutFile(page, each) : [])]), downloadMenu(() => reportFiles(page)));
    if (focused) page.form.querySelector('[data-key="' + CSS.escape(focused) + '"]')?.focus();
    clear(page);
    page.body.replaceChildren(dom.make("p", { class: "place", text: data.title }), ...data.blocks.map((each) => BLOCKS[each.kind](page, each)));
    const pages = [["Trip", "/"], ["Mesh", "/mesh"], ...Object.entries(PAGES).map(([key, text]) => [text, "/" + key])];
    const here = core.formatQuery(page.query);
    page.links.replaceChildren("The same mesh on ", ...pages.filter(([text]) => text !== PAGES[page.name])
      .flatMap(([text, path], index) => [index ? " · " : "", dom.make("a", { href: path + here, text })]));
  }

  function control(page, each) {
    const { dom } = window.tokentrip;
    const shared = { "data-key": each.key, onchange: (event) => set(page, { [each.key]: event.target.value }) };
    if (each.kind === "choice") {
      return dom.make("select", shared, each.options.map(([value, text]) => dom.option(value, text, value === each.value)));
    }
    if (each.kind === "range") return dom.make("input", { ...shared, type: "range", min: 0, max: each.most, step: each.step, value: each.value, title: each.value });
    if (each.kind === "file") return fileControl(page, each);
    if (each.kind === "text") return dom.make("input", { ...shared, type: "text", value: each.value });
    return dom.make("input", { ...shared, type: "number", min: each.least, step: each.step, value: each.value });
  }

  // A file to send along; one that is too large is not sent at all.
  function fileControl(page, each) {
    const { dom } = window.tokentrip;
    const input = dom.make("input", { "data-key": each.key, type: "file", accept: each.accept, "aria-invalid": each.wrong ? "true" : null,
      "aria-describedby": each.wrong ? each.key + "-wrong" : null, onchange: () => {
        const file = input.files[0];
        if (!file) return;
        page.sent = { [each.key]: file };
        if (file.size <= each.most_bytes) { load(page); return; }
        page.sent = {};
        const wrong = each.key + "=" + file.name + " is over " + each.most_bytes.toLocaleString("en") + " bytes; send fewer tokens";
        show(page, { ...page.data, controls: page.data.controls.map((other) => (other === each ? { ...each, wrong } : other)) });
      } });
    return input;
  }

  function aboutFile(page, each) {
    const { dom } = window.tokentrip;
    const drop = () => { page.sent = {}; load(page); };
    return [
      each.name ? dom.make("button", { type: "button", text: "Back to drawn picks", onclick: drop }) : null,
      each.name ? dom.make("p", { class: "help", role: "status", text: each.name + " is counted. It stays in this browser: a link to this page does not hold it." }) : null,
      each.wrong ? dom.make("p", { class: "control-wrong", role: "alert", id: each.key + "-wrong", text: each.wrong }) : null,
    ].filter(Boolean);
  }

  function act(page, { text, says, set: changes }) {
    return window.tokentrip.dom.make("button", { type: "button", text, "aria-label": says === text ? null : says, onclick: () => set(page, changes) });
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
        job.start(page.query, (data) => answer(page, data), () => { target.disabled = false; });
      };
      return dom.make("div", { class: "offer" }, [dom.make("p", { text: block.text }), dom.make("button", { type: "button", class: "button", text: block.start, onclick: begin })]);
    },
    chart: (page, block) => {
      const made = window.tokentrip.chart(block);
      page.charts.push(made);
      return made.element;
    },
  };

  for (const name of Object.keys(PAGES)) window.tokentrip.definePage(name, (frame) => reportPage(name, frame));
})();
