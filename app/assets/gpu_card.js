"use strict";
// One GPU: hover or focus shows a tip beside it; a click keeps its card open. Its groups light up on the map.
(function () {
  const LOOK_MS = 120;

  function createGpuCard(page) {
    const { dom } = window.tokentrip;
    const card = {
      page, kept: null, looked: null, timer: 0, cache: new Map(),
      element: dom.make("section", { class: "gpu-card", "aria-label": "GPU", hidden: true }),
      tip: dom.make("div", { class: "gpu-tip", role: "status", hidden: true }),
    };
    card.handlers = {
      look: (rank) => later(card, () => look(card, rank)),
      leave: () => later(card, () => { card.looked = null; card.tip.hidden = true; }),
      choose: (rank) => keep(card, card.kept === rank ? null : rank),
    };
    return { element: card.element, tip: card.tip, handlers: card.handlers, restore: () => restore(card) };
  }

  function restore(card) {
    card.cache.clear();
    card.tip.hidden = true;
    card.kept = null;
    card.element.hidden = true;
    if (card.page.query.rank) keep(card, Number(card.page.query.rank));
  }

  function later(card, act) {
    clearTimeout(card.timer);
    card.timer = setTimeout(act, LOOK_MS);
  }

  async function cardOf(card, rank) {
    const { core, fetchJson } = window.tokentrip;
    if (!card.cache.has(rank)) {
      const { hop, speed, ...asked } = card.page.query;
      card.cache.set(rank, await fetchJson("/api/gpu" + core.formatQuery({ ...asked, rank })).catch(() => ({ error: true })));
    }
    return card.cache.get(rank);
  }

  async function look(card, rank) {
    card.looked = rank;
    const data = await cardOf(card, rank);
    if (card.looked !== rank || data.error) return;
    const { dom } = window.tokentrip;
    card.tip.replaceChildren(dom.make("b", { text: "GPU " + rank.toLocaleString("en") }),
      dom.make("p", { text: data.place }), dom.make("p", { text: coordinates(data) }), dom.make("p", { text: data.holds.join(", ") }));
    card.tip.hidden = false;
    put(card, rank);
  }

  // Beside the GPU, inside the map's frame.
  function put(card, rank) {
    const host = card.tip.parentElement.getBoundingClientRect();
    const box = document.querySelector(`.gpu[data-rank="${rank}"] rect`).getBoundingClientRect();
    const left = Math.min(Math.max(box.left - host.left, 0), host.width - card.tip.offsetWidth);
    card.tip.style.left = left + "px";
    card.tip.style.top = box.bottom - host.top + 6 + "px";
  }

  async function keep(card, rank) {
    card.kept = rank;
    if (rank === null) delete card.page.query.rank;
    else card.page.query.rank = rank;
    card.page.save();
    if (rank === null) return close(card);
    const data = await cardOf(card, rank);
    if (card.kept === rank && !data.error) draw(card, data);
  }

  function close(card) {
    card.element.hidden = true;
    card.page.player?.light([], "");
  }

  function coordinates(data) {
    return Object.entries(data.coordinates).map(([axis, value]) => axis + " " + value).join(" · ");
  }

  function draw(card, data) {
    const { dom } = window.tokentrip;
    card.element.replaceChildren(...[
      dom.make("button", { type: "button", class: "plain close", "aria-label": "Close GPU card", text: "×", onclick: () => keep(card, null) }),
      dom.make("h2", { text: "GPU " + data.rank.toLocaleString("en") }),
      dom.make("p", { class: "place", text: data.place + " · " + coordinates(data) }),
      data.holds.length ? dom.make("p", { text: "Holds " + data.holds.join(", ") + "." }) : null,
      dom.make("div", { class: "group-buttons", role: "group", "aria-label": "Light a group on the map" },
        data.groups.map((group) => groupButton(card, group))),
      dom.make("p", { class: "group-note", role: "status" }),
      routeButton(card, data),
    ].filter(Boolean));
    card.element.hidden = false;
    card.page.player?.light([data.rank], "");
  }

  function groupButton(card, group) {
    const { dom } = window.tokentrip;
    const press = () => {
      for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
      card.element.querySelector(".group-note").textContent = group.text;
      card.page.player?.light(group.members, group.name);
    };
    const button = dom.make("button", { type: "button", class: "group", "aria-pressed": "false",
      "aria-label": group.name + " group, " + group.size + " GPUs", onclick: press },
      [dom.make("b", { text: group.name }), document.createTextNode(" " + group.size)]);
    return button;
  }

  // The token's next pick: the first MoE layer at or after the current hop that lives in this GPU's stage.
  function routeButton(card, data) {
    const { dom } = window.tokentrip;
    const page = card.page;
    if (page.data.tokens) return null;
    const here = page.data.hops[page.player.state().hop];
    const open = (layer) => layer > here.layer || (layer === here.layer && !["dispatch", "combine"].includes(here.kind));
    const layer = Object.keys(data.experts).map(Number).find(open);
    const picks = layer === undefined ? [] : page.data.token.picks[layer];
    const expert = layer === undefined ? undefined : data.experts[layer].find((each) => !picks.includes(each));
    if (expert === undefined) return null;
    return dom.make("button", { type: "button", class: "plain", text: "Route layer " + layer + "'s first pick here (expert " + expert + ")",
      onclick: () => page.change({ ["picks." + layer]: [expert, ...picks.slice(1)].join(",") }, true) });
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createGpuCard });
})();
