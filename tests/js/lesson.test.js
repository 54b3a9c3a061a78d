import assert from "node:assert/strict";
import test from "node:test";
import { asSeen, NO_PROGRESS, progressAfter, progressText } from "../../app/assets/core/lesson.js";

const DATA = {
  slug: "relay",
  trip: { hops: [] },
  chapters: [],
  exports: [".svg"],
  question: { ask: "Which?", options: ["1", "2"], answer: "2", explain: "Because." },
  after: "Then",
  reveal: 5,
  open: "scenario=six-cuts",
};

test("the answer is in a file only once an option was chosen", () => {
  assert.deepEqual(asSeen(DATA, null), { slug: "relay", question: { ask: "Which?", options: ["1", "2"] } });
  const seen = asSeen(DATA, "1");
  assert.equal(seen.question.answer, "2");
  assert.deepEqual([seen.chosen, seen.after, seen.reveal, seen.trip], ["1", "Then", 5, undefined]);
});

test("a chapter is done after any answer, a quiz counts the right ones", () => {
  const read = progressAfter(NO_PROGRESS, { quiz: false, slug: "relay", right: false });
  assert.deepEqual(read, { done: { relay: true }, right: 0, asked: 0 });
  const first = progressAfter(read, { quiz: true, right: true });
  const second = progressAfter(first, { quiz: true, right: false });
  assert.deepEqual([second.right, second.asked], [1, 2]);
  assert.deepEqual(NO_PROGRESS, { done: {}, right: 0, asked: 0 });
});

test("progress is told by chapters, and by the quiz once it was asked", () => {
  const chapters = [{ slug: "relay" }, { slug: "dedup" }];
  const read = { done: { relay: true }, right: 0, asked: 0 };
  assert.equal(progressText(read, chapters), "1 of 2 chapters done");
  assert.equal(
    progressText({ ...read, right: 1, asked: 3 }, chapters),
    "1 of 2 chapters done · quiz: 1 of 3 right",
  );
});
