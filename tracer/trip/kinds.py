"""What a trip follows of a layer's kind, and what of the kinds it does not model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.model.layers import (
    AttentionType,
    CompressedAttention,
    HeadAttention,
    LatentAttention,
    LinearAttention,
    Mamba2,
    MoeFfn,
)

if TYPE_CHECKING:
    from tracer.model.layers import LayerKind
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario


def kind_at(model: ModelSpec, layer: int) -> LayerKind | None:
    """The kind of a layer where the layers are not alike, else None."""
    return model.layer_kinds[layer - 1] if model.layer_kinds else None


def mixes_tokens(model: ModelSpec, layer: int) -> bool:
    """Whether a layer has attention, or a mixer in its place."""
    kind = kind_at(model, layer)
    return kind is None or kind.attention is not None


def has_kv(model: ModelSpec, layer: int) -> bool:
    """Whether a layer writes K/V of its own."""
    kind = kind_at(model, layer)
    return kind is None or kind.kv_values > 0


def has_ffn(model: ModelSpec, layer: int) -> bool:
    """Whether a layer has a feed-forward part."""
    kind = kind_at(model, layer)
    return kind is None or kind.feed_forward is not None


def query_values(model: ModelSpec, layer: int) -> int | None:
    """Elements of a token's query over all heads of a layer; with a latent absorbed into it.

    None where the layers are alike, or the layer has no query.
    """
    kind = kind_at(model, layer)
    attention = None if kind is None else kind.attention
    if isinstance(attention, HeadAttention | CompressedAttention):
        return attention.heads * attention.head_dim
    if isinstance(attention, LatentAttention):
        return attention.heads * attention.kv_values
    return None


def output_width(model: ModelSpec, layer: int) -> tuple[int, int] | None:
    """(heads, width of a head's output) of a layer; None where the layers are alike, or it has no K/V."""
    kind = kind_at(model, layer)
    attention = None if kind is None else kind.attention
    if isinstance(attention, HeadAttention):
        return attention.heads, attention.v_head_dim
    if isinstance(attention, CompressedAttention):
        return attention.heads, attention.head_dim
    if isinstance(attention, LatentAttention):
        return attention.heads, attention.kv_lora_rank
    return None


def not_modelled(scenario: Scenario) -> list[str]:
    """What these layers exchange in this mesh that a trip does not follow; empty where it follows all."""
    model, cp = scenario.model, scenario.mesh.cp * scenario.plan.dcp
    kinds = [kind for kind, _ in model.kinds()] if model.layer_kinds else []
    found: list[str] = []
    attention = [kind.attention for kind in kinds if kind.attention is not None]
    if cp > 1:
        if any(isinstance(each, LinearAttention | Mamba2) for each in attention):
            found.append("what linear-attention and Mamba layers hand on over cp (their state, or heads)")
        if any(isinstance(each, HeadAttention) and each.window for each in attention):
            found.append("windows: K/V and queries travel over cp as if every layer saw all tokens")
        if any(isinstance(each, CompressedAttention) for each in attention):
            found.append("compressed attention over cp: own entries travel, compressed ones do not")
        if any(isinstance(each, HeadAttention) and each.shared_kv for each in attention):
            found.append("layers that read another layer's K/V: they exchange none")
        if any(each.type is AttentionType.DSA for each in attention):
            found.append("the picks of the sparse-attention indexer over cp")
    moe = [kind.feed_forward for kind in kinds if isinstance(kind.feed_forward, MoeFfn)]
    if any(each.latent for each in moe):
        found.append("experts on a latent: rows are counted at the hidden size, not at the latent's")
    if any(each.zero_experts for each in moe):
        found.append("picks of experts without weights")
    return found


def taken_as_alike(model: ModelSpec) -> list[str]:
    """What figures for one kind of attention say of a model with several; empty where they are exact."""
    kinds = {kind.attention for kind, _ in model.kinds()} if model.layer_kinds else set()
    types = sorted({"no attention" if each is None else str(each.type) for each in kinds})
    if not types or (len(kinds) == 1 and types == ["mla"]):
        return []
    return [f"not modelled: layers of several kinds ({', '.join(types)}); all are taken as the main kind"]
