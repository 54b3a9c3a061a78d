"use strict";
// The controls of a page of figures: each writes its key into the address, or sends a file along.
(function () {
  function reportControl(page, each) {
    const { dom } = window.tokentrip;
    const shared = { "data-key": each.key, onchange: (event) => page.set({ [each.key]: event.target.value }) };
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
        if (file.size <= each.most_bytes) { page.load(); return; }
        page.sent = {};
        const wrong = each.key + "=" + file.name + " is over " + each.most_bytes.toLocaleString("en") + " bytes; send fewer tokens";
        page.show({ ...page.data, controls: page.data.controls.map((other) => (other === each ? { ...each, wrong } : other)) });
      } });
    return input;
  }

  function aboutFile(page, each) {
    const { dom } = window.tokentrip;
    const drop = () => { page.sent = {}; page.load(); };
    return [
      each.name ? dom.make("button", { type: "button", text: "Back to drawn picks", onclick: drop }) : null,
      each.name ? dom.make("p", { class: "help", role: "status", text: each.name + " is counted. It stays in this browser: a link to this page does not hold it." }) : null,
      each.wrong ? dom.make("p", { class: "control-wrong", role: "alert", id: each.key + "-wrong", text: each.wrong }) : null,
    ].filter(Boolean);
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { reportControl, aboutFile });
})();
