import assert from "node:assert/strict";
import test from "node:test";
import {
  aloneQuery,
  changedQuery,
  changesMesh,
  compareQuery,
  formatQuery,
  modelChanges,
  ownTripQuery,
  parseQuery,
  rerollChanges,
  scenarioName,
  scenarioQuery,
  tripQuery,
  withoutModel,
} from "../../app/assets/core/address.js";

test("a query is read and written the same, commas as they are", () => {
  const query = { scenario: "six-cuts", "picks.1": "5,27", hop: "4" };
  assert.deepEqual(parseQuery(formatQuery(query)), query);
  assert.equal(formatQuery(query), "?scenario=six-cuts&picks.1=5,27&hop=4");
  assert.equal(formatQuery({ hop: null, speed: undefined }), "");
});

test("null takes a key out of a query", () => {
  assert.deepEqual(changedQuery({ scenario: "six-cuts", hop: "4" }, { hop: null, rank: 3 }), {
    scenario: "six-cuts",
    rank: 3,
  });
});

test("the trip is asked for without what only the player needs", () => {
  const query = { scenario: "six-cuts", hop: "4", speed: "2", rank: "11", rows: "all", follow: "0,5" };
  assert.deepEqual(tripQuery(query), { scenario: "six-cuts", rows: "all", follow: "0,5" });
});

test("a page's own keys stay behind, and the scenario goes along", () => {
  const query = {
    scenario: "six-cuts",
    "mesh.ep": "8",
    "picks.1": "5,27",
    hop: "4",
    speed: "2",
    chapter: "relay",
  };
  const scenario = { scenario: "six-cuts", "mesh.ep": "8", "picks.1": "5,27" };
  assert.deepEqual(scenarioQuery(query), scenario);
  assert.deepEqual(compareQuery(scenario), {
    a: "scenario=six-cuts&mesh.ep=8&picks.1=5,27",
    b: "scenario=six-cuts",
  });
});

test("compare starts with the scenario as it is, beside its preset when it changes one", () => {
  assert.deepEqual(compareQuery({}), {});
  assert.deepEqual(compareQuery({ scenario: "six-cuts" }), {});
  assert.deepEqual(compareQuery({ scenario: "qwen3-235b" }), { a: "scenario=qwen3-235b" });
  assert.deepEqual(compareQuery({ scenario: "", "mesh.dp": "4" }), { a: "scenario=&mesh.dp=4" });
});

test("a token's own trip keeps given picks only for the scenario's own token", () => {
  const query = { scenario: "six-cuts", follow: "0,40", hop: "4", "picks.1": "5,27" };
  const own = { replica: 2, position: 40, given_picks: [1] };
  assert.deepEqual(ownTripQuery(query, { replica: 2, position: 40 }, own), {
    scenario: "six-cuts",
    "picks.1": "5,27",
  });
  assert.deepEqual(ownTripQuery(query, { replica: 3, position: 0 }, own), {
    scenario: "six-cuts",
    "token.replica": 3,
    "token.position": 0,
    picks: "",
  });
});

test("a token followed alone becomes the scenario's token", () => {
  const query = { scenario: "six-cuts", follow: "3:5", hop: "4", "picks.1": "5,27", "token.gpu": "11" };
  assert.deepEqual(aloneQuery(query, { replica: 3, position: 5, given_picks: [] }), {
    scenario: "six-cuts",
    hop: "4",
    "token.replica": 3,
    "token.position": 5,
    picks: "",
  });
  assert.deepEqual(aloneQuery({ follow: "40" }, { replica: 2, position: 40, given_picks: [1] }), {});
});

test("new picks take the seed one on and the given ones out", () => {
  const query = { scenario: "six-cuts", "picks.1": "5,27", seed: "7" };
  assert.deepEqual(rerollChanges(query, { seed: 7, given_picks: [1] }), {
    seed: 8,
    "picks.1": null,
    picks: "",
  });
  assert.deepEqual(rerollChanges({}, { seed: 0, given_picks: [] }), { seed: 1 });
});

test("another model takes the old one's keys and picks along", () => {
  const query = { scenario: "six-cuts", "model.layers": "4", "picks.1": "5", "mesh.ep": "8" };
  assert.deepEqual(withoutModel(query), { scenario: "six-cuts", "mesh.ep": "8" });
  assert.deepEqual(changedQuery(query, modelChanges(query, "qwen3-235b")), {
    scenario: "six-cuts",
    "mesh.ep": "8",
    model: "",
    picks: "",
    "model.preset": "qwen3-235b",
  });
  assert.deepEqual(changedQuery(query, modelChanges(query, "")), { scenario: "six-cuts", "mesh.ep": "8" });
});

test("a preset whose mesh is changed is no longer called by its name alone", () => {
  assert.equal(scenarioName({}), "six-cuts");
  assert.equal(
    scenarioName({ scenario: "ep", "token.position": "3", "picks.1": "5,9", seed: "4", hop: "2" }),
    "ep",
  );
  assert.equal(scenarioName({ "mesh.pp": "2" }), "six-cuts, changed");
  assert.equal(scenarioName({ scenario: "", "mesh.tp": "2" }), "my own");
  assert.equal(changesMesh({ "model.preset": "x" }), true);
  assert.equal(changesMesh({ follow: "0-7", seed: "1" }), false);
});
