// What part of the map a window shows: all of it, or less of it larger. A view is { x, y, width, height }.

const MOST_ZOOM = 8;

// The whole map in a window, with the window's shape; what does not fit in height makes all smaller.
export function wholeView(map, frame) {
  const scale = Math.max(1, map.height / frame.height, map.width / frame.width);
  const [width, height] = [frame.width * scale, frame.height * scale];
  return { x: (map.width - width) / 2, y: 0, width, height };
}

export function zoomOf(view, whole) {
  return whole.width / view.width;
}

// A view `factor` times closer, with the point that was at (x, y) of the map still there.
export function zoomAt(view, whole, factor, { x, y }) {
  const zoom = Math.min(MOST_ZOOM, Math.max(1, zoomOf(view, whole) * factor));
  const width = whole.width / zoom;
  const height = whole.height / zoom;
  const share = { x: (x - view.x) / view.width, y: (y - view.y) / view.height };
  return held({ x: x - share.x * width, y: y - share.y * height, width, height }, whole);
}

export function panBy(view, whole, dx, dy) {
  return held({ ...view, x: view.x + dx, y: view.y + dy }, whole);
}

// A view that stays on the map.
export function held(view, whole) {
  const x = Math.min(Math.max(view.x, whole.x), whole.x + whole.width - view.width);
  const y = Math.min(Math.max(view.y, whole.y), whole.y + whole.height - view.height);
  return { ...view, x, y };
}

// A view moved so that a box lies inside it; one that shows the box stays.
export function bring(view, whole, box, margin = 8) {
  const shift = (start, size, from, length) => {
    if (from - margin < start) return from - margin;
    return from + length + margin > start + size ? from + length + margin - size : start;
  };
  const x = shift(view.x, view.width, box.x, box.width);
  const y = shift(view.y, view.height, box.y, box.height);
  return held({ ...view, x, y }, whole);
}
