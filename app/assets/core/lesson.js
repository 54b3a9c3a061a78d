// A chapter or a quiz question as the reader has seen it so far, and how far the reader has come.

import { omit } from "./address.js";

export const NO_PROGRESS = { done: {}, right: 0, asked: 0 };

// Without the drawn trip, which words tell; the answer is in it once an option has been chosen.
export function asSeen(data, chosen) {
  const all = omit(data, "trip", "chapters", "exports");
  if (chosen !== null) return { ...all, chosen };
  const { ask, options } = data.question;
  return { ...omit(all, "after", "reveal", "open"), question: { ask, options } };
}

// Progress after an answer: a quiz counts right answers, a chapter is done either way.
export function progressAfter(progress, { quiz, slug, right }) {
  if (!quiz) return { ...progress, done: { ...progress.done, [slug]: true } };
  return { ...progress, asked: progress.asked + 1, right: progress.right + (right ? 1 : 0) };
}

export function progressText(progress, chapters) {
  const done = chapters.filter((each) => progress.done[each.slug]).length;
  const quiz = progress.asked ? " · quiz: " + progress.right + " of " + progress.asked + " right" : "";
  return done + " of " + chapters.length + " chapters done" + quiz;
}
