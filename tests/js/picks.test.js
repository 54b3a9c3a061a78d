import assert from "node:assert/strict";
import test from "node:test";
import { routedPicks } from "../../app/assets/core/picks.js";
import { hop } from "./hop.js";

const PICKS = { 1: [5, 27], 2: [4, 9] };

test("the next layer's first pick goes to an expert of the GPU that is not picked yet", () => {
  const experts = { 1: [5, 6], 2: [4, 5] };
  assert.deepEqual(routedPicks(hop(1, "all_gather"), experts, PICKS), {
    layer: 1,
    expert: 6,
    picks: [6, 27],
  });
  assert.deepEqual(routedPicks(hop(4, "dispatch"), experts, PICKS), { layer: 2, expert: 5, picks: [5, 9] });
});

test("nothing is offered after the last layer, or when the token picks all that the GPU holds", () => {
  assert.equal(routedPicks(hop(9, "combine", { layer: 2 }), { 1: [5], 2: [5] }, PICKS), null);
  assert.equal(routedPicks(hop(1, "all_gather"), { 1: [5, 27] }, PICKS), null);
  assert.equal(routedPicks(hop(1, "all_gather"), {}, PICKS), null);
});
