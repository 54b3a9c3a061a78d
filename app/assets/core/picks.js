// Routing by hand: which of the token's next picks can be sent to a GPU.

const EXPERT_HOPS = ["dispatch", "combine"];

// The picks of the first MoE layer at or after `hop` whose experts the GPU holds, with its own expert in front.
// `experts` and `picks` are lists by layer. Null when no layer is left or the token picks all of them already.
export function routedPicks(hop, experts, picks) {
  const isOpen = (layer) => layer > hop.layer || (layer === hop.layer && !EXPERT_HOPS.includes(hop.kind));
  const layer = Object.keys(experts).map(Number).find(isOpen);
  if (layer === undefined) return null;
  const expert = experts[layer].find((each) => !picks[layer].includes(each));
  return expert === undefined ? null : { layer, expert, picks: [expert, ...picks[layer].slice(1)] };
}
