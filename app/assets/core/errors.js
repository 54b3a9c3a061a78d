// What a refusal offers, and why a question got no answer.

export const UNREACHABLE = "The explorer cannot be reached. Is it still running?";

// Values that the fix of an error names: "try 2, 4, 8 or 16" gives four, "try 0 to 3" the first.
export function fixValues(fix) {
  const named = /^try \w+ = (\d+)/.exec(fix);
  if (named) return [named[1]];
  const list = /^try ((?:[\w.-]+|'[^']*')(?:(?:, | or )(?:\d+|'[^']*'))*)/.exec(fix);
  if (!list) return [];
  const values = list[1].split(/, | or /).map((each) => each.replaceAll("'", ""));
  return values.filter((each) => /^[\w-]+$/.test(each));
}

// A fetch that gets no answer at all throws a TypeError.
export function whyFailed(error) {
  return error instanceof TypeError ? UNREACHABLE : error.message;
}
