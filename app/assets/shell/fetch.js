// Questions to the server. Every answer is JSON; a refusal is { error: { text, ... } }.

import { ownAddress } from "./place.js";

const early = new Map();

// A question whose answer the page will need: asked while Dash still loads, and kept for whoever asks it
// again. `prepare` works on the answer while there is time.
export function askEarly(address, prepare = (data) => data) {
  const answer = fetchJson(address).then(prepare);
  early.set(address, answer);
  answer.catch(() => early.delete(address));
}

// Throws a TypeError when the server cannot be reached, an AbortError when `signal` says so.
export async function fetchJson(address, signal, options) {
  const asked = early.get(address);
  if (asked && !options) {
    early.delete(address);
    return asked;
  }
  const response = await fetch(ownAddress(address), {
    signal,
    headers: { Accept: "application/json" },
    ...options,
  });
  const silent = { error: { text: "The explorer did not answer (" + response.status + ")." } };
  const body = await response.json().catch(() => silent);
  return body.error || response.ok ? body : silent;
}

// A trip as the server writes it for a query; a format may refuse a trip, and says why.
export async function fetchTripFile(name, query) {
  const response = await fetch(ownAddress("/export/" + name + query));
  if (!response.ok) throw new Error((await response.json()).error.text);
  return response.blob();
}
