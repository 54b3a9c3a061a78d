import assert from "node:assert/strict";
import test from "node:test";
import { bytesText, captionsOf, overlaps } from "../../app/assets/core/captions.js";
import { layOut } from "../../app/assets/core/layout.js";
import { linesOf } from "../../app/assets/core/lines.js";
import { routesOf } from "../../app/assets/core/routes.js";
import { meshRows } from "./mesh.js";

const FRAME = { width: 856, height: 560 };

function mapOf(domains, open) {
  const lines = linesOf(meshRows({ domains, size: 8 }), 8, "node");
  const needs = { open: new Set(open), busy: new Set([-1, ...open]) };
  return layOut(lines, 8, { hop: needs, layer: needs, opened: new Set() }, FRAME, "nodes");
}

const move = (src, dst, more) => ({
  src,
  dst,
  bytes: 8192,
  bytes_text: "8,192 B",
  time: "0.16 µs",
  tier: Math.floor(src / 8) === Math.floor(dst / 8) ? "nvlink" : "ib",
  phase: 0,
  ...more,
});

// Whether a straight piece of a route lies inside a box.
function enters(route, { x, y, width, height }) {
  return route.points.slice(1).some((b, i) => {
    const a = route.points[i];
    const across = Math.max(a.x, b.x) > x + 1 && Math.min(a.x, b.x) < x + width - 1;
    return across && Math.max(a.y, b.y) > y + 1 && Math.min(a.y, b.y) < y + height - 1;
  });
}

test("between neighbouring rows a rail is straight down, and its head points along it", () => {
  const layout = mapOf(4, [0, 1]);
  const [down] = routesOf([move(3, 11)], layout, 3);
  assert.equal(down.points.length, 2);
  assert.equal(down.points[0].x, down.points[1].x);
  assert.equal(Math.round(down.end.angle), 90);
  const [up] = routesOf([move(11, 3)], layout, 11);
  assert.equal(Math.round(up.end.angle), -90);
  assert.equal(up.end.y, layout.boxes.get(3).y + layout.boxes.get(3).height);
});

test("no link crosses a box, wherever it goes", () => {
  const layout = mapOf(7, [0, 1, 2, 3, 4, 5, 6]);
  const leaves = [0, 7, 3, 16, 19, 23, 24, 31, 32, 35, 40, 47, 51, 55];
  for (const moves of [leaves.map((dst) => move(11, dst)), leaves.map((src) => move(src, 11))]) {
    for (const route of routesOf(moves, layout, 11)) {
      for (const [rank, box] of layout.boxes) {
        if (rank !== 11) assert.ok(!enters(route, box), `${rank} ${route.d}`);
      }
    }
  }
});

test("copies on one link lie side by side", () => {
  const routes = routesOf([move(11, 19), move(11, 19), move(11, 19)], mapOf(4, [1, 2]), 11);
  assert.equal(new Set(routes.map((route) => route.points[0].x)).size, 3);
});

test("arcs of one GPU are deeper the further they go, and stay in their gutter", () => {
  const layout = mapOf(4, [1]);
  const routes = routesOf([move(8, 9), move(8, 11), move(8, 15)], layout, 8);
  const depths = routes.map((route) => route.y);
  assert.ok(depths[0] < depths[1] && depths[1] < depths[2]);
  assert.ok(depths[2] < routes[0].gutter.bottom);
  const [above] = routesOf([move(3, 2)], layout, 11);
  assert.equal(above.end.angle, 90);
});

test("a move whose end is not on the map has no route", () => {
  assert.deepEqual(routesOf([move(11, 99)], mapOf(4, [1]), 11), [null]);
});

test("captions stand in gutters, over no box, no other caption and no word of the map", () => {
  const layout = mapOf(4, [0, 1]);
  const moves = [move(11, 13), move(11, 3), move(3, 2, { phase: 1, role: "forward" })];
  const taken = [{ x: 12, y: 20, width: 120, height: 14 }];
  const found = captionsOf(moves, routesOf(moves, layout, 11), taken, { left: 2, right: 854 });
  assert.deepEqual(found.map((each) => each.text).sort(), [
    "InfiniBand · 8,192 B · 0.16 µs",
    "NVLink · 8,192 B · 0.16 µs",
    "relayed over NVLink · 8,192 B · 0.16 µs",
  ]);
  found.forEach((caption, i) => {
    for (const box of [...layout.boxes.values(), ...taken, ...found.slice(i + 1)])
      assert.ok(!overlaps(caption, box, 0));
  });
});

test("many copies have one caption with their sum", () => {
  const layout = mapOf(7, [0, 1, 2, 3]);
  const moves = [0, 16, 19, 24, 31].map((dst) => move(11, dst, { bytes: 7408, bytes_text: "7,408 B" }));
  const [trunk] = captionsOf(moves, routesOf(moves, layout, 11), [], { left: 2, right: 854 });
  assert.equal(trunk.text, "5 × 7,408 B = 37 kB");
  assert.equal(trunk.move, null);
});

test("on a narrow map captions leave the link's name out", () => {
  const layout = mapOf(4, [1]);
  const moves = [move(11, 13)];
  const [caption] = captionsOf(moves, routesOf(moves, layout, 11), [], { left: 2, right: 356 });
  assert.equal(caption.text, "8,192 B · 0.16 µs");
});

test("bytes are written as the engine writes them", () => {
  assert.deepEqual([9999, 8192, 59264, 1245184, 2.5e9].map(bytesText), [
    "9,999 B",
    "8,192 B",
    "59.3 kB",
    "1.25 MB",
    "2.5 GB",
  ]);
});
