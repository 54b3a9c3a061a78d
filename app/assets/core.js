"use strict";
// Pure functions of the player: no page, no clock. `node --test tests/js` runs their tests.
(function (root) {
  const ABBREVIATIONS = {
    land: "L", all_gather: "AG", kv_exchange: "KV", reduce_scatter: "RS", all_reduce: "AR",
    dispatch: "D", combine: "C", pp_send: "PP", head_copy: "HC", logits_gather: "LG",
    query_send: "Q", partials_return: "O", kv_transfer: "KT", weight_pull: "W",
  };
  const FAMILIES = {
    land: "rest", all_gather: "tp", reduce_scatter: "tp", all_reduce: "tp", head_copy: "tp", logits_gather: "tp",
    kv_exchange: "cp", query_send: "cp", partials_return: "cp", kv_transfer: "cp",
    dispatch: "ep", combine: "ep", weight_pull: "ep", pp_send: "pp",
  };
  const UNREACHABLE = "The explorer cannot be reached. Is it still running?";
  const TRAVEL_MS = 560;
  const REST_MS = 520;

  function parseQuery(search) {
    return Object.fromEntries(new URLSearchParams(search));
  }

  function formatQuery(state) {
    const kept = Object.entries(state).filter(([, value]) => value !== null && value !== undefined);
    const text = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
    return (text ? "?" + text : "").replaceAll("%2C", ",");
  }

  // What names the scenario in a page's query: all but the keys of a page's own view.
  function scenarioQuery(query) {
    const { hop, speed, rank, rows, chapter, seed_of_quiz, a, b, ...scenario } = query;
    return scenario;
  }

  // A scenario as side A of the compare page; beside it the preset that it changes.
  function compareQuery(scenario) {
    const preset = scenario.scenario ?? "six-cuts";
    const changed = Object.keys(scenario).some((key) => key !== "scenario");
    if (!changed && preset === "six-cuts") return {};
    const a = formatQuery({ scenario: preset, ...scenario }).slice(1);
    return changed && preset ? { a, b: "scenario=" + preset } : { a };
  }

  // A hop number from an address or a control, brought into the trip.
  function clampHop(value, count) {
    const number = Number.parseInt(value, 10);
    return Number.isNaN(number) ? 0 : Math.min(Math.max(number, 0), count - 1);
  }

  // For each rank, the first hop after which a list of marks names it.
  function firstHops(hops, read) {
    const since = new Map();
    hops.forEach((hop, index) => {
      for (const rank of read(hop)) if (!since.has(rank)) since.set(rank, index);
    });
    return since;
  }

  function ranksSince(since, index) {
    const found = [];
    for (const [rank, hop] of since) if (hop <= index) found.push(rank);
    return found;
  }

  // The strip: one group a layer, pipeline sends between, landing and LM head at the ends.
  function stripGroups(hops) {
    const groups = [];
    for (const hop of hops) {
      const label = groupLabel(hop);
      const last = groups[groups.length - 1];
      if (last && last.label === label) last.hops.push(hop);
      else groups.push({ label, hops: [hop] });
    }
    return groups;
  }

  function groupLabel(hop) {
    if (hop.part === "land" || hop.part === "embedding") return "land";
    if (hop.kind === "pp_send") return "";
    if (hop.part === "lm_head") return "head";
    return "layer " + hop.layer;
  }

  function hopName(hop) {
    const words = hop.kind.replaceAll("_", " ").replace("kv", "K/V").replace("pp", "PP");
    const place = hop.layer ? "layer " + hop.layer + ", " : "";
    const crosses = hop.crossings ? ", crosses " + hop.crossings + " times" : "";
    return "Hop " + hop.index + ": " + place + words + crosses.replace(" 1 times", " once");
  }

  function ease(t) {
    return t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) * (1 - t);
  }

  function phaseCount(hop) {
    return hop.moves.reduce((most, move) => Math.max(most, move[7] + 1), 0);
  }

  // How far along its path a move of a phase is, when `share` of the hop's travel is over.
  function progress(share, phase, phases) {
    const own = share * phases - phase;
    return own <= 0 ? 0 : own >= 1 ? 1 : ease(own);
  }

  function restMs(speed) {
    return REST_MS / speed;
  }

  function travelMs(speed) {
    return Math.min(TRAVEL_MS, TRAVEL_MS / speed);
  }

  function crossingsText(byAxis, unit) {
    const word = (/^[aeiou]/.test(unit) ? "an " : "a ") + unit;
    const parts = Object.entries(byAxis).filter(([, count]) => count).map(([axis, count]) => count + " by " + axis.toUpperCase());
    if (!parts.length) return "No hop of this trip crosses " + word + ".";
    return "Orange ticks are hops that cross " + word + ": " + parts.join(", ") + " in the whole trip.";
  }

  function liveText(hop, last, word) {
    const [gpus, crossings, ops, , bytes] = hop.tally;
    const place = hop.layer ? "layer " + hop.layer + ". " : "";
    const shared = hop.takers === undefined ? ops + " comm ops, " : "";
    const who = hop.takers === undefined ? "" : " " + hop.takers + (hop.takers === 1 ? " token." : " tokens.");
    return "Hop " + hop.index + " of " + last + ", " + place + hop.words.title + "." + who + " " + gpus + " GPUs touched, " +
      crossings + " " + word + " crossings, " + shared + bytes + " moved.";
  }

  // Several tokens: the K/V tags of each rank after a hop, each as the last hop that changed them left them.
  function keptAt(hops, index) {
    const kept = new Map();
    for (const hop of hops.slice(0, index + 1)) for (const [rank, tags] of hop.marks.kept) kept.set(rank, tags);
    return kept;
  }

  // Who stands where while a hop travels: everyone as before it, but for the ranks that some leave.
  function standing(hops, index) {
    const stand = new Map(index ? hops[index - 1].marks.crowds : []);
    for (const [rank, tags] of hops[index].marks.leave) stand.set(rank, tags);
    return stand;
  }

  function isBusiest(move, link) {
    return Boolean(link) && ((move[0] === link[0] && move[1] === link[1]) || (move[0] === link[1] && move[1] === link[0]));
  }

  // The address of one of several tokens' own trip; only the scenario's own token has the picks that are given.
  function ownTripQuery(query, token, data) {
    const { follow, hop, rank, ...kept } = query;
    if (token.replica === data.replica && token.position === data.position) return kept;
    return otherToken(kept, token, data.given_picks.length > 0);
  }

  function otherToken(query, token, dropPicks) {
    const plain = Object.fromEntries(Object.entries(query).filter(([key]) => !key.startsWith("picks.") && key !== "token.gpu"));
    return { ...plain, "token.replica": token.replica, "token.position": token.position, ...(dropPicks ? { picks: "" } : {}) };
  }

  // Followed alone, a token is the scenario's token, and its controls are those of one. Given picks are its own.
  function aloneQuery(query, token) {
    const { follow, ...kept } = query;
    return token.given_picks.length ? kept : otherToken(kept, token, true);
  }

  // The drawn GPU next to another in a direction, for arrow keys on the map.
  function neighbour(boxes, rank, key) {
    const [x, y] = boxes[rank];
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
    let best = null;
    let least = Infinity;
    for (const [other, [ox, oy]] of Object.entries(boxes)) {
      const along = (ox - x) * step[0] + (oy - y) * step[1];
      const aside = Math.abs((ox - x) * step[1]) + Math.abs((oy - y) * step[0]);
      const cost = along + 8 * aside;
      if (along > 0 && cost < least) [best, least] = [Number(other), cost];
    }
    return best;
  }

  // Values that the fix of an error offers: "try 2, 4, 8 or 16" gives four, "try 0 to 3" the first.
  function fixValues(fix) {
    const named = /^try \w+ = (\d+)/.exec(fix);
    if (named) return [named[1]];
    const list = /^try ((?:[\w.-]+|'[^']*')(?:(?:, | or )(?:\d+|'[^']*'))*)/.exec(fix);
    if (!list) return [];
    return list[1].split(/, | or /).map((each) => each.replaceAll("'", "")).filter((each) => /^[\w-]+$/.test(each));
  }

  // A name as part of a file's name.
  function slug(text) {
    return text.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "");
  }

  function csvText(heads, rows) {
    const cell = (text) => (/[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
    return [heads, ...rows].map((row) => row.map((each) => cell(String(each))).join(",") + "\r\n").join("");
  }

  function jsonText(value) {
    return JSON.stringify(value, null, 1) + "\n";
  }

  // A fetch that gets no answer at all throws a TypeError.
  function whyFailed(error) {
    return error instanceof TypeError ? UNREACHABLE : error.message;
  }

  const core = {
    ABBREVIATIONS, FAMILIES, UNREACHABLE, parseQuery, formatQuery, scenarioQuery, compareQuery, clampHop, firstHops, ranksSince, stripGroups, hopName,
    ease, phaseCount, progress, restMs, travelMs, crossingsText, liveText, neighbour, fixValues,
    keptAt, standing, isBusiest, ownTripQuery, aloneQuery, slug, csvText, jsonText, whyFailed,
  };
  if (typeof module !== "undefined" && module.exports) module.exports = core;
  else root.tokentrip = Object.assign(root.tokentrip || {}, { core });
})(typeof window === "undefined" ? globalThis : window);
