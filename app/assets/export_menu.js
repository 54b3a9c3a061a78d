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
    const { core, saveFile, tripFile } = window.tokentrip;
    const { speed, rank, rows, hop, ...asked } = page.asked();
    problem.hidden = true;
    const query = core.formatQuery(whole ? asked : { ...asked, hop: page.player.state().hop });
    try {
      saveFile(file, await tripFile(file, query));
    } catch (error) {
      problem.textContent = core.whyFailed(error);
      problem.hidden = false;
    }
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { exportMenu });
})();
