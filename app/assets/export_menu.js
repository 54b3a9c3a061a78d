"use strict";
// What is seen, as a file: of this hop where the format draws one, or of the whole trip.
(function () {
  function exportMenu(page) {
    const { dom } = window.tokentrip;
    const name = page.data.name.replace(/[^\w.-]+/g, "-") + "-trip";
    const problem = dom.make("p", { class: "menu-problem", role: "alert", hidden: true });
    const whole = dom.make("input", { type: "checkbox" });
    const links = page.data.exports.map((ending) => dom.make("a", { href: "/export/" + name + ending, text: ending.slice(1),
      onclick: (event) => { event.preventDefault(); save(page, name + ending, whole.checked, problem); } }));
    const list = dom.make("div", { class: "menu-list" }, [dom.make("label", { class: "whole" }, [whole, "whole trip, not this hop"]), ...links, problem]);
    return dom.make("details", { class: "menu" }, [dom.make("summary", { text: "Export" }), list]);
  }

  // Fetched first: a format may refuse the trip, and the page stays and says why.
  async function save(page, file, whole, problem) {
    const { core, dom } = window.tokentrip;
    const { speed, rank, rows, hop, ...asked } = page.asked();
    problem.hidden = true;
    const query = core.formatQuery(whole ? asked : { ...asked, hop: page.player.state().hop });
    try {
      const response = await fetch("/export/" + file + query);
      if (!response.ok) throw new Error((await response.json()).error.text);
      const address = URL.createObjectURL(await response.blob());
      dom.make("a", { href: address, download: file }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      problem.textContent = error instanceof TypeError ? "The explorer cannot be reached. Is it still running?" : error.message;
      problem.hidden = false;
    }
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { exportMenu });
})();
