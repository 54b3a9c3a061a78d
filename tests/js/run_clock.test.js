import assert from "node:assert/strict";
import { test } from "node:test";

import { newestAt, timeWords } from "../../app/assets/core/run_clock.js";

const OPS = [
  [0, 4, 0, "send"],
  [10, 4, 1, "all-gather"],
  [10, 5, 1, "all-gather"],
  [30, 5, 0, "recv"],
];

test("the newest operation is the last that began by then", () => {
  assert.equal(newestAt(OPS, -1), null);
  assert.equal(newestAt(OPS, 0), OPS[0]);
  assert.equal(newestAt(OPS, 29.5), OPS[2]);
  assert.equal(newestAt(OPS, 1e9), OPS[3]);
  assert.equal(newestAt([], 5), null);
});

test("times have three digits and the largest unit that fits", () => {
  assert.equal(timeWords(0), "0 ns");
  assert.equal(timeWords(1234), "1.23 µs");
  assert.equal(timeWords(362_900_000), "363 ms");
  assert.equal(timeWords(2e9), "2 s");
});
