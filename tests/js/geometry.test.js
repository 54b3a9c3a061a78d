import assert from "node:assert/strict";
import test from "node:test";
import { around, neighbour } from "../../app/assets/core/geometry.js";

const box = (x, y) => ({ x, y, width: 70, height: 60 });
const BOXES = new Map([
  [0, box(0, 0)],
  [1, box(80, 0)],
  [2, box(160, 0)],
  [8, box(0, 100)],
  [9, box(80, 100)],
]);

test("arrow keys find the GPU next to one, and none past the edge", () => {
  assert.equal(neighbour(BOXES, 0, "ArrowRight"), 1);
  assert.equal(neighbour(BOXES, 1, "ArrowDown"), 9);
  assert.equal(neighbour(BOXES, 9, "ArrowLeft"), 8);
  assert.equal(neighbour(BOXES, 0, "ArrowUp"), null);
  assert.equal(neighbour(BOXES, 2, "ArrowDown"), 9);
});

test("a box around others has its margin on every side", () => {
  assert.deepEqual(around([box(10, 20), box(200, 0)], 16), { x: -6, y: -16, width: 292, height: 112 });
});
