// Places on the map, in the pixels of its picture. A box is { x, y, width, height }.

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ASIDE_COST = 8;

// What stands next to another in the direction of an arrow key; null past the edge.
export function neighbour(boxes, from, key) {
  const [right, down] = STEPS[key];
  const start = boxes.get(from);
  let best = null;
  let least = Infinity;
  for (const [other, box] of boxes) {
    const along = (box.x - start.x) * right + (box.y - start.y) * down;
    const aside = Math.abs((box.x - start.x) * down) + Math.abs((box.y - start.y) * right);
    // What lies ahead but off the line is only taken when nothing is nearer to it.
    const cost = along + ASIDE_COST * aside;
    if (along > 0 && cost < least) [best, least] = [other, cost];
  }
  return best;
}

// The smallest box around others, with a margin.
export function around(boxes, margin) {
  const x = Math.min(...boxes.map((box) => box.x)) - margin;
  const y = Math.min(...boxes.map((box) => box.y)) - margin;
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + margin;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + margin;
  return { x, y, width: right - x, height: bottom - y };
}
