"""What each layer is, as plain tables: of one kind by the model's sizes, or of several by ``layer_kinds``."""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]


def numbers_of(runs: str) -> list[int]:
    """The numbers of runs such as ``1-3, 7``."""
    found: list[int] = []
    for run in runs.split(","):
        ends = [int(end) for end in run.split("-")]
        found += range(ends[0], ends[-1] + 1)
    return found


def table_of(scenario: Table, layer: int) -> Table:
    """The table of a layer (from 1): ``attention`` and ``feed_forward``, None where it has no such part."""
    model = scenario["model"]
    for table in model.get("layer_kinds", []):
        if layer in numbers_of(table["layers"]):
            return {"attention": table.get("attention"), "feed_forward": table.get("feed_forward")}
    dense = model.get("dense_layers", 0)
    routed = bool(model.get("experts")) and (layer > dense if isinstance(dense, int) else layer not in dense)
    return {"attention": main_attention(model), "feed_forward": {"experts": 1} if routed else {"width": 1}}


def main_attention(model: Table) -> Table:
    """The attention that the model's own sizes describe."""
    names = ("heads", "kv_heads", "head_dim", "v_head_dim", "kv_lora_rank")
    names += ("qk_rope_head_dim", "qk_nope_head_dim")
    found = {name: model[name] for name in names if model.get(name)}
    return found | {"type": "mla" if model.get("kv_lora_rank") else "full"}


def attention_of(scenario: Table, layer: int) -> Table | None:
    """A layer's attention or mixer."""
    found: Table | None = table_of(scenario, layer)["attention"]
    return found


def is_moe(scenario: Table, layer: int) -> bool:
    """Whether a layer has experts."""
    return "experts" in (table_of(scenario, layer)["feed_forward"] or {})


def has_ffn(scenario: Table, layer: int) -> bool:
    """Whether a layer has a feed-forward part."""
    return table_of(scenario, layer)["feed_forward"] is not None


def keeps_state(attention: Table | None) -> bool:
    """Whether a mixer keeps a state in place of K/V."""
    return attention is not None and attention["type"] in (
        "gated_delta_net",
        "kda",
        "lightning",
        "mamba",
        "mamba2",
    )


def expert_row(scenario: Table) -> int:
    """Elements of a row on its way to an expert: of a latent where there is one."""
    for table in scenario["model"].get("layer_kinds", []):
        latent = (table.get("feed_forward") or {}).get("latent")
        if latent:
            return int(latent)
    return int(scenario["model"]["hidden"])


def last_keeper(scenario: Table) -> int:
    """The last layer that keeps something of a token for later ones."""
    found = 0
    for layer in range(1, scenario["model"]["layers"] + 1):
        attention = attention_of(scenario, layer)
        if attention is not None and not attention.get("shared_kv"):
            found = layer
    return found


def state_of_one_rank(attention: Table, tp: int, act: int) -> int:
    """Bytes of a state on a TP rank: FP32 for each head, and the convolution's last inputs."""
    if attention["type"] == "mamba":
        channels = attention["heads"] // tp * attention["head_dim"]
        return int(channels * (attention["state"] * 4 + (attention.get("conv", 4) - 1) * act))
    if attention["type"] == "mamba2":
        heads, size, state = attention["heads"] // tp, attention["head_dim"], attention["state"]
        channels = heads * size + 2 * max(1, attention["groups"] // tp) * state
        return int(heads * size * state * 4 + channels * (attention.get("conv", 4) - 1) * act)
    heads, key, value = attention["value_heads"] // tp, attention["key_dim"], attention["value_dim"]
    total = heads * key * value * 4
    if attention.get("conv"):
        keys = max(1, attention["key_heads"] // tp)
        total += (2 * keys * key + heads * value) * (attention["conv"] - 1) * act
    return int(total)


def projected(attention: Table, heads: int, of: int) -> tuple[int, int]:
    """(elements before, after) of the mixer of one of ``of`` ranks that has ``heads`` heads of one token."""
    if attention["type"] == "mamba":
        return 2 * heads * attention["head_dim"], heads * attention["head_dim"]
    if attention["type"] == "mamba2":
        inner = heads * attention["head_dim"]
        groups = max(1, attention["groups"] // of)
        return inner + inner + 2 * groups * attention["state"] + heads, inner
    value = heads * attention["value_dim"]
    before = 2 * max(1, attention["key_heads"] // of) * attention["key_dim"] + value
    if attention["type"] == "gated_delta_net":
        before += value + heads + heads
    if attention["type"] == "kda":
        before += value + heads
    return before, value
