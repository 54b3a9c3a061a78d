"use strict";
// The card of one GPU: hover or focus looks, a click keeps it open; its groups light up on the map.
(function () {
  const LOOK_MS = 120;

  function createGpuCard(page) {
    const { dom } = window.tokentrip;
    const card = { page, kept: null, shown: null, timer: 0, cache: new Map(), element: dom.make("section", { class: "gpu-card", "aria-label": "GPU", hidden: true }) };
    card.handlers = {
      look: (rank) => later(card, () => show(card, rank)),
      leave: () => later(card, () => (card.kept === null ? hide(card) : show(card, card.kept))),
      choose: (rank) => keep(card, card.kept === rank ? null : rank),
    };
    return {
      element: card.element, handlers: card.handlers,
      restore: () => { card.cache.clear(); card.kept = null; hide(card); if (page.query.rank) keep(card, Number(page.query.rank)); },
    };
  }

  function later(card, act) {
    clearTimeout(card.timer);
    card.timer = setTimeout(act, LOOK_MS);
  }

  function keep(card, rank) {
    clearTimeout(card.timer);
    card.kept = rank;
    if (rank === null) delete card.page.query.rank;
    else card.page.query.rank = rank;
    if (rank === null) hide(card);
    else show(card, rank);
  }

  function hide(card) {
    card.shown = null;
    card.element.hidden = true;
    card.page.player?.light([], "");
  }

  async function show(card, rank) {
    const { core, fetchJson } = window.tokentrip;
    card.shown = rank;
    if (!card.cache.has(rank)) {
      const { hop, speed, ...asked } = card.page.query;
      const data = await fetchJson("/api/gpu" + core.formatQuery({ ...asked, rank })).catch(() => ({ error: true }));
      if (data.error) return;
      card.cache.set(rank, data);
    }
    if (card.shown === rank) draw(card, card.cache.get(rank));
  }

  function draw(card, data) {
    const { dom } = window.tokentrip;
    const axes = Object.entries(data.coordinates).map(([axis, value]) => axis + " " + value).join(" · ");
    const groups = data.groups.map((group) => groupButton(card, group));
    card.element.replaceChildren(...[
      dom.make("h2", { text: "GPU " + data.rank.toLocaleString("en") }),
      dom.make("p", { class: "place", text: data.place }),
      dom.make("p", { class: "coordinates", text: axes }),
      data.holds.length ? dom.make("p", { text: "Holds " + data.holds.join(", ") + "." }) : null,
      dom.make("h3", { text: "Groups: light one up" }),
      dom.make("div", { class: "group-buttons" }, groups),
      routeButton(card, data),
    ].filter(Boolean));
    card.element.hidden = false;
    card.page.player?.light([data.rank], "");
  }

  function groupButton(card, group) {
    const { dom } = window.tokentrip;
    const light = () => card.page.player?.light(group.members, group.name);
    const button = dom.make("button", { type: "button", class: "group", "aria-pressed": "false", title: group.note,
      "aria-label": group.name + " group, " + group.size + " GPUs: " + group.note,
      onclick: () => {
        for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
        light();
      } }, [dom.make("b", { text: group.name }), document.createTextNode(" " + group.size)]);
    return button;
  }

  // The token's next pick: the first MoE layer at or after the current one that lives in this GPU's stage.
  function routeButton(card, data) {
    const { dom } = window.tokentrip;
    const page = card.page;
    const here = page.data.hops[page.player.state().hop];
    const layer = Object.keys(data.experts).map(Number).find((each) => each > here.layer || (each === here.layer && !["dispatch", "combine"].includes(here.kind)));
    if (layer === undefined) return null;
    const picks = page.data.token.picks[layer];
    const expert = data.experts[layer].find((each) => !picks.includes(each));
    if (expert === undefined) return null;
    return dom.make("button", { type: "button", class: "plain", text: "Route layer " + layer + "'s first pick here (expert " + expert + ")",
      onclick: () => page.change({ ["picks." + layer]: [expert, ...picks.slice(1)].join(",") }, true) });
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createGpuCard });
})();
