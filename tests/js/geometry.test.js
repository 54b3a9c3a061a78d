import assert from "node:assert/strict";
import test from "node:test";
import { around, chipBox, neighbour, sheetsOf } from "../../app/assets/core/geometry.js";

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

test("a low map stays whole, a tall one is cut into sheets that hold each GPU once", () => {
  assert.deepEqual(sheetsOf(BOXES, 1279), []);
  const tall = new Map(Array.from({ length: 20 }, (_, rank) => [rank, box(0, rank * 100)]));
  const sheets = sheetsOf(tall, 2000);
  assert.deepEqual(
    sheets.flatMap((sheet) => sheet.ranks),
    [...tall.keys()],
  );
  assert.deepEqual(
    sheets.map((sheet) => sheet.ranks.length),
    [7, 6, 7],
  );
  assert.deepEqual([sheets[1].top, sheets[1].height], [698, 564]);
});

test("a chip stands right of the far box, or left of it at the edge of the map", () => {
  const far = box(300, 200);
  assert.deepEqual(chipBox(box(300, 0), far, "IB · 1 MB", 800), { x: 347, y: 166, width: 80.8, height: 20 });
  const tight = chipBox(box(300, 400), far, "IB · 1 MB", 400);
  assert.equal(tight.x + tight.width, 335 - 12);
  assert.equal(tight.y, 274);
});

test("a box around others has its margin on every side", () => {
  assert.deepEqual(around([box(10, 20), box(200, 0)], 16), { x: -6, y: -16, width: 292, height: 112 });
});
