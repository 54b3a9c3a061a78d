import assert from "node:assert/strict";
import test from "node:test";
import { fixValues, UNREACHABLE, whyFailed } from "../../app/assets/core/errors.js";

test("a fix offers values", () => {
  const sizes = fixValues("try 2, 4, 8 or 16 (Megatron: --expert-model-parallel-size)");
  assert.deepEqual(sizes, ["2", "4", "8", "16"]);
  assert.deepEqual(fixValues("try 0 to 3"), ["0"]);
  assert.deepEqual(fixValues("try 'ring'"), ["ring"]);
  assert.deepEqual(fixValues("try nodes = 8, or sizes that multiply to 32"), ["8"]);
  assert.deepEqual(fixValues("leave it out"), []);
});

test("a fetch without an answer says that the explorer cannot be reached", () => {
  assert.equal(whyFailed(new TypeError("Failed to fetch")), UNREACHABLE);
  assert.equal(whyFailed(new Error("too long")), "too long");
});
