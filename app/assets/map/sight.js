// What part of the map is seen: wheel and pinch come closer, a drag moves, a swipe on the whole map is the
// next hop. What the reader set stays from hop to hop.

import { bring, held, panBy, wholeView, zoomAt, zoomOf } from "../core/view.js";

const WHEEL = 0.0016;
const CLOSER = 1.4;
const DRAG_PX = 4;
const SWIPE_PX = 44;
const WHOLE = 1.001;

// `apply()` is told of each new view.
export function createSight(map, apply) {
  const sight = { map, apply, whole: wholeView({ width: 1, height: 1 }, { width: 1, height: 1 }), now: null };
  const { element } = map;
  element.addEventListener("wheel", (event) => onWheel(sight, event), { passive: false });
  listenToFingers(sight, element);
  return {
    view: () => sight.now ?? sight.whole,
    zoom: () => zoomOf(sight.now ?? sight.whole, sight.whole),
    whole: () => sight.whole,
    // The map has another size: a view set by hand stays as close and as near as it can.
    fitTo: (whole) => {
      if (sight.now) {
        const zoom = zoomOf(sight.now, sight.whole);
        const [width, height] = [whole.width / zoom, whole.height / zoom];
        sight.now = held({ ...sight.now, width, height }, whole);
      }
      sight.whole = whole;
    },
    fit: () => set(sight, null),
    closer: (factor) => {
      const { x, y, width, height } = sight.now ?? sight.whole;
      set(
        sight,
        zoomAt(sight.now ?? sight.whole, sight.whole, factor, { x: x + width / 2, y: y + height / 2 }),
      );
    },
    bring: (box) => {
      if (sight.now) set(sight, bring(sight.now, sight.whole, box));
    },
    // Around a point of the map, as close as now or a step closer.
    center: ({ x, y }, zoom) => {
      const [width, height] = [sight.whole.width / zoom, sight.whole.height / zoom];
      set(sight, held({ x: x - width / 2, y: y - height / 2, width, height }, sight.whole));
    },
  };
}

export const ZOOM_STEP = CLOSER;

function set(sight, view) {
  const close = view && zoomOf(view, sight.whole) > WHOLE;
  sight.now = close ? view : null;
  sight.map.element.classList.toggle("zoomed", Boolean(close));
  sight.apply();
}

// The point of the map under a pointer.
function pointAt(sight, { clientX, clientY }) {
  const frame = sight.map.element.getBoundingClientRect();
  const view = sight.now ?? sight.whole;
  return {
    x: view.x + ((clientX - frame.left) * view.width) / frame.width,
    y: view.y + ((clientY - frame.top) * view.height) / frame.height,
  };
}

// At the whole map, scrolling down scrolls the page.
function onWheel(sight, event) {
  if (!sight.map.fitted || (!sight.now && event.deltaY >= 0)) return;
  event.preventDefault();
  const factor = Math.exp(-event.deltaY * WHEEL);
  set(sight, zoomAt(sight.now ?? sight.whole, sight.whole, factor, pointAt(sight, event)));
}

function listenToFingers(sight, element) {
  const fingers = new Map();
  let start = null;
  let moved = false;
  element.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    fingers.set(event.pointerId, event);
    start = event;
    moved = false;
  });
  element.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const far = Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > DRAG_PX;
    moved ||= far;
    if (fingers.size === 2) pinch(sight, fingers, event);
    else if (moved && sight.now) drag(sight, before, event);
    fingers.set(event.pointerId, event);
  });
  const end = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    if (event.type === "pointerup" && event.pointerType === "touch" && !fingers.size && !sight.now) {
      swipe(sight, start, event);
    }
  };
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) element.addEventListener(name, end);
  // The click that ends a drag is none.
  element.addEventListener("click", (event) => moved && event.stopPropagation(), { capture: true });
}

function drag(sight, before, event) {
  const frame = sight.map.element.getBoundingClientRect();
  const scale = sight.now.width / frame.width;
  const [dx, dy] = [before.clientX - event.clientX, before.clientY - event.clientY];
  set(sight, panBy(sight.now, sight.whole, dx * scale, dy * scale));
}

function pinch(sight, fingers, event) {
  const others = [...fingers.values()].filter(({ pointerId }) => pointerId !== event.pointerId);
  const before = fingers.get(event.pointerId);
  const gap = (finger) => Math.hypot(finger.clientX - others[0].clientX, finger.clientY - others[0].clientY);
  const middle = {
    clientX: (event.clientX + others[0].clientX) / 2,
    clientY: (event.clientY + others[0].clientY) / 2,
  };
  const factor = gap(event) / Math.max(1, gap(before));
  set(sight, zoomAt(sight.now ?? sight.whole, sight.whole, factor, pointAt(sight, middle)));
}

function swipe(sight, start, event) {
  const [dx, dy] = [event.clientX - start.clientX, event.clientY - start.clientY];
  if (Math.abs(dx) > SWIPE_PX && Math.abs(dx) > 2 * Math.abs(dy)) sight.map.handlers.swipe?.(dx < 0 ? 1 : -1);
}
