"use strict";
// The pages of figures: controls above, then what the engine says as tables and charts.
(function () {
  const PAGES = { numbers: "Numbers", traffic: "Traffic", batch: "Batch", time: "Time", roofline: "Roofline", decode: "Decode" };

  function reportPage(name, frame) {
    const { core, dom } = window.tokentrip;
    const page = { name, frame, query: core.parseQuery(location.search), charts: [], abort: null, sent: {} };
    page.start = dom.make("div", { class: "toolbar" });
    page.form = dom.make("form", { class: "toolbar report-controls", "aria-label": "Controls", onsubmit: (event) => event.preventDefault() });
    page.body = dom.make("div", { class: "report" }, [dom.waiting("Working it out …")]);
    page.links = dom.make("p", { class: "same-mesh" });
    frame.replaceChildren(dom.make("h1", { class: "unseen", text: PAGES[name] }), page.start, page.form, page.body, page.links);
    page.reset = (query) => { page.query = query; load(page); };
    page.set = (changes) => page.reset({ ...page.query, ...changes });
    page.load = () => load(page);
    page.answer = (data) => answer(page, data);
    page.show = (data) => show(page, data);
    window.tokentrip.startBar(page);
    window.tokentrip.watchTheme(() => page.charts.forEach((each) => each.draw()));
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
    const data = await ask(page, abort.signal).catch((error) => (error.name === "AbortError" ? null : { error: { text: core.UNREACHABLE } }));
    if (!data || abort.signal.aborted) return;
    answer(page, data);
    page.frame.removeAttribute("aria-busy");
    page.body.classList.add("ready");
  }

  function address(name, query) {
    return "/api/" + name + window.tokentrip.core.formatQuery(query);
  }

  // A file in use goes along with every question: the server keeps none.
  function ask(page, signal) {
    const { core, fetchJson } = window.tokentrip;
    const [[key, file] = []] = Object.entries(page.sent);
    if (!file) return fetchJson(address(page.name, page.query), signal);
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
    page.reset(query);
  }

  function show(page, data) {
    page.data = data;
    if (data.controls.some((each) => each.wrong)) page.sent = {};
    const { aboutFile, core, dom, downloadMenu, reportBlock, reportControl, reportFiles } = window.tokentrip;
    const focused = page.form.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    page.form.replaceChildren(...data.controls.flatMap((each) => [dom.labelled(each.label, reportControl(page, each)), ...(each.kind === "file" ? aboutFile(page, each) : [])]), downloadMenu(() => reportFiles(page)));
    if (focused) page.form.querySelector('[data-key="' + CSS.escape(focused) + '"]')?.focus();
    clear(page);
    page.body.replaceChildren(dom.make("p", { class: "place", text: data.title }), ...data.blocks.map((each) => reportBlock(page, each)));
    const pages = [["Trip", "/"], ["Mesh", "/mesh"], ...Object.entries(PAGES).map(([key, text]) => [text, "/" + key])];
    const here = core.formatQuery(page.query);
    page.links.replaceChildren("The same mesh on ", ...pages.filter(([text]) => text !== PAGES[page.name])
      .flatMap(([text, path], index) => [index ? " · " : "", dom.make("a", { href: path + here, text })]));
  }

  for (const name of Object.keys(PAGES)) {
    window.tokentrip.definePage(name, (frame) => reportPage(name, frame));
    if (location.pathname === "/" + name) window.tokentrip.askEarly(address(name, window.tokentrip.core.parseQuery(location.search)));
  }
})();
