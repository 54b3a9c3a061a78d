import assert from "node:assert/strict";
import test from "node:test";
import { readScene, rowsOf } from "../../app/assets/core/scene.js";
import { isOnLink, keptAt, standing } from "../../app/assets/core/tokens.js";
import { hop } from "./hop.js";

const NO_TAGS = { rank: [], text: [] };

function sentHop(marks, more) {
  return {
    moves: { src: [8, 8], dst: [9, 3], phase: [0, 1] },
    marks: { dots: { rank: [8], state: ["home"] }, newly_touched: [8, 9], ...marks },
    ...more,
  };
}

test("columns become rows, none when they are empty", () => {
  assert.deepEqual(rowsOf({ src: [1, 2], dst: [3, 4] }), [
    { src: 1, dst: 3 },
    { src: 2, dst: 4 },
  ]);
  assert.deepEqual(rowsOf({ src: [], dst: [] }), []);
});

test("a scene is read with the GPUs of each domain and moves as rows", () => {
  const seats = { rank: [8, 9], place: [0, 1], stage: [0, 0], tint: [2, 2], experts: ["E1", "E2"] };
  const rows = [
    { first: 0, count: 1, experts: "", seats: { rank: [] } },
    { first: 1, count: 1, experts: "1–2", seats },
  ];
  const scene = readScene({ name: "a", rows, hops: [sentHop()] });
  assert.equal(scene.name, "a");
  assert.deepEqual(scene.rows[0].seats, []);
  assert.deepEqual(scene.rows[1].seats[1], { rank: 9, place: 1, stage: 0, tint: 2, experts: "E2" });
  assert.deepEqual(scene.hops[0].marks, { dots: [{ rank: 8, state: "home" }], newly_touched: [8, 9] });
  assert.deepEqual(scene.hops[0].moves, [
    { src: 8, dst: 9, phase: 0, rider: null },
    { src: 8, dst: 3, phase: 1, rider: null },
  ]);
});

test("several tokens have riders and tags by GPU, also where nobody is left", () => {
  const marks = {
    tags_after: { rank: [9, 9, 3], text: ["0", "1", "2"] },
    tags_during: { rank: [9], text: ["1"] },
    emptied: [8],
    kv_tags: NO_TAGS,
  };
  const riders = { text: ["0", "×2"], token: [0, null] };
  const [read] = readScene({ rows: [], hops: [sentHop(marks, { riders })] }).hops;
  assert.deepEqual(
    read.moves.map((move) => move.rider),
    [
      { text: "0", token: 0 },
      { text: "×2", token: null },
    ],
  );
  assert.deepEqual(
    [...read.marks.tags_after],
    [
      [9, [{ text: "0" }, { text: "1" }]],
      [3, [{ text: "2" }]],
    ],
  );
  assert.deepEqual(
    [...read.marks.tags_during],
    [
      [8, []],
      [9, [{ text: "1" }]],
    ],
  );
  assert.equal(read.marks.kv_tags.size, 0);
});

test("K/V tags stand as the last hop that changed them left them", () => {
  const kept = [
    [[11, ["a"]]],
    [],
    [
      [11, ["b"]],
      [10, ["c"]],
    ],
  ];
  const hops = kept.map((each, i) => hop(i, "all_gather", { marks: { kv_tags: new Map(each) } }));
  assert.deepEqual([...keptAt(hops, 1)], [[11, ["a"]]]);
  assert.deepEqual(
    [...keptAt(hops, 2)],
    [
      [11, ["b"]],
      [10, ["c"]],
    ],
  );
  assert.deepEqual([...keptAt(hops, -1)], []);
});

test("while a hop travels, tokens stand as before it but for those that leave", () => {
  const landed = {
    tags_after: new Map([
      [8, ["0", "1"]],
      [11, ["2"]],
    ]),
    tags_during: new Map(),
  };
  const sent = {
    tags_after: new Map([[24, ["0"]]]),
    tags_during: new Map([
      [8, ["1"]],
      [11, []],
    ]),
  };
  const hops = [hop(0, "land", { marks: landed }), hop(1, "pp_send", { marks: sent })];
  assert.deepEqual(
    [...standing(hops, 1)],
    [
      [8, ["1"]],
      [11, []],
    ],
  );
  assert.deepEqual([...standing(hops, 0)], []);
});

test("a link is the same either way, and none is when nothing moves", () => {
  assert.equal(isOnLink({ src: 8, dst: 0 }, { src: 0, dst: 8 }), true);
  assert.equal(isOnLink({ src: 0, dst: 8 }, { src: 0, dst: 8 }), true);
  assert.equal(isOnLink({ src: 8, dst: 1 }, { src: 0, dst: 8 }), false);
  assert.equal(isOnLink({ src: 8, dst: 0 }, null), false);
});
