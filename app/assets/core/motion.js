// How a hop's travel is timed: milliseconds, and how far along its path each move is.

const TRAVEL_MS = 560;
const REST_MS = 520;

export const SPEEDS = [0.5, 1, 2, 4, 8];

export function restMs(speed) {
  return REST_MS / speed;
}

// Slow speeds rest longer, but no motion takes longer than at speed 1.
export function travelMs(speed) {
  return Math.min(TRAVEL_MS, TRAVEL_MS / speed);
}

// From 0 to 1, slow at both ends.
export function ease(t) {
  return t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) * (1 - t);
}

export function phaseCount(hop) {
  return hop.moves.reduce((most, move) => Math.max(most, move.phase + 1), 0);
}

// How far along its path a move of a phase is, when `share` of the hop's travel is over.
export function progress(share, phase, phases) {
  const own = share * phases - phase;
  return own <= 0 ? 0 : own >= 1 ? 1 : ease(own);
}
