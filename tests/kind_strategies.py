"""hypothesis draws models whose layers are of several kinds, as the tables of ``layer_kinds``."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Table = dict[str, Any]
STATES = ["gated_delta_net", "kda", "lightning", "mamba", "mamba2"]


@st.composite
def state_mixers(draw: st.DrawFn, tp: int, cp: int) -> Table:
    """Linear attention or Mamba whose heads TP and CP cut."""
    word = draw(st.sampled_from(STATES), label="mixer")
    heads, size = tp * cp * draw(st.integers(1, 2), label="heads a rank"), draw(st.sampled_from([4, 16]))
    if word == "mamba":
        return {"type": word, "heads": heads, "head_dim": 1, "state": 8, "groups": 1, "dt_rank": 4}
    if word == "mamba2":
        groups = draw(st.sampled_from([1, tp, tp * cp]), label="groups")
        return {"type": word, "heads": heads, "head_dim": size, "state": 8, "groups": groups}
    keys = tp * cp if word == "gated_delta_net" else heads
    table = {"type": word, "key_heads": keys, "value_heads": heads, "key_dim": size, "value_dim": 2 * size}
    return table if word == "lightning" else table | {"conv": draw(st.integers(2, 4), label="conv")}


@st.composite
def head_mixers(draw: st.DrawFn, tp: int, sharers: int) -> Table:
    """Attention over all tokens, a window or a chunk; perhaps with the K/V of an earlier layer."""
    word = draw(st.sampled_from(["full", "sliding", "chunked"]), label="attention")
    kv_heads = tp * sharers * draw(st.integers(1, 2), label="kv_heads a rank")
    table: Table = {
        "type": word, "heads": kv_heads * draw(st.integers(1, 2)), "kv_heads": kv_heads,
        "head_dim": draw(st.sampled_from([4, 8]), label="head_dim"),
    }  # fmt: skip
    table["v_head_dim"] = draw(st.sampled_from([table["head_dim"], 6]), label="v_head_dim")
    if word != "full":
        table["window"] = draw(st.integers(1, 40), label="window")
    if draw(st.sampled_from([False, False, False, True]), label="shared_kv"):
        table["shared_kv"] = True
    return table


@st.composite
def latent_mixers(draw: st.DrawFn, tp: int, sharers: int) -> Table:
    """Multi-head latent attention."""
    return {
        "type": "mla", "heads": tp * sharers * draw(st.integers(1, 2), label="heads a rank"),
        "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
    }  # fmt: skip


@st.composite
def layer_kinds(draw: st.DrawFn, model: Table, mesh: Table, sharers: int) -> list[Table]:
    """A kind for each layer, from two or three; experts are named and sized later."""
    tp, cp = mesh.get("tp", 1), mesh.get("cp", 1)
    mixers = [head_mixers(tp, sharers), latent_mixers(tp, sharers), state_mixers(tp, cp), st.none()]
    latent = draw(st.sampled_from([0, 0, 24]), label="latent of the experts")
    kinds = []
    for _ in range(draw(st.integers(2, 3), label="kinds")):
        kind: Table = {}
        mixer = draw(draw(st.sampled_from(mixers)), label="mixer")
        if mixer is not None:
            kind["attention"] = mixer
        feeds = ["gated", "plain", *(["moe", "moe"] if "experts" in model else [])]
        feeds += [] if mixer is None else ["none"]
        feed = draw(st.sampled_from(feeds), label="feed forward")
        if feed == "moe":
            shared = {"shared_width": model["shared_hidden"]} if model.get("shared_experts") else {}
            width = {"width": model["expert_hidden"]}
            kind["feed_forward"] = {"experts": 0} | width | shared | ({"latent": latent} if latent else {})
        elif feed != "none":
            kind["feed_forward"] = {"width": 64} | ({} if feed == "gated" else {"gated": False})
        kinds.append(kind)
    numbers: dict[int, list[int]] = {}
    for layer in range(1, model["layers"] + 1):
        numbers.setdefault(draw(st.integers(0, len(kinds) - 1), label=f"kind of {layer}"), []).append(layer)
    return [{"layers": ", ".join(map(str, layers))} | kinds[kind] for kind, layers in sorted(numbers.items())]


def name_experts(model: Table) -> None:
    """Give the kinds' experts the model's numbers; a model whose kinds have none has none."""
    for kind in model.get("layer_kinds", []):
        if "experts" in kind.get("feed_forward", {}):
            kind["feed_forward"].update(experts=model["experts"], top_k=model["top_k"])


def routed_layers(model: Table) -> list[int]:
    """1-based numbers of the layers with experts, by the kinds."""
    return sorted(
        int(layer)
        for kind in model["layer_kinds"]
        if "experts" in kind.get("feed_forward", {})
        for layer in kind["layers"].split(",")
    )
