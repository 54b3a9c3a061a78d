// How a hop's travel is timed: when each move starts and ends, and how far along its path it is.

import { screenMs } from "./scales.js";

const REST_MS = 520;

export function restMs(speed) {
  return REST_MS / speed;
}

// Start and end of each move in milliseconds. A phase starts when the one before it is over: a relay
// forwards what it has received. `total` is the whole travel.
export function schedule(moves, speed) {
  const lengths = [];
  const own = moves.map((move) => screenMs(move.seconds) / speed);
  moves.forEach((move, i) => {
    lengths[move.phase] = Math.max(lengths[move.phase] ?? 0, own[i]);
  });
  const starts = [];
  let total = 0;
  for (let phase = 0; phase < lengths.length; phase++) {
    starts.push(total);
    total += lengths[phase] ?? 0;
  }
  const times = moves.map((move, i) => ({ start: starts[move.phase], end: starts[move.phase] + own[i] }));
  return { times, total };
}

// From 0 to 1, slow at both ends.
export function ease(t) {
  return t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) * (1 - t);
}

// How far along its path a move is at a moment.
export function progress(now, { start, end }) {
  if (now <= start) return 0;
  return now >= end ? 1 : ease((now - start) / (end - start));
}
