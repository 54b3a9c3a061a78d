// What is seen, for others: shared, or as a file of this hop where the format draws one, or of the whole trip.

import { formatQuery, omit, scenarioName } from "../core/address.js";
import { whyFailed } from "../core/errors.js";
import { slug } from "../core/files.js";
import { ownAddress } from "../shell/place.js";
import { saveFile } from "../shell/download.js";
import { make } from "../shell/dom.js";
import { fetchTripFile } from "../shell/fetch.js";
import { shareEntries } from "./share.js";

export function exportMenu(page) {
  const name = slug(scenarioName(page.query)) + "-trip";
  const problem = make("p", { class: "menu-problem", role: "alert", hidden: true });
  const whole = make("input", { type: "checkbox" });
  const links = page.data.exports.map((ending) => {
    const file = name + ending;
    const onclick = (event) => {
      event.preventDefault();
      save(page, file, whole.checked, problem);
    };
    return make("a", { href: ownAddress("/export/" + file), text: ending.slice(1), onclick });
  });
  const choice = make("label", { class: "whole" }, [whole, "whole trip, not this hop"]);
  return make("details", { class: "menu" }, [
    make("summary", { text: "Share" }),
    make("div", { class: "menu-list" }, [...shareEntries(page), choice, ...links, problem]),
  ]);
}

// Fetched first: a format may refuse the trip, and the page stays and says why.
async function save(page, file, whole, problem) {
  const asked = omit(page.asked(), "speed", "rank", "rows", "hop");
  problem.hidden = true;
  const query = formatQuery(whole ? asked : { ...asked, hop: page.player.state().hop });
  try {
    saveFile(file, await fetchTripFile(file, query));
  } catch (error) {
    problem.textContent = whyFailed(error);
    problem.hidden = false;
  }
}
