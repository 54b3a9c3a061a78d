"""What a layer of some kind exchanges over context parallelism, and what of the kinds no trip follows."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from tracer.model.layers import (
    CompressedAttention,
    HeadAttention,
    LatentAttention,
    LinearAttention,
    Mamba2,
)
from tracer.scenario.plan import DecodeAttention, KvExchange, StateExchange, WindowExchange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracer.model.layers import Attention, LayerKind
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario


class Meeting(StrEnum):
    """How the tokens of a layer meet over CP (and DCP) ranks.

    ``KV``: keys and values travel. ``QUERY``: queries go out and partial outputs return. ``HEADS``: heads
    go to the CP ranks that compute them, and outputs return. ``STATE``: the state is handed on.
    """

    NONE = "none"
    KV = "kv"
    QUERY = "query"
    HEADS = "heads"
    STATE = "state"


def kind_at(model: ModelSpec, layer: int) -> LayerKind | None:
    """The kind of a layer where the layers are not alike, else None."""
    return model.layer_kinds[layer - 1] if model.layer_kinds else None


def attention_at(model: ModelSpec, layer: int) -> Attention | None:
    """What mixes a layer's tokens; None where the layers are alike, or nothing does."""
    kind = kind_at(model, layer)
    return None if kind is None else kind.attention


def mixes_tokens(model: ModelSpec, layer: int) -> bool:
    """Whether a layer has attention, or a mixer in its place."""
    kind = kind_at(model, layer)
    return kind is None or kind.attention is not None


def has_kv(model: ModelSpec, layer: int) -> bool:
    """Whether a layer writes K/V of its own."""
    kind = kind_at(model, layer)
    return kind is None or kind.kv_values > 0


def reads_kv(model: ModelSpec, layer: int) -> bool:
    """Whether a layer attends to K/V, of its own or of an earlier layer."""
    kind = kind_at(model, layer)
    return kind is None or isinstance(kind.attention, HeadAttention | LatentAttention | CompressedAttention)


def state_layer(model: ModelSpec, layer: int) -> LinearAttention | Mamba2 | None:
    """The mixer of a layer that keeps a state in place of K/V."""
    attention = attention_at(model, layer)
    return attention if isinstance(attention, LinearAttention | Mamba2) else None


def has_ffn(model: ModelSpec, layer: int) -> bool:
    """Whether a layer has a feed-forward part."""
    kind = kind_at(model, layer)
    return kind is None or kind.feed_forward is not None


def last_writer(model: ModelSpec) -> int:
    """The last layer that leaves something of a token behind: K/V, or its part of a state (0: none does).

    What comes after it serves the token alone.
    """
    writes = (
        layer
        for layer in range(model.layers, 0, -1)
        if has_kv(model, layer) or state_layer(model, layer) is not None
    )
    return next(writes, 0)


def meeting_at(scenario: Scenario, layer: int, way: DecodeAttention) -> Meeting:
    """How a layer's tokens meet; ``way`` is whether in decode queries travel or K/V.

    A layer that reads an earlier layer's K/V sends none: in prefill the copies that came for that layer
    serve it too.
    """
    model, plan, cp = scenario.model, scenario.plan, scenario.mesh.cp
    if state_layer(model, layer) is not None:
        heads = plan.state_exchange is StateExchange.HEADS
        return Meeting.NONE if cp == 1 else Meeting.HEADS if heads else Meeting.STATE
    if not reads_kv(model, layer) or cp * plan.dcp == 1:
        return Meeting.NONE
    if plan.head_parts(cp) > 1:
        return Meeting.HEADS
    if scenario.decodes and way is DecodeAttention.PASS_Q:
        return Meeting.QUERY
    return Meeting.KV if has_kv(model, layer) and cp > 1 else Meeting.NONE


def head_parts_at(scenario: Scenario, layer: int) -> int:
    """CP ranks that share a layer's heads: all for a state whose heads move, else as the plan says."""
    if state_layer(scenario.model, layer) is not None:
        return scenario.mesh.cp
    return scenario.plan.head_parts(scenario.mesh.cp)


def query_values(model: ModelSpec, layer: int) -> int | None:
    """Elements of a token's query over all heads of a layer; with a latent absorbed into it.

    With an indexer its queries and their weights are among them. None where the layers are alike, or the
    layer has no query.
    """
    attention = attention_at(model, layer)
    if isinstance(attention, HeadAttention | CompressedAttention):
        return attention.heads * attention.head_dim + index_query_values(attention)
    if isinstance(attention, LatentAttention):
        return attention.heads * attention.kv_values + index_query_values(attention)
    return None


def index_query_values(attention: HeadAttention | LatentAttention | CompressedAttention) -> int:
    """Elements of an indexer's queries of one token, with a weight per head where it has them."""
    if not attention.index_heads or getattr(attention, "index_shared", False):
        return 0
    weights = 0 if isinstance(attention, HeadAttention) else attention.index_heads
    return attention.index_heads * attention.index_dim + weights


def output_width(model: ModelSpec, layer: int) -> tuple[int, int] | None:
    """(heads, width of a head's output) of a layer; None where the layers are alike, or it has no K/V."""
    attention = attention_at(model, layer)
    if isinstance(attention, HeadAttention):
        return attention.heads, attention.v_head_dim
    if isinstance(attention, CompressedAttention):
        return attention.heads, attention.head_dim
    if isinstance(attention, LatentAttention):
        return attention.heads, attention.kv_lora_rank
    return None


def ring_steps(scenario: Scenario, layer: int) -> int:
    """Steps of the K/V ring of a layer: all cp - 1, or those that some window or chunk still needs.

    Step s brings K/V of CP rank i to rank i + s. The ring ends after the last step in which any query
    sees any key that came; with ``window_exchange = "all"``, and in decode, it goes all round.
    """
    cp, kind = scenario.mesh.cp, kind_at(scenario.model, layer)
    window = getattr(kind.attention, "window", None) if kind is not None else None
    everything = scenario.plan.window_exchange is WindowExchange.ALL or scenario.decodes
    if window is None or everything or scenario.plan.kv_exchange is not KvExchange.RING:
        return cp - 1
    if isinstance(kind.attention if kind else None, CompressedAttention):
        return cp - 1
    aligned = kind is not None and kind.attention is not None and kind.attention.type == "chunked"
    landing = scenario.landing
    return _needed_steps(cp, landing.padded, landing.is_zigzag, window, aligned)


@lru_cache(maxsize=256)
def _needed_steps(cp: int, tokens: int, zigzag: bool, window: int, aligned: bool) -> int:
    """The last step that is needed; ``aligned`` windows are chunks of positions."""
    pieces = 2 * cp if zigzag else cp
    size, last = tokens // pieces, 0
    for piece in range(pieces):
        key = (piece + 1) * size - 1
        end = key + window - 1 if not aligned else key // window * window + window - 1
        for other in range(piece + 1, min(pieces - 1, end // size) + 1):
            last = max(last, (_owner(other, cp) - _owner(piece, cp)) % cp)
            if last == cp - 1:
                return last
    return last


def _owner(piece: int, cp: int) -> int:
    """The CP rank of a piece of the prompt: in zigzag the second half goes back."""
    return piece if piece < cp else 2 * cp - 1 - piece


def state_walk(scenario: Scenario, position: int) -> list[int]:
    """CP ranks that a state goes through with a token of a position in it, from where it is computed.

    In prefill over the pieces of the prompt after the token's own; in decode from the position before.
    """
    from tracer.memory.kv import kv_cp

    if scenario.decodes:
        return [kv_cp(scenario, position - 1), kv_cp(scenario, position)]
    cp, landing = scenario.mesh.cp, scenario.landing
    pieces = 2 * cp if landing.is_zigzag else cp
    first = position // (landing.padded // pieces)
    return [_owner(piece, cp) for piece in range(first, pieces)]


def distinct_layers(scenario: Scenario, way: DecodeAttention) -> Iterator[tuple[int, ...]]:
    """Layers that exchange alike over CP, in order of the first of each; those that exchange nothing last."""
    model = scenario.model
    if not model.layer_kinds:
        yield tuple(range(1, model.layers + 1))
        return
    found: dict[object, list[int]] = {}
    for layer, kind in enumerate(model.layer_kinds, start=1):
        key = (meeting_at(scenario, layer, way), kind.attention, ring_steps(scenario, layer))
        found.setdefault(key, []).append(layer)
    yield from map(tuple, found.values())


def not_modelled(scenario: Scenario) -> list[str]:
    """What these layers exchange in this mesh that a trip does not follow; empty where it follows all."""
    model, shards = scenario.model, scenario.mesh.cp * scenario.plan.dcp
    kinds = [kind for kind, _ in model.kinds()] if model.layer_kinds else []
    found: list[str] = []
    picking = any(getattr(kind.attention, "index_heads", 0) for kind in kinds)
    if picking and shards > 1 and scenario.decodes:
        found.append("how the ranks agree on an indexer's picks: each is taken to pick among its own keys")
    return found


def taken_as_alike(model: ModelSpec) -> list[str]:
    """What figures for one kind of attention say of a model with several; empty where they are exact."""
    kinds = {kind.attention for kind, _ in model.kinds()} if model.layer_kinds else set()
    types = sorted({"no attention" if each is None else str(each.type) for each in kinds})
    if not types or (len(kinds) == 1 and types == ["mla"]):
        return []
    return [f"not modelled: layers of several kinds ({', '.join(types)}); all are taken as the main kind"]
