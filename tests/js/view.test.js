import assert from "node:assert/strict";
import test from "node:test";
import { bring, held, panBy, wholeView, zoomAt, zoomOf } from "../../app/assets/core/view.js";

const WHOLE = wholeView({ width: 800, height: 500 }, { width: 800, height: 500 });

test("the whole map has the window's shape, also when the map is taller", () => {
  assert.deepEqual(WHOLE, { x: 0, y: 0, width: 800, height: 500 });
  const tall = wholeView({ width: 800, height: 1000 }, { width: 800, height: 500 });
  assert.deepEqual(tall, { x: -400, y: 0, width: 1600, height: 1000 });
});

test("coming closer keeps the point under the pointer where it is", () => {
  const near = zoomAt(WHOLE, WHOLE, 2, { x: 600, y: 100 });
  assert.equal(zoomOf(near, WHOLE), 2);
  assert.deepEqual([(600 - near.x) / near.width, (100 - near.y) / near.height], [600 / 800, 100 / 500]);
});

test("nobody goes further away than the whole, or closer than eight times", () => {
  assert.equal(zoomOf(zoomAt(WHOLE, WHOLE, 0.1, { x: 1, y: 1 }), WHOLE), 1);
  assert.equal(zoomOf(zoomAt(WHOLE, WHOLE, 100, { x: 1, y: 1 }), WHOLE), 8);
});

test("a view stays on the map", () => {
  const near = zoomAt(WHOLE, WHOLE, 2, { x: 400, y: 250 });
  assert.deepEqual(panBy(near, WHOLE, 9999, -9999), { x: 400, y: 0, width: 400, height: 250 });
  assert.deepEqual(held({ ...near, x: -50 }, WHOLE).x, 0);
});

test("a box is brought into a view that does not show it, and moves none that does", () => {
  const near = { x: 0, y: 0, width: 400, height: 250 };
  const inside = { x: 100, y: 100, width: 80, height: 60 };
  assert.deepEqual(bring(near, WHOLE, inside), near);
  const moved = bring(near, WHOLE, { x: 700, y: 400, width: 80, height: 60 });
  assert.deepEqual([moved.x, moved.y], [388, 218]);
});
