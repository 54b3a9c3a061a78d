"use strict";
// The map: the server's SVG below, which is never touched again, and above it a layer for what a hop
// changes, and a small one for what moves. A map of thousands of GPUs is then painted once.
(function () {
  const MAX_MOVERS = 160;

  function createMap(data, handlers) {
    const { core, dom } = window.tokentrip;
    const [width, height] = data.size;
    const drawn = data.drawn ?? dom.parseSvg(data.map);
    const label = drawn.getAttribute("aria-label");
    for (const name of ["role", "aria-label"]) drawn.removeAttribute(name);
    const layer = () => dom.makeSvg("svg", { class: "layer", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const [boxes, marks, lights] = [0, 1, 2].map(() => dom.makeSvg("g"));
    const over = layer();
    over.append(boxes, marks, lights);
    const movers = layer();
    movers.classList.add("movers");
    const gpus = new Map();
    for (const group of drawn.querySelectorAll(".gpu")) gpus.set(Number(group.dataset.rank), group);
    const base = dom.make("div", { class: "map-base", role: "group", "aria-label": label },
      [drawn, ...window.tokentrip.sheets(data, gpus)]);
    const stage = dom.make("div", { class: "map-stage" }, [base, over, movers]);
    stage.style.setProperty("--natural", width + "px");
    const element = dom.make("div", { class: "map-frame" }, [stage]);
    const since = {
      touched: core.firstHops(data.hops, (hop) => hop.marks.new),
      owners: core.firstHops(data.hops, (hop) => hop.marks.kv),
      copies: core.firstHops(data.hops, (hop) => hop.marks.copies),
    };
    const map = { data, dom, core, base, boxes, marks, lights, movers, element, gpus, since, frame: 0, clones: new Map(), lit: [], cursor: null };
    map.crowd = data.tokens ? window.tokentrip.createCrowd(map) : null;
    map.point = (rank) => { map.cursor = rank; drawLights(map); };
    window.tokentrip.mapKeys(map, handlers);
    return {
      element,
      show: (index) => { stop(map); showRest(map, index); },
      travel: (index, milliseconds, done) => travel(map, index, milliseconds, done),
      stop: () => stop(map),
      light: (ranks) => { map.lit = ranks; drawLights(map); },
    };
  }

  // Everything as it is after a hop.
  function showRest(map, index) {
    const hop = map.data.hops[index];
    touch(map, index, hop);
    map.movers.replaceChildren();
    map.marks.replaceChildren(...(map.crowd ? map.crowd.rest(index) : [...links(map, hop), ...kvMarks(map, index), ...relayLabels(map, hop),
      ...hop.marks.dots.map(([rank, state]) => dot(map, rank, state)).filter(Boolean), ...chips(map, hop)]));
  }

  // GPUs touched so far are drawn again, dark, over the map's own.
  function touch(map, index, hop) {
    const active = new Set(hop.moves.flatMap((move) => [move[0], move[1]]));
    for (const [rank, first] of map.since.touched) {
      const clone = map.clones.get(rank);
      if (first <= index && !clone) addClone(map, rank);
      else if (first > index && clone) {
        clone.remove();
        map.clones.delete(rank);
      }
    }
    for (const [rank, clone] of map.clones) clone.classList.toggle("active", active.has(rank));
  }

  function addClone(map, rank) {
    if (!map.gpus.has(rank)) return;
    const clone = map.gpus.get(rank).cloneNode(true);
    for (const name of ["role", "tabindex", "aria-label", "data-rank"]) clone.removeAttribute(name);
    clone.setAttribute("class", "gpu touched");
    map.clones.set(rank, clone);
    map.boxes.append(clone);
  }

  function links(map, hop) {
    return hop.moves.filter((move) => move[9] >= 0).map((move) => map.dom.makeSvg("path", {
      d: map.data.paths[move[9]], class: "link " + move[5] + (move[8] ? "" : " off-rail"),
    }));
  }

  function kvMarks(map, index) {
    const owners = new Set(map.core.ranksSince(map.since.owners, index));
    const copies = map.core.ranksSince(map.since.copies, index).filter((rank) => !owners.has(rank));
    return [...[...owners].map((rank) => square(map, rank, "kv")), ...copies.map((rank) => square(map, rank, "kv copy"))]
      .filter(Boolean);
  }

  function square(map, rank, name) {
    const box = map.data.boxes[rank];
    if (!box) return null;
    return map.dom.makeSvg("rect", { class: name, x: box[0] + box[2] - 20, y: box[1] + 8, width: 12, height: 12, rx: 2 });
  }

  function dot(map, rank, state) {
    const box = map.data.boxes[rank];
    if (!box) return null;
    const radius = state === "home" ? 8 : state === "relay" ? 5 : 6;
    return map.dom.makeSvg("circle", {
      class: "dot " + state, cx: box[0] + box[2] - 14, cy: box[1] + 36, r: radius, "data-rank": rank,
    });
  }

  function relayLabels(map, hop) {
    return hop.marks.relays.filter((rank) => map.data.boxes[rank]).map((rank) => {
      const box = map.data.boxes[rank];
      return map.dom.makeSvg("text", { class: "relay", x: box[0] + 9, y: box[1] + 39, text: "relay" });
    });
  }

  // Bytes beside the first links that cross, in the gutter at the far end.
  function chips(map, hop) {
    const crossing = hop.moves.filter((move) => move[5] === "ib" && move[9] >= 0).slice(0, 3);
    return crossing.map((move) => {
      const ends = [map.data.boxes[move[0]], map.data.boxes[move[1]]];
      const [near, far] = hop.kind === "combine" ? [ends[1], ends[0]] : ends;
      const text = "IB · " + move[3];
      const width = 7.2 * text.length + 16;
      const room = map.data.size[0] - (far[0] + far[2] / 2 + 12);
      const x = room > width ? far[0] + far[2] / 2 + 12 : far[0] + far[2] / 2 - 12 - width;
      const y = near[1] > far[1] ? far[1] + far[3] + 14 : far[1] - 34;
      return map.dom.makeSvg("g", { class: "chip" }, [
        map.dom.makeSvg("rect", { x, y, width, height: 20, rx: 10 }),
        map.dom.makeSvg("text", { x: x + width / 2, y: y + 14, text }),
      ]);
    });
  }

  // From the marks before a hop to those after it; frames touch the movers' layer only.
  function travel(map, index, milliseconds, done) {
    stop(map);
    const hop = map.data.hops[index];
    const moves = hop.moves.map((move, place) => [move, place]).filter(([move]) => move[9] >= 0).slice(0, MAX_MOVERS);
    if (!moves.length || !milliseconds || index === 0) {
      showRest(map, index);
      return done();
    }
    const riders = moves.map(([move, place]) => rider(map, hop, move, place));
    prepare(map, index, hop, riders);
    const phases = map.core.phaseCount(hop);
    const start = performance.now();
    const step = (now) => {
      const share = Math.min(1, (now - start) / milliseconds);
      for (const each of riders) place(each, map.core.progress(share, each.phase, phases));
      if (share < 1) map.frame = requestAnimationFrame(step);
      else { map.frame = 0; showRest(map, index); done(); }
    };
    map.frame = requestAnimationFrame(step);
  }

  function prepare(map, index, hop, riders) {
    const before = map.data.hops[index - 1];
    const staying = new Set(hop.marks.dots.map(([rank]) => rank));
    const leaving = new Set(riders.map((each) => each.from).filter((rank) => !staying.has(rank)));
    touch(map, index - 1, hop);
    const dots = before.marks.dots.filter(([rank]) => !leaving.has(rank)).map(([rank, state]) => dot(map, rank, state));
    map.marks.replaceChildren(...(map.crowd ? map.crowd.going(index)
      : [...links(map, hop), ...kvMarks(map, index - 1), ...relayLabels(map, hop), ...dots.filter(Boolean)]));
    fitMovers(map);
    map.movers.replaceChildren(...riders.map((each) => each.mark));
  }

  // The layer that moves covers the links of the hop and no more, however tall the map.
  function fitMovers(map) {
    const [width, height] = map.data.size;
    const boxes = [...map.marks.querySelectorAll(".link")].map((link) => link.getBBox());
    const left = Math.min(...boxes.map((box) => box.x)) - 16;
    const top = Math.min(...boxes.map((box) => box.y)) - 16;
    const wide = Math.max(...boxes.map((box) => box.x + box.width)) + 16 - left;
    const tall = Math.max(...boxes.map((box) => box.y + box.height)) + 16 - top;
    map.movers.setAttribute("viewBox", `${left} ${top} ${wide} ${tall}`);
    Object.assign(map.movers.style, { left: (100 * left) / width + "%", top: (100 * top) / height + "%",
      width: (100 * wide) / width + "%", height: (100 * tall) / height + "%" });
  }

  function rider(map, hop, move, place) {
    const path = map.dom.makeSvg("path", { d: map.data.paths[move[9]] });
    const ride = { path, length: path.getTotalLength(), phase: move[7], from: move[0] };
    if (map.crowd) return { ...ride, mark: map.crowd.rider(hop, place) };
    const square = hop.kind === "kv_exchange" || hop.kind === "weight_pull";
    const mark = square
      ? map.dom.makeSvg("rect", { class: hop.kind === "kv_exchange" ? "kv" : "weights", x: -6, y: -6, width: 12, height: 12, rx: 2 })
      : map.dom.makeSvg("circle", { class: "dot", r: 7 });
    return { ...ride, mark };
  }

  function place(each, share) {
    each.mark.style.visibility = share > 0 ? "visible" : "hidden";
    const point = each.path.getPointAtLength(each.length * share);
    each.mark.setAttribute("transform", `translate(${point.x.toFixed(1)} ${point.y.toFixed(1)})`);
  }

  function stop(map) {
    if (map.frame) cancelAnimationFrame(map.frame);
    map.frame = 0;
  }

  // Outlines over the map: a group that is lit, and the GPU that is pointed at or focused.
  function drawLights(map) {
    const outline = (rank, name) => {
      const [x, y, width, height] = map.data.boxes[rank];
      return map.dom.makeSvg("rect", { class: name, x: x - 2, y: y - 2, width: width + 4, height: height + 4, rx: 10 });
    };
    const drawn = (ranks) => ranks.filter((rank) => map.data.boxes[rank]);
    map.lights.replaceChildren(...drawn(map.lit).map((rank) => outline(rank, "lit-box")),
      ...drawn(map.cursor === null ? [] : [map.cursor]).map((rank) => outline(rank, "cursor-box")));
  }

  window.tokentrip = Object.assign(window.tokentrip || {}, { createMap });
})();
