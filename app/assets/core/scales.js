// What the map's sizes say: width and area are bytes, time on screen is the log of a link's time.

const ROW_WIDTH = 4;
const LEAST_WIDTH = 1.5;
const MOST_WIDTH = 11;
const ROW_RADIUS = 7;
const LEAST_RADIUS = 3;

const FASTEST_S = 18e-9;
const FIRST_MS = 240;
const MS_PER_DECADE = 120;
const LEAST_MS = 120;
const MOST_MS = 600;

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
export const WIDTH_SCALE = ", a row " + ROW_WIDTH + " px";
export const TIME_SCALE =
  "Time on screen is the log of link time: 18 ns → 0.24 s, ten times as long → +0.12 s";

function clamp(value, least, most) {
  return Math.min(most, Math.max(least, value));
}

// Pixels of a link that carries so many bytes; a token's row is `rowBytes`.
export function linkWidth(bytes, rowBytes) {
  return clamp((ROW_WIDTH * bytes) / rowBytes, LEAST_WIDTH, MOST_WIDTH);
}

// Radius of a mark whose area is its bytes; never more than a whole row's.
export function dotRadius(bytes, rowBytes) {
  return clamp(ROW_RADIUS * Math.sqrt(bytes / rowBytes), LEAST_RADIUS, ROW_RADIUS);
}

// Milliseconds that a transfer takes on screen at speed 1.
export function screenMs(seconds) {
  if (!(seconds > 0)) return LEAST_MS;
  return clamp(FIRST_MS + MS_PER_DECADE * Math.log10(seconds / FASTEST_S), LEAST_MS, MOST_MS);
}
