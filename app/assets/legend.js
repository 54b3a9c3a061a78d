"use strict";
// What lines and marks mean, under the map of the explorer and of a page in a file.
(function () {
  const NAMED = 8;

  function legend(data) {
    const { dom } = window.tokentrip;
    const item = (name, text) => dom.make("li", {}, [dom.make("span", { class: "sample " + name }), document.createTextNode(text)]);
    const links = [item("nvlink", "NVLink: along a row"), item("ib", "InfiniBand: down a rail")];
    const marks = data.tokens ? severalItems(dom, item, data)
      : [item("token", "the token"), item("kv", "its K/V"), item("kv-copy", "a borrowed copy")];
    return dom.make("ul", { class: "legend", "aria-label": "Legend" },
      [...links, ...marks, data.replicas > 1 ? item("tints", "tints: replicas") : null].filter(Boolean));
  }

  function severalItems(dom, item, data) {
    const named = data.tokens.length <= NAMED ? data.tokens : [];
    const notes = named.length ? data.legend_notes : [...data.legend_notes, "the table of tokens names each"];
    return [
      item("busy", "busiest link"), item("kv", "K/V of a token, or of ×n"), item("kv-copy", "a borrowed copy"),
      ...named.map((token) => dom.make("li", {}, [window.tokentrip.tokenDot(dom, token), document.createTextNode(token.name)])),
      ...notes.map((text) => dom.make("li", { text })),
    ];
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { legend });
})();
