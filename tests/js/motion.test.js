import assert from "node:assert/strict";
import test from "node:test";
import { ease, progress, restMs, schedule } from "../../app/assets/core/motion.js";
import { dotRadius, linkWidth, screenMs, SPEEDS } from "../../app/assets/core/scales.js";

const move = (phase, seconds) => ({ phase, seconds });

test("a link's time is on screen as its logarithm, so a slow link looks slow", () => {
  assert.equal(screenMs(18e-9), 240);
  assert.equal(Math.round(screenMs(180e-9)), 360);
  assert.equal(screenMs(1), 600);
  assert.equal(screenMs(1e-12), 120);
  assert.equal(screenMs(0), 120);
});

test("phases run one after the other, each as long as its slowest move", () => {
  const { times, total } = schedule([move(0, 18e-9), move(0, 180e-9), move(1, 18e-9)], 1);
  assert.deepEqual(
    times.map(({ start, end }) => [start, end].map(Math.round)),
    [
      [0, 240],
      [0, 360],
      [360, 600],
    ],
  );
  assert.equal(Math.round(total), 600);
  assert.deepEqual(schedule([], 1), { times: [], total: 0 });
});

test("a speed is a speed: travel and rest both take as much longer", () => {
  assert.deepEqual([SPEEDS[0], SPEEDS.at(-1)], [0.25, 8]);
  const once = schedule([move(0, 18e-9)], 1).total;
  for (const speed of SPEEDS) {
    assert.equal(schedule([move(0, 18e-9)], speed).total, once / speed);
    assert.equal(restMs(speed), restMs(1) / speed);
  }
});

test("a move waits, travels and stays", () => {
  const time = { start: 100, end: 300 };
  assert.deepEqual(
    [0, 100, 200, 300, 999].map((now) => progress(now, time)),
    [0, 0, 0.5, 1, 1],
  );
});

test("easing starts at 0, ends at 1 and never goes back", () => {
  const values = Array.from({ length: 101 }, (_, i) => ease(i / 100));
  assert.equal(values[0], 0);
  assert.equal(values[100], 1);
  values.slice(1).forEach((value, i) => assert.ok(value >= values[i]));
});

test("a link is as wide as its bytes and a dot's area is its bytes, within what can be seen", () => {
  assert.equal(linkWidth(8192, 8192), 4);
  assert.equal(linkWidth(16384, 8192), 8);
  assert.deepEqual([linkWidth(1, 8192), linkWidth(1e9, 8192)], [1.5, 11]);
  assert.equal(dotRadius(8192, 8192), 7);
  assert.equal(dotRadius(2048, 8192), 3.5);
  assert.deepEqual([dotRadius(1, 8192), dotRadius(1e9, 8192)], [3, 7]);
});
