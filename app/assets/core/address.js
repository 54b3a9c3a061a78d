// The address of a page as a query: what it says, what goes along to another page, what is asked of the server.

export const DEFAULT_SCENARIO = "six-cuts";

// Keys of a page's own view; all the others name the scenario.
const VIEW_KEYS = ["hop", "speed", "rank", "rows", "chapter", "seed_of_quiz", "a", "b"];

export function parseQuery(search) {
  return Object.fromEntries(new URLSearchParams(search));
}

export function formatQuery(query) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  return (text ? "?" + text : "").replaceAll("%2C", ",");
}

// A query with new values; null takes a key out.
export function changedQuery(query, changes) {
  return Object.fromEntries(Object.entries({ ...query, ...changes }).filter(([, value]) => value !== null));
}

export function omit(query, ...keys) {
  return Object.fromEntries(Object.entries(query).filter(([key]) => !keys.includes(key)));
}

export function scenarioQuery(query) {
  return omit(query, ...VIEW_KEYS);
}

// Only what decides the trip is asked for; the hop, for one, is the player's.
export function tripQuery(query) {
  return omit(query, "hop", "speed", "rank");
}

// A scenario as side A of the compare page; beside it the preset that it changes.
export function compareQuery(scenario) {
  const preset = scenario.scenario ?? DEFAULT_SCENARIO;
  const changed = Object.keys(scenario).some((key) => key !== "scenario");
  if (!changed && preset === DEFAULT_SCENARIO) return {};
  const a = formatQuery({ scenario: preset, ...scenario }).slice(1);
  return changed && preset ? { a, b: "scenario=" + preset } : { a };
}

// The address of one of several tokens' own trip; only the scenario's own token has the picks that are given.
export function ownTripQuery(query, token, scenarioToken) {
  const kept = omit(query, "follow", "hop", "rank");
  if (token.replica === scenarioToken.replica && token.position === scenarioToken.position) return kept;
  return otherToken(kept, token, scenarioToken.given_picks.length > 0);
}

// Followed alone, a token is the scenario's token, and its controls are those of one. Given picks are its own.
export function aloneQuery(query, token) {
  const kept = omit(query, "follow");
  return token.given_picks.length ? kept : otherToken(kept, token, true);
}

function otherToken(query, token, dropPicks) {
  const plain = Object.entries(query).filter(([key]) => !key.startsWith("picks.") && key !== "token.gpu");
  return {
    ...Object.fromEntries(plain),
    "token.replica": token.replica,
    "token.position": token.position,
    ...(dropPicks ? { picks: "" } : {}),
  };
}

// Changes that draw new picks in every layer: those that the preset gives go, and the seed moves on.
export function rerollChanges(query, token) {
  const picks = Object.keys(query).filter((key) => key.startsWith("picks."));
  return {
    seed: token.seed + 1,
    ...Object.fromEntries(picks.map((key) => [key, null])),
    ...(token.given_picks.length ? { picks: "" } : {}),
  };
}

// A query without its model and the picks of that model's experts.
export function withoutModel(query) {
  return Object.fromEntries(Object.entries(query).filter(([key]) => !/^(model|picks)(\.|$)/.test(key)));
}

// Changes that put another model in place of the scenario's; an empty preset gives the scenario's own back.
export function modelChanges(query, preset) {
  const keys = Object.keys(query).filter((key) => /^(model|picks)\./.test(key));
  const whole = preset ? "" : null;
  return {
    ...Object.fromEntries(keys.map((key) => [key, null])),
    model: whole,
    picks: whole,
    "model.preset": preset || null,
  };
}

const TOKEN_KEY = /^(token|picks)(\.|$)|^(seed|follow|scenario)$/;

// Whether the address changes its preset's mesh, cluster, model or plan: it is then no longer that preset.
export function changesMesh(query) {
  return Object.keys(scenarioQuery(query)).some((key) => !TOKEN_KEY.test(key));
}

// What the scenario of an address is called.
export function scenarioName(query) {
  const name = query.scenario ?? DEFAULT_SCENARIO;
  if (!name) return "my own";
  return changesMesh(query) ? name + ", changed" : name;
}
