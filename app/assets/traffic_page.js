"use strict";
// Traffic: what each axis moves, with the formula, and every order of the axes ranked.
(function () {
  function trafficPage(frame) {
    const { core, dom } = window.tokentrip;
    const page = { frame, query: core.parseQuery(location.search) };
    page.start = dom.make("div", { class: "toolbar" });
    page.body = dom.make("div", { class: "traffic" });
    frame.replaceChildren(dom.make("h1", { class: "unseen", text: "Traffic" }), page.start, page.body);
    page.reset = (query) => { page.query = query; load(page); };
    window.tokentrip.startBar(page);
    load(page);
  }

  async function load(page) {
    const { core, fetchJson, dom, carry } = window.tokentrip;
    carry(page.query);
    history.replaceState(history.state, "", location.pathname + core.formatQuery(page.query));
    const data = await fetchJson("/api/traffic" + core.formatQuery(page.query)).catch(() => ({ error: { text: "The explorer cannot be reached. Is it still running?" } }));
    if (data.error) page.body.replaceChildren(dom.make("div", { class: "alert", role: "alert" }, [dom.make("p", { text: data.error.text })]));
    else draw(page, data);
  }

  function draw(page, data) {
    const { dom } = window.tokentrip;
    page.body.replaceChildren(
      dom.make("h2", { text: "What each axis moves" }), dom.make("p", { class: "place", text: data.mesh_line }),
      data.lines.length ? lines(dom, data.lines) : dom.make("p", { text: "No axis of this mesh moves anything." }),
      ...data.notes.map((text) => dom.make("p", { class: "help", text })),
      dom.make("h2", { text: "Every order of the axes" }), orders(page, dom, data.orders),
      ...data.orders.refused.map((text) => dom.make("p", { class: "help", text: "Refused: " + text })),
    );
    page.body.classList.add("ready");
  }

  function table(dom, label, heads, rows) {
    return dom.make("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": label }, [dom.make("table", {}, [
      dom.make("thead", {}, [dom.make("tr", {}, heads.map((text) => dom.make("th", { scope: "col", text })))]), dom.make("tbody", {}, rows)])]);
  }

  function cells(dom, texts) {
    return texts.map((text) => dom.make("td", { text }));
  }

  function lines(dom, found) {
    return table(dom, "Traffic by axis", ["Axis", "Sent by a GPU", "NVLink", "InfiniBand", "Time", "Against TP", "Formula"], found.map((line) =>
      dom.make("tr", {}, [dom.make("th", { scope: "row", text: line.axis + ", " + line.part }), dom.make("td", { class: "bar-cell" }, [bars(dom, line)]),
        ...cells(dom, [line.nvlink, line.ib, line.time + " a " + line.per, line.ratio]),
        dom.make("td", {}, [dom.make("code", { text: line.formula }), dom.make("span", { class: "help", text: " = " + line.numbers })])])));
  }

  function bars(dom, line) {
    const bar = (tier, share) => {
      const made = dom.make("span", { class: "bar " + tier });
      made.style.width = share.toFixed(1) + "%";
      return made;
    };
    return dom.make("div", { class: "bars", "aria-hidden": "true" }, [bar("nvlink", line.bars[0]), bar("ib", line.bars[1])]);
  }

  function orders(page, dom, found) {
    return table(dom, "Orders", ["Order, fastest first", "Over InfiniBand", "Against this order", "Time", "Why", ""], found.ranked.map((entry) => {
      const use = entry.given ? dom.make("span", { text: "this order" }) : dom.make("button", { type: "button", text: "Use",
        "aria-label": "Use order " + entry.order, onclick: () => { page.query = { ...page.query, "mesh.order": entry.order }; load(page); } });
      return dom.make("tr", { class: entry.given ? "given" : "" }, [dom.make("th", { scope: "row", text: entry.order }),
        ...cells(dom, [entry.ib, entry.against, entry.time, entry.why]), dom.make("td", {}, [use])]);
    }));
  }

  window.tokentrip.definePage("traffic", trafficPage);
})();
