import assert from "node:assert/strict";
import test from "node:test";
import { keepGpus, worldOf } from "../../app/assets/core/lock.js";

const SIX = { tp: 2, cp: 2, dp: 4, pp: 2, ep: 16, etp: 1, replica: 2 };
const EP64 = { tp: 1, cp: 1, dp: 64, pp: 1, ep: 64, etp: 1, replica: 5 };

test("one size is set, another follows, and the number of GPUs stays", () => {
  for (const [axis, value] of [
    ["tp", 4],
    ["tp", 1],
    ["cp", 1],
    ["cp", 4],
    ["dp", 8],
    ["dp", 1],
    ["pp", 1],
    ["pp", 4],
  ]) {
    const { changes } = keepGpus(SIX, axis, value);
    assert.equal(worldOf({ ...SIX, ...changes }), 32, axis + value);
    assert.equal(changes[axis], value);
  }
});

test("it is said what follows from what", () => {
  const found = keepGpus(EP64, "pp", 2);
  assert.deepEqual(found.changes, { pp: 2, dp: 32, ep: 32 });
  assert.equal(found.said, "DP 64 → 32 keeps 64 GPUs; EP 64 → 32: a stage has 32 GPUs");
  const fewer = keepGpus(SIX, "tp", 8);
  assert.deepEqual(fewer.changes, { tp: 8, dp: 1, replica: 0 });
  assert.match(fewer.said, /replica 2 → 0: there are 1/);
});

test("a change of DP is met by another axis", () => {
  assert.deepEqual(keepGpus(SIX, "dp", 8).changes, { dp: 8, pp: 1 });
});

test("where nothing can follow, values that would work are named", () => {
  assert.deepEqual(keepGpus(SIX, "tp", 3), { choices: [1, 2, 4, 8] });
});

test("a size that does not change says nothing", () => {
  assert.deepEqual(keepGpus(SIX, "tp", 2), { changes: {}, said: "" });
});
