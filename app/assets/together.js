"use strict";
// Several tokens beside the map: who meets in a hop, and each token with the totals of its own trip.
(function () {
  // What the panel adds to a hop that tokens take together.
  function meetingParts(dom, hop) {
    if (!hop.meetings) return [];
    return [
      dom.make("h3", { class: "meet", text: hop.meetings.length ? "They meet here" : "No two of them meet here" }),
      hop.meetings.length ? list(dom, hop.meetings, "Who meets on which GPU") : null,
      dom.make("details", {}, [dom.make("summary", { text: "Where they are after this hop" }), list(dom, hop.places, "Which tokens are on which GPU")]),
      hop.busiest ? dom.make("p", { class: "busiest", text: "Busiest link of this hop: " + hop.busiest[2] + "." }) : null,
    ];
  }

  function list(dom, lines, label) {
    return dom.make("ul", { class: "meetings", tabindex: lines.length > 6 ? "0" : null, "aria-label": label },
      lines.map((text) => dom.make("li", { text })));
  }

  // `tripOf(token)` is the address of a token's own trip; a page in a file has none.
  function createTokens(data, tripOf) {
    const { dom } = window.tokentrip;
    if (!data.tokens) return null;
    const names = ["Token", "Replica", "Position", "Home", "GPUs", "Crossings", "Ops", "Moved"];
    const head = dom.make("tr", {}, names.map((text) => dom.make("th", { scope: "col", text })));
    const body = dom.make("tbody", {}, data.tokens.map((token) => row(dom, token, tripOf)));
    const table = dom.make("table", {}, [dom.make("caption", { class: "unseen", text: "Each token's own trip" }), dom.make("thead", {}, [head]), body]);
    return dom.make("section", { class: "tokens", "aria-label": "Tokens" }, [
      dom.make("h2", { text: data.tokens.length + " tokens" }),
      data.busiest ? dom.make("p", { class: "busiest", text: "Busiest link of the trip: " + data.busiest[2] + "." }) : null,
      dom.make("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": "Each token's own trip" }, [table]),
      tripOf ? dom.make("p", { class: "why", text: "A token's number leads to its own trip, with its own log." }) : null,
    ]);
  }

  function row(dom, token, tripOf) {
    const [gpus, crossings, ops, , bytes] = token.totals;
    const words = [dom.make("span", { class: "unseen", text: "Token " + token.index + (tripOf ? ", its own trip" : "") }), dot(dom, token)];
    const name = tripOf ? dom.make("a", { href: tripOf(token), class: "token-link" }, words) : dom.make("span", { class: "token-link" }, words);
    const values = [token.replica, token.position, token.home, gpus, crossings, ops, bytes];
    return dom.make("tr", { "data-token": token.index }, [dom.make("th", { scope: "row" }, [name]),
      ...values.map((value) => dom.make("td", { class: "number", text: value.toLocaleString("en") }))]);
  }

  function dot(dom, token) {
    const drawn = dom.make("span", { class: "token-dot", "aria-hidden": "true", text: token.index });
    [drawn.style.background, drawn.style.color] = token.colours;
    return drawn;
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { meetingParts, createTokens, tokenDot: dot });
})();
