"use strict";
const test = require("node:test");
const assert = require("node:assert/strict");
const core = require("../../app/assets/core.js");

const hop = (index, kind, more) => ({
  index, kind, layer: 1, part: "attention", crossings: 0, moves: [], marks: { new: [], kv: [], copies: [] },
  words: { title: kind }, tally: [1, 2, 3, 4, "4 B"], ...more,
});

test("a query is read and written the same, commas as they are", () => {
  const query = { scenario: "six-cuts", "picks.1": "5,27", hop: "4" };
  assert.deepEqual(core.parseQuery(core.formatQuery(query)), query);
  assert.equal(core.formatQuery(query), "?scenario=six-cuts&picks.1=5,27&hop=4");
  assert.equal(core.formatQuery({ hop: null, speed: undefined }), "");
});

test("a hop number is brought into the trip", () => {
  assert.equal(core.clampHop("7", 42), 7);
  assert.equal(core.clampHop("-3", 42), 0);
  assert.equal(core.clampHop("99", 42), 41);
  assert.equal(core.clampHop("x", 42), 0);
  assert.equal(core.clampHop(undefined, 42), 0);
});

test("marks are known by the first hop that makes them", () => {
  const hops = [[11], [10], [10, 8]].map((ranks, i) => hop(i, "all_gather", { marks: { new: ranks } }));
  const since = core.firstHops(hops, (each) => each.marks.new);
  assert.deepEqual([...since], [[11, 0], [10, 1], [8, 2]]);
  assert.deepEqual(core.ranksSince(since, 1), [11, 10]);
});

test("the strip groups hops by layer, with sends between and ends apart", () => {
  const hops = [
    hop(0, "land", { layer: 0, part: "land" }), hop(1, "all_gather"), hop(2, "combine"),
    hop(3, "pp_send", { part: "pipeline" }), hop(4, "all_gather", { layer: 2 }), hop(5, "logits_gather", { layer: 2, part: "lm_head" }),
  ];
  assert.deepEqual(core.stripGroups(hops).map((group) => [group.label, group.hops.length]),
    [["land", 1], ["layer 1", 2], ["", 1], ["layer 2", 1], ["head", 1]]);
});

test("a hop has a spoken name", () => {
  assert.equal(core.hopName(hop(4, "dispatch", { crossings: 1 })), "Hop 4: layer 1, dispatch, crosses once");
  assert.equal(core.hopName(hop(2, "kv_exchange", { crossings: 2 })), "Hop 2: layer 1, K/V exchange, crosses 2 times");
});

test("phases run one after the other and fill the hop", () => {
  const phased = hop(1, "dispatch", { moves: [[], [], []].map((_, i) => { const move = Array(10).fill(0); move[7] = i; return move; }) });
  assert.equal(core.phaseCount(phased), 3);
  assert.equal(core.progress(0.2, 1, 3), 0);
  assert.equal(core.progress(0.5, 0, 3), 1);
  assert.equal(core.progress(0.5, 1, 3), 0.5);
  assert.equal(core.progress(1, 2, 3), 1);
});

test("no motion lasts more than 600 ms, at any speed", () => {
  for (const speed of [0.5, 1, 2, 4, 8]) assert.ok(core.travelMs(speed) <= 600);
});

test("easing starts at 0, ends at 1 and never goes back", () => {
  const values = Array.from({ length: 101 }, (_, i) => core.ease(i / 100));
  assert.equal(values[0], 0);
  assert.equal(values[100], 1);
  values.slice(1).forEach((value, i) => assert.ok(value >= values[i]));
});

test("arrow keys find the GPU next to one, and none past the edge", () => {
  const boxes = { 0: [0, 0], 1: [80, 0], 2: [160, 0], 8: [0, 100], 9: [80, 100] };
  assert.equal(core.neighbour(boxes, 0, "ArrowRight"), 1);
  assert.equal(core.neighbour(boxes, 1, "ArrowDown"), 9);
  assert.equal(core.neighbour(boxes, 9, "ArrowLeft"), 8);
  assert.equal(core.neighbour(boxes, 0, "ArrowUp"), null);
});

test("a fix offers values", () => {
  assert.deepEqual(core.fixValues("try 2, 4, 8 or 16 (Megatron: --expert-model-parallel-size)"), ["2", "4", "8", "16"]);
  assert.deepEqual(core.fixValues("try 0 to 3"), ["0"]);
  assert.deepEqual(core.fixValues("try 'ring'"), ["ring"]);
  assert.deepEqual(core.fixValues("try nodes = 8, or sizes that multiply to 32"), ["8"]);
  assert.deepEqual(core.fixValues("leave it out"), []);
});

test("crossings are told by axis", () => {
  assert.equal(core.crossingsText({ tp: 0, ep: 14, pp: 1 }, "node"), "Orange ticks are hops that cross a node: 14 by EP, 1 by PP in the whole trip.");
  assert.equal(core.crossingsText({ tp: 0 }, "island"), "No hop of this trip crosses an island.");
});

test("K/V tags stand as the last hop that changed them left them", () => {
  const hops = [[[11, ["a"]]], [], [[11, ["b"]], [10, ["c"]]]].map((kept, i) => hop(i, "all_gather", { marks: { kept } }));
  assert.deepEqual([...core.keptAt(hops, 1)], [[11, ["a"]]]);
  assert.deepEqual([...core.keptAt(hops, 2)], [[11, ["b"]], [10, ["c"]]]);
  assert.deepEqual([...core.keptAt(hops, -1)], []);
});

test("while a hop travels, tokens stand as before it but for those that leave", () => {
  const hops = [
    hop(0, "land", { marks: { crowds: [[8, ["0", "1"]], [11, ["2"]]], leave: [] } }),
    hop(1, "pp_send", { marks: { crowds: [[8, ["1"]], [24, ["0"]], [27, ["2"]]], leave: [[8, ["1"]], [11, []]] } }),
  ];
  assert.deepEqual([...core.standing(hops, 1)], [[8, ["1"]], [11, []]]);
  assert.deepEqual([...core.standing(hops, 0)], []);
});

test("a link is the busiest either way, and none is when nothing moves", () => {
  assert.equal(core.isBusiest([8, 0], [0, 8, "words"]), true);
  assert.equal(core.isBusiest([8, 1], [0, 8, "words"]), false);
  assert.equal(core.isBusiest([8, 0], null), false);
});

test("a token's own trip keeps given picks only for the scenario's own token", () => {
  const query = { scenario: "six-cuts", follow: "0,40", hop: "4", "picks.1": "5,27" };
  const data = { replica: 2, position: 40, given_picks: [1] };
  assert.deepEqual(core.ownTripQuery(query, { replica: 2, position: 40 }, data), { scenario: "six-cuts", "picks.1": "5,27" });
  assert.deepEqual(core.ownTripQuery(query, { replica: 3, position: 0 }, data),
    { scenario: "six-cuts", "token.replica": 3, "token.position": 0, picks: "" });
});

test("a token followed alone becomes the scenario's token", () => {
  const query = { scenario: "six-cuts", follow: "3:5", hop: "4", "picks.1": "5,27", "token.gpu": "11" };
  assert.deepEqual(core.aloneQuery(query, { replica: 3, position: 5, given_picks: [] }),
    { scenario: "six-cuts", hop: "4", "token.replica": 3, "token.position": 5, picks: "" });
  assert.deepEqual(core.aloneQuery({ follow: "40" }, { replica: 2, position: 40, given_picks: [1] }), {});
});

test("several tokens are told without comm ops, which they share", () => {
  const told = core.liveText(hop(4, "dispatch", { takers: 3, tally: [15, 6, null, 9, "9 B"] }), 41, "node");
  assert.equal(told, "Hop 4 of 41, layer 1. dispatch. 3 tokens. 15 GPUs touched, 6 node crossings, 9 B moved.");
});

test("a page's own keys stay behind, and the scenario goes along", () => {
  const query = { scenario: "six-cuts", "mesh.ep": "8", "picks.1": "5,27", hop: "4", speed: "2", chapter: "relay" };
  const scenario = { scenario: "six-cuts", "mesh.ep": "8", "picks.1": "5,27" };
  assert.deepEqual(core.scenarioQuery(query), scenario);
  assert.deepEqual(core.compareQuery(scenario), { a: "scenario=six-cuts&mesh.ep=8&picks.1=5,27", b: "scenario=six-cuts" });
});

test("compare starts with the scenario as it is, beside its preset when it changes one", () => {
  assert.deepEqual(core.compareQuery({}), {});
  assert.deepEqual(core.compareQuery({ scenario: "six-cuts" }), {});
  assert.deepEqual(core.compareQuery({ scenario: "qwen3-235b" }), { a: "scenario=qwen3-235b" });
  assert.deepEqual(core.compareQuery({ scenario: "", "mesh.dp": "4" }), { a: "scenario=&mesh.dp=4" });
});

test("tables are written as CSV, with quotes where a cell needs them", () => {
  assert.equal(core.csvText(["", "a,b"], [["x", 1], ['say "y"', "two\nlines"]]), ',"a,b"\r\nx,1\r\n"say ""y""","two\nlines"\r\n');
  assert.equal(core.slug("Bytes a GPU sends, axis by axis: K/V"), "bytes-a-gpu-sends-axis-by-axis-k-v");
  assert.deepEqual(JSON.parse(core.jsonText({ a: [1] })), { a: [1] });
});
