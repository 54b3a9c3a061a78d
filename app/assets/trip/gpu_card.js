// One GPU: hover or focus shows a tip beside it; a click keeps its card open. Its groups light up on the map.

import { formatQuery, omit } from "../core/address.js";
import { routedPicks } from "../core/picks.js";
import { make } from "../shell/dom.js";
import { fetchJson } from "../shell/fetch.js";
import { insideGpu } from "./gpu_inside.js";
import { hopNumbers } from "./hop_numbers.js";

const LOOK_MS = 120;
const TIP_GAP = 6;

export function createGpuCard(page) {
  const card = {
    page,
    kept: null,
    looked: null,
    timer: 0,
    cache: new Map(),
    element: make("section", { class: "gpu-card", "aria-label": "GPU", hidden: true }),
    tip: make("div", { class: "gpu-tip", role: "status", hidden: true }),
  };
  const leave = () => {
    card.looked = null;
    card.tip.hidden = true;
  };
  const handlers = {
    look: (rank) => later(card, () => look(card, rank)),
    leave: () => later(card, leave),
    choose: (rank) => keep(card, card.kept === rank ? null : rank),
  };
  return {
    element: card.element,
    tip: card.tip,
    handlers,
    restore: () => restore(card),
    open: (rank) => keep(card, rank),
    close: () => keep(card, null),
    set onOpen(hear) {
      card.onOpen = hear;
    },
  };
}

// For another trip: nothing is known of its GPUs yet; the card of the address opens again.
function restore(card) {
  card.cache.clear();
  card.tip.hidden = true;
  card.kept = null;
  card.element.hidden = true;
  card.onOpen?.(null);
  if (card.page.query.rank) keep(card, Number(card.page.query.rank));
}

function later(card, act) {
  clearTimeout(card.timer);
  card.timer = setTimeout(act, LOOK_MS);
}

async function fetchGpu(card, rank) {
  if (!card.cache.has(rank)) {
    const query = formatQuery({ ...omit(card.page.query, "hop", "speed"), rank });
    card.cache.set(rank, await fetchJson("/api/gpu" + query).catch(() => ({ error: true })));
  }
  return card.cache.get(rank);
}

async function look(card, rank) {
  card.looked = rank;
  const gpu = await fetchGpu(card, rank);
  if (card.looked !== rank || gpu.error) return;
  card.tip.replaceChildren(
    make("b", { text: "GPU " + rank.toLocaleString("en") }),
    make("p", { text: gpu.place }),
    make("p", { text: coordinates(gpu) }),
    make("p", { text: gpu.holds.join(", ") }),
  );
  card.tip.hidden = false;
  put(card.tip, rank);
}

// Beside the GPU, inside the map's frame.
function put(tip, rank) {
  const host = tip.parentElement.getBoundingClientRect();
  const box = document.querySelector(`.gpu[data-rank="${rank}"] rect`)?.getBoundingClientRect();
  if (!box) return;
  const left = Math.min(Math.max(box.left - host.left, 0), host.width - tip.offsetWidth);
  tip.style.left = left + "px";
  tip.style.top = box.bottom - host.top + TIP_GAP + "px";
}

async function keep(card, rank) {
  card.kept = rank;
  if (rank === null) delete card.page.query.rank;
  else card.page.query.rank = rank;
  card.page.save();
  card.onOpen?.(rank);
  if (rank === null) {
    close(card);
    return;
  }
  const gpu = await fetchGpu(card, rank);
  if (card.kept === rank && !gpu.error) draw(card, gpu);
}

function close(card) {
  card.element.hidden = true;
  card.page.player?.light([]);
}

function coordinates(gpu) {
  return Object.entries(gpu.coordinates)
    .map(([axis, value]) => axis + " " + value)
    .join(" · ");
}

function draw(card, gpu) {
  const { page } = card;
  const parts = [
    closeButton(card),
    make("p", { class: "eyebrow", text: gpu.place + " · " + coordinates(gpu) }),
    make("h2", { text: "GPU " + gpu.rank.toLocaleString("en") }),
    ...insideGpu(page, gpu),
    gpu.holds.length ? make("p", { class: "holds", text: "Holds " + gpu.holds.join(", ") + "." }) : null,
    groupButtons(card, gpu.groups),
    make("p", { class: "group-note", role: "status" }),
    routeButton(page, gpu),
    hopNumbers(page, page.data.hops[page.player.state().hop], gpu.rank),
  ];
  card.element.replaceChildren(...parts.filter(Boolean));
  card.element.hidden = false;
  card.page.player?.light([gpu.rank]);
}

function closeButton(card) {
  return make("button", {
    type: "button",
    class: "plain close",
    "aria-label": "Close GPU card",
    text: "×",
    onclick: () => keep(card, null),
  });
}

function groupButtons(card, groups) {
  const label = "Light a group on the map";
  const buttons = groups.map((group) => groupButton(card, group));
  return make("div", { class: "group-buttons", role: "group", "aria-label": label }, buttons);
}

function groupButton(card, group) {
  const press = () => {
    for (const other of button.parentElement.children) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    card.element.querySelector(".group-note").textContent = group.text;
    card.page.player?.light(group.members);
  };
  const attributes = { type: "button", class: "group", "aria-pressed": "false" };
  const words = [make("b", { text: group.name + " group" }), " " + group.size.toLocaleString("en")];
  const button = make("button", { ...attributes, onclick: press }, words);
  return button;
}

// Sends the token's next pick to this GPU, where that is possible.
function routeButton(page, gpu) {
  if (page.data.tokens) return null;
  const hop = page.data.hops[page.player.state().hop];
  const routed = routedPicks(hop, gpu.experts, page.data.token.picks);
  if (routed === null) return null;
  const { layer, expert, picks } = routed;
  const text = `Route layer ${layer}'s first pick here (expert ${expert})`;
  const route = () => page.reroute(layer, { ["picks." + layer]: picks.join(",") });
  return make("button", { type: "button", class: "plain", text, onclick: route });
}
