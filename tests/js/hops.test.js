import assert from "node:assert/strict";
import test from "node:test";
import { clampHop, firstHops, ranksSince, shortLabel, stripGroups } from "../../app/assets/core/hops.js";
import {
  crossingsText,
  eyebrow,
  hopName,
  liveText,
  tripPromise,
  tripQuestion,
} from "../../app/assets/core/words.js";
import { hop } from "./hop.js";

test("a hop number is brought into the trip", () => {
  assert.equal(clampHop("7", 42), 7);
  assert.equal(clampHop("-3", 42), 0);
  assert.equal(clampHop("99", 42), 41);
  assert.equal(clampHop("x", 42), 0);
  assert.equal(clampHop(undefined, 42), 0);
});

test("marks are known by the first hop that makes them", () => {
  const hops = [[11], [10], [10, 8]].map((ranks, i) =>
    hop(i, "all_gather", { marks: { newly_touched: ranks } }),
  );
  const since = firstHops(hops, (marks) => marks.newly_touched);
  assert.deepEqual(
    [...since],
    [
      [11, 0],
      [10, 1],
      [8, 2],
    ],
  );
  assert.deepEqual(ranksSince(since, 1), [11, 10]);
});

test("the strip groups hops by layer, with sends between and ends apart", () => {
  const hops = [
    hop(0, "land", { layer: 0, part: "land" }),
    hop(1, "all_gather"),
    hop(2, "combine"),
    hop(3, "pp_send", { part: "pipeline" }),
    hop(4, "all_gather", { layer: 2 }),
    hop(5, "logits_gather", { layer: 2, part: "lm_head" }),
  ];
  const groups = stripGroups(hops).map((group) => [group.label, group.hops.length]);
  assert.deepEqual(groups, [
    ["land", 1],
    ["layer 1", 2],
    ["", 1],
    ["layer 2", 1],
    ["head", 1],
  ]);
});

test("a dense strip labels a layer with its number alone", () => {
  assert.deepEqual(
    [shortLabel("layer 12", true), shortLabel("layer 12", false), shortLabel("head", false)],
    ["layer 12", "12", "head"],
  );
});

test("a hop has a spoken name", () => {
  assert.equal(hopName(hop(4, "dispatch", { crossings: 1 })), "Hop 4: layer 1, dispatch, crosses once");
  const exchange = hop(2, "kv_exchange", { crossings: 2 });
  assert.equal(hopName(exchange), "Hop 2: layer 1, K/V exchange, crosses 2 times");
});

test("ticks are counted as hops, by axis, and crossings apart from them", () => {
  const crossing = (axis, crossings) => hop(0, "x", { axis, crossings });
  const fourteen = Array.from({ length: 14 }, () => crossing("ep", 1));
  const told = "Orange ticks: hops that cross a node, 14 by EP and 1 by PP.";
  assert.equal(crossingsText([...fourteen, crossing("pp", 1), crossing("tp", 0)], "node"), told);
  const many = "Orange ticks: hops that cross an island, 2 by EP, 11 crossings in all.";
  assert.equal(crossingsText([crossing("ep", 8), crossing("ep", 3)], "island"), many);
  assert.equal(crossingsText([crossing("tp", 0)], "island"), "No hop of this trip crosses an island.");
});

test("the trip is one sentence with the mesh's numbers", () => {
  const scene = { world_size: 32, crossings_by_axis: { ep: 14, pp: 1 }, token: { position: 40 } };
  assert.equal(tripQuestion(scene), "One token, 32 GPUs, 15 slow crossings");
  assert.equal(tripPromise(scene), "Watch position 40 visit every GPU it needs, layer by layer.");
  assert.equal(
    tripQuestion({ ...scene, crossings_by_axis: { ep: 0 } }),
    "One token, 32 GPUs, no slow crossing",
  );
  const several = { ...scene, tokens: [1, 2], world_size: 1_048_576, crossings_by_axis: { pp: 1 } };
  assert.equal(tripQuestion(several), "2 tokens, 1,048,576 GPUs, 1 slow crossing");
  assert.match(tripPromise(several), /together/);
});

test("one token is told with its comm ops", () => {
  const told = liveText(hop(4, "dispatch"), 41, "node");
  assert.equal(
    told,
    "Hop 4 of 41, layer 1. dispatch. 1 GPUs touched, 2 node crossings, 3 comm ops, 4 B moved.",
  );
});

test("several tokens are told without comm ops, which they share", () => {
  const tally = { gpus_touched: 15, node_crossings: 6, comm_ops: null, bytes: 9, bytes_text: "9 B" };
  const told = liveText(hop(4, "dispatch", { takers: 3, tally }), 41, "node");
  assert.equal(
    told,
    "Hop 4 of 41, layer 1. dispatch. 3 tokens. 15 GPUs touched, 6 node crossings, 9 B moved.",
  );
});

test("above its title a hop says where it is", () => {
  const words = { title: "Dispatch", stop: "experts" };
  assert.equal(
    eyebrow(hop(4, "dispatch", { words, axis: "ep", dead: true })),
    "Layer 1 · experts · EP axis · dead work",
  );
  assert.equal(eyebrow(hop(0, "land", { words, layer: 0, axis: null })), "Before layer 1 · experts");
});
