// What a recorded run shows at a moment. `ops` are [start, rank, group, words] by start, in nanoseconds.

// The operation that began last up to `time`, or null before the first.
export function newestAt(ops, time) {
  let low = 0;
  let high = ops.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ops[middle][0] <= time) low = middle + 1;
    else high = middle;
  }
  return low ? ops[low - 1] : null;
}

const UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

// Nanoseconds in words of three digits.
export function timeWords(ns) {
  const [size, unit] = UNITS.find(([each]) => ns >= each) ?? UNITS[3];
  return Number((ns / size).toPrecision(3)) + " " + unit;
}
