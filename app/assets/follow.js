"use strict";
// Follow several tokens: a field for positions and runs of them, and what is wrong with them beside it.
(function () {
  function followForm(page, change) {
    const { dom } = window.tokentrip;
    const refused = page.refused && page.refused.names === page.query.follow ? page.refused.error : null;
    const input = dom.make("input", { type: "text", value: page.query.follow || "", placeholder: "0,5,9 or 0-7", spellcheck: "false",
      autocomplete: "off", "data-keep": "follow", "aria-invalid": refused ? "true" : null, "aria-describedby": refused ? "follow-error" : null });
    const send = (event) => { event.preventDefault(); change(page, { follow: input.value.trim() || null }); };
    const one = dom.make("button", { type: "button", text: "Follow one", onclick: () => change(page, { follow: null }) });
    return dom.make("form", { class: "follow", onsubmit: send }, [
      dom.labelled("Follow several tokens", input),
      dom.make("button", { type: "submit", text: "Follow" }), page.query.follow ? one : null,
      refused ? dom.make("p", { class: "follow-error", id: "follow-error", role: "alert", text: refused.rule.replace("is refused: ", "") + "; " + refused.fix }) : null,
    ]);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { followForm });
})();
