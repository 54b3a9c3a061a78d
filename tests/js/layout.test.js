import assert from "node:assert/strict";
import test from "node:test";
import { boxOf, labelsOf, runText } from "../../app/assets/core/labels.js";
import { gutter, layOut } from "../../app/assets/core/layout.js";
import { linesOf } from "../../app/assets/core/lines.js";
import { overlaps } from "../../app/assets/core/captions.js";
import { meshRows } from "./mesh.js";

const DESKTOP = { width: 856, height: 560 };
const PHONE = { width: 358, height: 415 };

function laid(domains, open, { frame = DESKTOP, level = "nodes", opened = [], stage, size = 8 } = {}) {
  const lines = linesOf(meshRows({ domains, size, stage }), size, "node");
  const needs = { open: new Set(open), busy: new Set(open.slice(0, 1)) };
  return {
    lines,
    layout: layOut(lines, size, { hop: needs, layer: needs, opened: new Set(opened) }, frame, level),
  };
}

const kinds = ({ layout }) => layout.rows.map((row) => row.kind);

test("all rows are open where there is room", () => {
  const found = laid(4, [1]);
  assert.deepEqual(kinds(found), ["open", "open", "open", "open"]);
  assert.ok(found.layout.rows.every((row) => row.height >= 44 && row.height <= 76));
  assert.ok(found.layout.total <= DESKTOP.height + 1e-6);
});

test("rows without traffic close, then fold to one line", () => {
  assert.deepEqual(new Set(kinds(laid(18, [1, 2, 8]))), new Set(["open", "closed"]));
  const folded = laid(40, [1, 20, 39], { frame: PHONE });
  assert.equal(kinds(folded).filter((kind) => kind === "open").length, 3);
  assert.ok(kinds(folded).includes("run"));
  assert.ok(folded.layout.total <= PHONE.height + 1e-6);
});

test("what a hop needs is inside the window, for any number of rows and any window", () => {
  for (const frame of [DESKTOP, PHONE]) {
    for (const domains of [1, 4, 18, 40, 120]) {
      for (const count of [1, 2, 7, 16]) {
        const open = Array.from({ length: Math.min(count, domains) }, (_, i) =>
          Math.floor((i * domains) / count),
        );
        const { lines, layout } = laid(domains, open, { frame });
        for (const at of open) {
          for (const { rank } of lines[at].seats) {
            const box = layout.boxes.get(rank);
            assert.ok(box.open);
            assert.ok(box.x >= 0 && box.x + box.width <= frame.width);
            assert.ok(box.y >= 0 && box.y + box.height <= Math.max(layout.height, frame.height));
          }
        }
        // For so few hardly anything has to be scaled.
        if (frame === DESKTOP || count <= 7) assert.ok(layout.total <= frame.height * 1.05);
      }
    }
  }
});

test("rows do not lie on each other, and gutters are what is between them", () => {
  const { layout } = laid(18, [1, 2, 8, 9, 14], { stage: (rank) => (rank < 64 ? 0 : 1) });
  layout.rows.slice(1).forEach((row, i) => {
    const before = layout.rows[i];
    assert.ok(row.y >= before.y + before.height);
    assert.deepEqual(gutter(layout, i, true), { top: before.y + before.height, bottom: row.y });
    assert.equal(gutter(layout, i + 1, false).bottom, row.y);
  });
});

test("stages are bands around their rows, or beside each other in a row", () => {
  const { layout } = laid(4, [1], { stage: (rank) => Math.floor(rank / 16) });
  assert.deepEqual(
    layout.bands.map((band) => [band.stage, band.whole]),
    [
      [0, true],
      [1, true],
    ],
  );
  assert.ok(layout.bands[0].bottom <= layout.bands[1].top);
  const beside = laid(4, [1], { stage: (rank) => (rank % 8 < 4 ? 0 : 1) }).layout.bands;
  assert.deepEqual(
    beside.map((band) => [band.first, band.last]),
    [
      [0, 3],
      [4, 7],
    ],
  );
  assert.deepEqual(laid(4, [1]).layout.bands, []);
});

test("at the level of the cluster rows are closed, but for those opened by hand", () => {
  assert.deepEqual(kinds(laid(4, [1], { level: "cluster" })), ["closed", "closed", "closed", "closed"]);
  assert.deepEqual(kinds(laid(4, [1], { level: "cluster", opened: [2] })), [
    "closed",
    "closed",
    "open",
    "closed",
  ]);
});

test("labels do not lie on each other", () => {
  const words = { domain: "node", stages: ["layers 1–4", "layers 5–8"], copies: new Map([[1, 3]]) };
  for (const [domains, frame] of [
    [4, DESKTOP],
    [18, DESKTOP],
    [4, PHONE],
    [40, PHONE],
  ]) {
    const { lines, layout } = laid(domains, [1, 2], { frame, stage: (rank) => (rank < domains * 4 ? 0 : 1) });
    const boxes = labelsOf(layout, lines, words).map(boxOf);
    boxes.forEach((box, i) => boxes.slice(i + 1).forEach((other) => assert.ok(!overlaps(box, other, 0))));
  }
});

test("a fold says how many nodes it stands for, and what the trip brings them", () => {
  const lines = linesOf(
    [...meshRows({ domains: 2, size: 8 }), { first: 2, count: 60, experts: "", seats: [] }],
    8,
    "node",
  );
  const words = { domain: "node", stages: [], copies: new Map([[0, 5]]) };
  assert.equal(runText([2], lines, words), "60 nodes not touched");
  assert.equal(runText([0, 1], lines, words), "2 nodes, not in this hop: 5 copies in the trip");
  assert.equal(runText([1, 2], lines, words), "61 nodes, not in this hop: no copy in the trip");
});
