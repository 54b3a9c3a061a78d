"""Who keeps a token's K/V, layer by layer, and one GPU's part of a whole request's K/V.

:class:`KvOwners` follows one position; :class:`KvShare` is what ``kv``, ``rank`` and ``fits`` say of one GPU:
its heads, positions and bytes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError, whole_number
from tracer.memory.kv import kv_cps, kv_tps, positions_kept, stored_heads
from tracer.memory.kv_bytes import index_bytes, is_bounded, kv_bytes_of_layer, state_bytes_of_layer
from tracer.model.dtype import BYTES
from tracer.model.layers import CompressedAttention, HeadAttention, LatentAttention
from tracer.scenario.plan import StateExchange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracer.model.layers import LayerKind
    from tracer.scenario.scenario import Scenario


MAX_REPLICA_RANKS = 1 << 11


@dataclass(frozen=True, slots=True)
class KvHolding:
    """One rank's K/V of one position: the KV ``heads`` it keeps (none: the MLA latent), in ``layers``.

    ``layers`` is one run; a rank whose stage holds several has a holding for each. ``bytes_per_layer`` is
    K and V of those heads in the K/V dtype. Where the layers are not alike, ``sizes`` has (layer, bytes) of
    each that keeps the position, and ``bytes_per_layer`` is the largest.
    """

    rank: int
    stage: int
    layers: range
    heads: tuple[int, ...]
    bytes_per_layer: int
    sizes: tuple[tuple[int, int], ...] | None = None

    @property
    def bytes(self) -> int:
        """Bytes over all its layers."""
        if self.sizes is not None:
            return sum(size for _, size in self.sizes)
        return self.bytes_per_layer * len(self.layers)

    def keeps(self, layer: int) -> bool:
        """Whether the position is kept in a layer, numbered from 1."""
        return layer in self.layers if self.sizes is None else any(each == layer for each, _ in self.sizes)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; layers from 1, both ends included."""
        return {
            "rank": self.rank,
            "stage": self.stage,
            "layers": [self.layers.start, self.layers.stop - 1],
            "heads": list(self.heads),
            "bytes_per_layer": self.bytes_per_layer,
            "bytes": self.bytes,
        } | ({} if self.sizes is None else {"bytes_by_layer": [list(each) for each in self.sizes]})


@dataclass(frozen=True, slots=True)
class KvOwners:
    """Who keeps the K/V of one position of a replica's request.

    ``elements`` is one copy: layers x K and V of every KV head (MLA: the latent); ``bytes`` is all that is
    stored, replicas of KV heads included.
    """

    scenario: Scenario
    position: int
    holdings: tuple[KvHolding, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that keep some of it, ascending."""
        return tuple(sorted({weight_shard.rank for weight_shard in self.holdings}))

    @property
    def elements(self) -> int:
        """Elements of one copy over all layers."""
        model, plan = self.scenario.model, self.scenario.plan
        if not model.layer_kinds and model.mla and plan.head_parts(self.scenario.mesh.cp) > 1:
            heads = model.need("heads", "size K/V")
            return model.layers * kv_bytes_of_heads(self.scenario, heads) // BYTES[self.scenario.dtype.kv]
        if not model.layer_kinds:
            return model.layers * model.kv_values_per_token
        return sum(
            model.layer_kinds[layer - 1].kv_values
            for layer in range(1, model.layers + 1)
            if any(each.keeps(layer) for each in self.holdings)
        )

    @property
    def bytes(self) -> int:
        """Bytes in store."""
        return sum(weight_shard.bytes for weight_shard in self.holdings)

    @property
    def copies(self) -> int:
        """How many times each element is stored; 0 where no layer keeps the position."""
        if self.scenario.model.layer_kinds:
            return max(
                (copies_in(self, layer) for layer in range(1, self.scenario.model.layers + 1)), default=0
            )
        return self.bytes // (self.elements * BYTES[self.scenario.dtype.kv])

    def of_layer(self, layer: int) -> tuple[KvHolding, ...]:
        """Holdings of one layer, numbered from 1."""
        return tuple(weight_shard for weight_shard in self.holdings if weight_shard.keeps(layer))

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "replica": self.scenario.replica,
            "position": self.position,
            "ranks": list(self.ranks),
            "elements": self.elements,
            "copies": self.copies,
            "bytes": self.bytes,
            "holdings": [weight_shard.to_dict() for weight_shard in self.holdings],
        }


def kv_owners(scenario: Scenario, position: int | None = None) -> KvOwners:
    """Who keeps a position's K/V (None: the scenario's token's), of the prompt or after it.

    Copies that the exchange of prefill brings to other CP ranks serve its queries and are dropped.

    Raises:
        ConfigError: for a negative position, or a size that the model does not state.
    """
    position = scenario.position if position is None else position
    whole_number("position", position, at_least=0)
    check_replica_listable(scenario)
    cps, tps = kv_cps(scenario, position), kv_tps(scenario, position)
    holdings = []
    for stage, runs in enumerate(scenario.stage_runs):
        for tp, cp in product(tps, cps):
            rank = scenario.mesh.rank(tp=tp, cp=cp, dp=scenario.replica, pp=stage)
            heads = tuple(stored_heads(scenario, rank)) if _has_heads(scenario) else ()
            size = 0 if scenario.model.layer_kinds else kv_bytes_of_heads(scenario, len(heads))
            holdings += [_holding(scenario, rank, stage, layers, heads, size, position) for layers in runs]
    return KvOwners(scenario, position, tuple(holdings))


def _has_heads(scenario: Scenario) -> bool:
    """Whether the model has K/V heads, or a latent: one of states alone has none."""
    model = scenario.model
    return not model.layer_kinds or model.mla or model.kv_heads is not None


def _holding(
    scenario: Scenario,
    rank: int,
    stage: int,
    layers: range,
    heads: tuple[int, ...],
    size: int,
    position: int,
) -> KvHolding:
    sizes = _sizes(scenario, layers, position)
    if sizes is not None:
        size = max((one for _, one in sizes), default=0)
    return KvHolding(rank, stage, layers, heads, size, sizes)


def copies_in(owners: KvOwners, layer: int) -> int:
    """How many times each element of one layer's K/V of the position is stored."""
    kind, scenario = owners.scenario.model.layer_kinds[layer - 1], owners.scenario
    one = kv_bytes_of_layer(kind, scenario.dtype.kv)
    parts = scenario.plan.head_parts(scenario.mesh.cp)
    if parts > 1:
        if not isinstance(kind.attention, HeadAttention):
            return 1 if kind.kv_values else 0
        held = len(owners.of_layer(layer)) * position_bytes(scenario, kind)
        return held // one if one else 0
    held = len(owners.of_layer(layer)) * kv_bytes_of_layer(kind, scenario.dtype.kv, scenario.mesh.tp)
    return held // one if one else 0


def _sizes(scenario: Scenario, layers: range, position: int) -> tuple[tuple[int, int], ...] | None:
    """(layer, bytes on one TP rank) of the layers that keep a position; None where all are alike.

    Kept is what a request that is cached by now still needs for its next token: of a window, the last
    positions. A compressed layer keeps the window's; its entries belong to no one position.
    """
    model = scenario.model
    if not model.layer_kinds:
        return None
    found = []
    context = max(cached_positions(scenario), position + 1)
    for layer in layers:
        kind = model.layer_kinds[layer - 1]
        window = getattr(kind.attention, "window", None)
        if kind.kv_values and (window is None or position >= context - window):
            found.append((layer, position_bytes(scenario, kind)))
    return tuple(found)


def position_bytes(scenario: Scenario, kind: LayerKind) -> int:
    """Bytes that one rank keeps of one position (or entry) in a layer of a kind, an indexer's key with it.

    Where heads are cut over CP, those of its heads alone (MLA: after the up-projection).
    """
    mesh, dtype, attention = scenario.mesh, scenario.dtype.kv, kind.attention
    parts = scenario.plan.head_parts(mesh.cp)
    if parts > 1 and isinstance(attention, LatentAttention):
        heads = attention.heads // mesh.tp // parts
        return heads * (attention.qk_head_dim + attention.v_head_dim) * BYTES[dtype]
    return kv_bytes_of_layer(kind, dtype, mesh.tp * parts) + index_bytes(kind)


def state_parts(scenario: Scenario) -> int:
    """Ranks that a state is cut over by heads: the TP ranks, and the CP ranks where its heads move."""
    heads = scenario.plan.state_exchange is StateExchange.HEADS
    return scenario.mesh.tp * (scenario.mesh.cp if heads else 1)


def check_replica_listable(scenario: Scenario) -> None:
    """Refuse a replica of too many ranks to list what each one keeps.

    Raises:
        ConfigError: above ``MAX_REPLICA_RANKS``.
    """
    mesh = scenario.mesh
    ranks = mesh.replica_size * mesh.stages
    if ranks > MAX_REPLICA_RANKS:
        raise ConfigError(
            "mesh",
            f"tp·cp·pp = {ranks:,}",
            f"is more than the {MAX_REPLICA_RANKS:,} ranks of a replica whose K/V can be listed",
            "ask for one rank: tokentrip rank SCENARIO RANK",
        )


def kv_bytes_of_heads(scenario: Scenario, heads: int) -> int:
    """Bytes of one token's K and V of so many KV heads in one layer; MLA: of the whole latent with none.

    MLA's heads, where it keeps some, are those after the up-projection.
    """
    model, each = scenario.model, BYTES[scenario.dtype.kv]
    if model.mla and heads:
        return heads * (model.qk_head_dim + model.need("v_head_dim", "size K/V")) * each
    if model.layer_kinds and len({kind.attention for kind in model.layer_kinds}) == 1 and model.mla:
        kind = model.layer_kinds[0]
        return kv_bytes_of_layer(kind, scenario.dtype.kv) + index_bytes(kind)
    if model.mla:
        return model.kv_values_per_token * each
    return model.kv_values_per_token // model.need("kv_heads", "size K/V") * heads * each


@dataclass(frozen=True, slots=True)
class KvShare:
    """K/V that a rank keeps of one request: ``positions`` of it, each ``bytes_per_position``.

    ``bounded_bytes`` is what it keeps of a request whatever its length, once that is long: windows and
    states. ``heads`` are its KV heads (none listed: the MLA latent), ``layers`` those of its stage. With
    decode context parallelism the ranks of a DCP group keep the same heads and share the positions.
    """

    rank: int
    heads: tuple[int, ...]
    layers: int
    positions: int
    bytes_per_position: int
    bounded_bytes: int = 0

    @property
    def keeps_any(self) -> bool:
        """Whether it keeps anything: a stage without layers does not."""
        return self.bytes_per_position + self.bounded_bytes > 0

    @property
    def bytes(self) -> int:
        """Bytes of one request."""
        return self.positions * self.bytes_per_position + self.bounded_bytes


def tokens_in(free_bytes: int, share: KvShare) -> int:
    """Positions whose K/V a rank can keep in some memory, in requests as long as that of ``share``.

    Windows and states are paid once per request; the last request may be a shorter one.
    """
    if not share.bounded_bytes:
        return free_bytes // share.bytes_per_position if share.bytes_per_position else 0
    requests, rest = divmod(free_bytes, share.bytes)
    last = (rest - share.bounded_bytes) // share.bytes_per_position if share.bytes_per_position else 0
    return requests * share.positions + max(0, last)


def kv_share(scenario: Scenario, rank: int, context: int | None = None) -> KvShare:
    """A rank's share of a request of its replica with ``context`` positions (None: what is cached by now).

    Raises:
        ConfigError: for a rank outside the mesh, or a size that the model does not state.
    """
    context = cached_positions(scenario) if context is None else context
    mesh = scenario.mesh
    heads = tuple(stored_heads(scenario, rank)) if _has_heads(scenario) else ()
    stage = mesh.stage_of(rank)
    layers = scenario.stage_layers[stage]
    if scenario.model.layer_kinds:
        each, bounded = _by_kind(scenario, rank, scenario.layers_of(stage), context)
        return KvShare(rank, heads, layers, positions_kept(scenario, rank, context), each, bounded)
    each = kv_bytes_of_heads(scenario, len(heads)) * layers
    return KvShare(rank, heads, layers, positions_kept(scenario, rank, context), each)


def _by_kind(scenario: Scenario, rank: int, layers: Iterable[int], context: int) -> tuple[int, int]:
    """(bytes of one position in the layers that keep all of them, bytes of windows, entries and states)."""
    each = bounded = 0
    activations = scenario.dtype.activations
    counts = Counter(scenario.model.layer_kinds[layer - 1] for layer in layers)
    for kind, number in counts.items():
        one, index = position_bytes(scenario, kind) - index_bytes(kind), index_bytes(kind)
        if isinstance(kind.attention, CompressedAttention):
            entries = kind.attention.compressed(context)
            bounded += number * (_in_window(scenario, rank, context, kind.attention.window) * one)
            bounded += number * entries * (one + index) // (scenario.mesh.cp * scenario.plan.dcp)
        elif not is_bounded(kind):
            each += number * (one + index)
        else:
            window = getattr(kind.attention, "window", None) if one else None
            bounded += number * state_bytes_of_layer(kind, activations, state_parts(scenario))
            if window is not None:
                bounded += number * one * _in_window(scenario, rank, context, window)
    return each, bounded


def _in_window(scenario: Scenario, rank: int, context: int, window: int) -> int:
    """Positions of the last ``window`` of a request that a rank keeps."""
    kept = positions_kept(scenario, rank, context)
    return kept - positions_kept(scenario, rank, max(0, context - window))


def cached_positions(scenario: Scenario) -> int:
    """Positions of a request that are cached: the prompt, in decode also the new ones up to the token."""
    return scenario.position + 1 if scenario.decodes else scenario.token.prompt
