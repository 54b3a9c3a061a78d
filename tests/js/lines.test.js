import assert from "node:assert/strict";
import test from "node:test";
import {
  columnsFor,
  copiesIn,
  hubsOf,
  joinedNeeds,
  lineOfRank,
  linesOf,
  needsOf,
} from "../../app/assets/core/lines.js";
import { hop } from "./hop.js";
import { meshRows } from "./mesh.js";

test("a node is one line where it fits, a wide domain wraps at a divisor", () => {
  assert.equal(columnsFor(8, 780), 8);
  assert.equal(columnsFor(8, 338), 8);
  assert.equal(columnsFor(72, 780), 18);
  assert.equal(columnsFor(72, 338), 9);
  assert.equal(columnsFor(8, 100), 2);
});

test("lines have names, columns and runs of stages; untouched domains are one line", () => {
  const lines = linesOf(meshRows({ domains: 2, size: 8, stage: (rank) => (rank < 12 ? 0 : 1) }), 8, "node");
  assert.deepEqual(
    lines.map((line) => [line.label, line.segments]),
    [
      ["node 0", [{ stage: 0, first: 0, last: 7 }]],
      [
        "node 1",
        [
          { stage: 0, first: 0, last: 3 },
          { stage: 1, first: 4, last: 7 },
        ],
      ],
    ],
  );
  const wrapped = linesOf(meshRows({ domains: 1, size: 8 }), 4, "island");
  assert.deepEqual(
    wrapped.map((line) => [line.label, line.seats.map((seat) => seat.column)]),
    [
      ["island 0", [0, 1, 2, 3]],
      ["", [0, 1, 2, 3]],
    ],
  );
  const [gap] = linesOf([{ first: 3, count: 60, experts: "", seats: [] }], 8, "node");
  assert.deepEqual([gap.count, gap.seats, gap.domain], [60, [], 3]);
});

const LINES = linesOf(meshRows({ domains: 4, size: 8 }), 8, "node");
const LINE_OF = lineOfRank(LINES);
const MARKS = { newly_touched: [], kv_owners: [], kv_copies: [], dots: [{ rank: 11, state: "home" }] };

test("links come together at the end that more of them share", () => {
  assert.deepEqual(
    hubsOf([
      { src: 11, dst: 13 },
      { src: 11, dst: 3 },
      { src: 3, dst: 2 },
    ]),
    [11, 11, 3],
  );
  assert.deepEqual(
    hubsOf([
      { src: 13, dst: 11 },
      { src: 3, dst: 11 },
    ]),
    [11, 11],
  );
});

test("a hop needs the rows of its ends and of the token, and the gutters beside its hubs", () => {
  const sent = hop(1, "dispatch", {
    marks: MARKS,
    moves: [
      { src: 11, dst: 3 },
      { src: 11, dst: 27 },
    ],
  });
  const needs = needsOf(sent, LINE_OF);
  assert.deepEqual([...needs.open].sort(), [0, 1, 3]);
  assert.deepEqual([...needs.busy].sort(), [0, 1]);
  const rest = needsOf(hop(0, "land", { marks: MARKS }), LINE_OF);
  assert.deepEqual([[...rest.open], [...rest.busy]], [[1], []]);
  const both = joinedNeeds([needs, rest]);
  assert.deepEqual([...both.open].sort(), [0, 1, 3]);
});

test("copies into a line are counted over the whole trip", () => {
  const hops = [
    hop(1, "dispatch", {
      moves: [
        { src: 11, dst: 3 },
        { src: 3, dst: 2 },
      ],
    }),
    hop(2, "combine", { moves: [{ src: 3, dst: 11 }] }),
  ];
  assert.deepEqual(
    [...copiesIn(hops, LINE_OF)],
    [
      [0, 2],
      [1, 1],
    ],
  );
});
