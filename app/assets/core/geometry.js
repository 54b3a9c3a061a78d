// Places on the map, in the pixels of its picture. A box is { x, y, width, height }.

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ASIDE_COST = 8;
const SHEET_HEIGHT = 640;
const SHEET_EDGE = 2;
const CHIP = { letter: 7.2, padding: 16, height: 20, gap: 12, above: 34, below: 14 };

// The GPU next to another in the direction of an arrow key; null past the edge.
export function neighbour(boxes, rank, key) {
  const [right, down] = STEPS[key];
  const from = boxes.get(rank);
  let best = null;
  let least = Infinity;
  for (const [other, box] of boxes) {
    const along = (box.x - from.x) * right + (box.y - from.y) * down;
    const aside = Math.abs((box.x - from.x) * down) + Math.abs((box.y - from.y) * right);
    // A GPU that lies ahead but off the line is only taken when none is nearer to it.
    const cost = along + ASIDE_COST * aside;
    if (along > 0 && cost < least) [best, least] = [other, cost];
  }
  return best;
}

// A tall map cut into sheets: which ranks each holds, and its top and height. A low map needs none.
export function sheetsOf(boxes, mapHeight) {
  if (mapHeight < 2 * SHEET_HEIGHT) return [];
  const groups = new Map();
  for (const [rank, box] of boxes) {
    const place = Math.floor(box.y / SHEET_HEIGHT);
    if (!groups.has(place)) groups.set(place, []);
    groups.get(place).push([rank, box]);
  }
  return [...groups.values()].map((group) => {
    const top = Math.min(...group.map(([, box]) => box.y)) - SHEET_EDGE;
    const bottom = Math.max(...group.map(([, box]) => box.y + box.height)) + SHEET_EDGE;
    return { ranks: group.map(([rank]) => rank), top, height: bottom - top };
  });
}

// Where the bytes of a crossing stand: beside the middle of the far box, on the side that has room.
export function chipBox(near, far, text, mapWidth) {
  const width = CHIP.letter * text.length + CHIP.padding;
  const middle = far.x + far.width / 2;
  const fits = mapWidth - (middle + CHIP.gap) > width;
  const x = fits ? middle + CHIP.gap : middle - CHIP.gap - width;
  const y = near.y > far.y ? far.y + far.height + CHIP.below : far.y - CHIP.above;
  return { x, y, width, height: CHIP.height };
}

// The smallest box around others, with a margin.
export function around(boxes, margin) {
  const x = Math.min(...boxes.map((box) => box.x)) - margin;
  const y = Math.min(...boxes.map((box) => box.y)) - margin;
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + margin;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + margin;
  return { x, y, width: right - x, height: bottom - y };
}
