"use strict";
// Beside the map: four counters, and what the hop moved and why.
(function () {
  const SHOWN = 8;
  const LINKS = { nvlink: "NVLink", ib: "InfiniBand" };

  function createCounters(data) {
    const { dom } = window.tokentrip;
    const names = [
      ["of " + data.world_size.toLocaleString("en") + " GPUs", "gpus"], [data.island_word + " crossings", "crossings"],
      data.tokens ? ["tokens here", "takers"] : ["comm ops", "ops"], ["moved", "bytes"],
    ];
    const values = names.map(([, key]) => dom.make("dd", { "data-count": key }));
    const element = dom.make("dl", { class: "counters" }, names.map(([label], i) =>
      dom.make("div", { class: "counter" }, [dom.make("dt", { text: label }), values[i]])));
    const show = (hop) => {
      const [gpus, crossings, ops, , bytes] = hop.tally;
      [gpus.toLocaleString("en"), crossings.toLocaleString("en"), (data.tokens ? hop.takers : ops).toLocaleString("en"), bytes].forEach((text, i) => {
        values[i].textContent = text;
      });
    };
    return { element, show };
  }

  function createPanel() {
    const { dom } = window.tokentrip;
    const element = dom.make("section", { class: "hop-panel", "aria-label": "This hop" });
    return { element, show: (hop) => element.replaceChildren(...parts(dom, hop)) };
  }

  function parts(dom, hop) {
    const words = hop.words;
    return [
      dom.make("p", { class: "eyebrow", text: eyebrow(hop) }),
      dom.make("h2", { text: words.title }),
      hop.moves.length ? table(dom, hop) : null,
      hop.moves.length ? dom.make("p", { class: "hop-time", text: "All of it takes " + hop.time + " at link rate, for " + (hop.takers === undefined ? "this token" : "these tokens") + " alone; " + hop.since + " since landing." }) : null,
      dom.make("p", { class: "what", text: words.what }),
      ...window.tokentrip.meetingParts(dom, hop),
      dom.make("p", { class: "why", text: words.why }),
      words.shapes ? shapes(dom, words.shapes) : null,
      words.gotcha ? dom.make("h3", { text: "Gotcha" }) : null,
      words.gotcha ? dom.make("p", { class: "gotcha", text: words.gotcha }) : null,
      hop.note ? dom.make("p", { class: "note", text: "Note: " + hop.note + "." }) : null,
      document.getElementById("nav-numbers") && hop.takers === undefined ? numbersLink(dom, hop) : null,
    ].filter((part) => part !== null);
  }

  // The same hop on real arrays; only the explorer has that page, the player in a file does not.
  function numbersLink(dom, hop) {
    const query = new URLSearchParams(location.search);
    query.set("hop", hop.index);
    return dom.make("p", { class: "why" }, [dom.make("a", { href: "/numbers?" + query, text: "This hop on real arrays" })]);
  }

  function eyebrow(hop) {
    const words = [hop.layer ? "Layer " + hop.layer : "Before layer 1", hop.words.stop];
    if (hop.axis) words.push(hop.axis.toUpperCase() + " axis");
    if (hop.dead) words.push("dead work");
    return words.join(" · ");
  }

  function shapes(dom, [before, after]) {
    return dom.make("p", { class: "shapes" }, [
      dom.make("span", { text: before }), dom.make("span", { class: "arrow", text: " → " }), dom.make("span", { text: after + " a GPU" }),
    ]);
  }

  function table(dom, hop) {
    const rows = hop.moves.map((move) => row(dom, move));
    rows.slice(SHOWN).forEach((each) => { each.hidden = true; });
    const head = dom.make("tr", {}, ["From → to", "Link", "Bytes", "Time", "What"].map((text) =>
      dom.make("th", { scope: "col", text })));
    const body = dom.make("tbody", {}, rows);
    const whole = dom.make("table", {}, [dom.make("caption", { class: "unseen", text: "Transfers of this hop; time at link rate" }),
      dom.make("thead", {}, [head]), body]);
    return dom.make("div", { class: "table-frame" }, [whole, rows.length > SHOWN ? more(dom, rows) : null]);
  }

  function more(dom, rows) {
    return dom.make("button", {
      type: "button", class: "plain", text: "Show all " + rows.length + " transfers",
      onclick: (event) => { rows.forEach((each) => { each.hidden = false; }); event.currentTarget.remove(); },
    });
  }

  function row(dom, [from, to, , bytes, time, tier, why]) {
    return dom.make("tr", {}, [
      dom.make("th", { scope: "row", text: from + " → " + to }),
      dom.make("td", { class: "tier " + tier, text: LINKS[tier] }),
      dom.make("td", { class: "number", text: bytes }),
      dom.make("td", { class: "number", text: time }),
      dom.make("td", { text: why }),
    ]);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createCounters, createPanel });
})();
