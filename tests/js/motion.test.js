import assert from "node:assert/strict";
import test from "node:test";
import { ease, phaseCount, progress, restMs, SPEEDS, travelMs } from "../../app/assets/core/motion.js";
import { hop } from "./hop.js";

test("phases run one after the other and fill the hop", () => {
  const phased = hop(1, "dispatch", { moves: [{ phase: 0 }, { phase: 2 }, { phase: 1 }] });
  assert.equal(phaseCount(phased), 3);
  assert.equal(phaseCount(hop(0, "land")), 0);
  assert.equal(progress(0.2, 1, 3), 0);
  assert.equal(progress(0.5, 0, 3), 1);
  assert.equal(progress(0.5, 1, 3), 0.5);
  assert.equal(progress(1, 2, 3), 1);
});

test("no motion lasts more than 600 ms, at any speed", () => {
  for (const speed of SPEEDS) assert.ok(travelMs(speed) <= 600);
  assert.ok(restMs(0.5) > restMs(1));
  assert.ok(travelMs(8) < travelMs(1));
});

test("easing starts at 0, ends at 1 and never goes back", () => {
  const values = Array.from({ length: 101 }, (_, i) => ease(i / 100));
  assert.equal(values[0], 0);
  assert.equal(values[100], 1);
  values.slice(1).forEach((value, i) => assert.ok(value >= values[i]));
});
