"""Which hops a token takes, in which order: prefill and decode, dense and MoE layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Contract, DecodeAttention, Embedding, SharedTp, Sp
from tracer.scenario.sharding import shard_sizes
from tracer.trip import hops
from tracer.trip.hop import Hop, Part, Where
from tracer.trip.hops.cp import attention_way
from tracer.trip.kinds import Meeting, has_ffn, has_kv, head_parts_at, last_writer, meeting_at, mixes_tokens

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

    HopBuilder = Callable[[Scenario, Where], Hop]
    Stop = tuple[HopBuilder, Where]


class Rider(NamedTuple):
    """What an itinerary depends on in its token: where it is, whether the LM head reads it, its picks.

    ``home`` is its stage-0 rank; ``picks`` are by layer. A row of padding, which no scenario can follow
    and no head reads, rides as well.
    """

    position: int
    home: int
    to_head: bool
    picks: Mapping[int, tuple[int, ...]]


def rider_of(scenario: Scenario) -> Rider:
    """The scenario's own token."""
    return Rider(scenario.position, scenario.home, scenario.to_head, scenario.layer_picks())


def itinerary(scenario: Scenario, rider: Rider | None = None) -> Iterator[Stop]:
    """Stops of the scenario's phase, for its token or another rider of the same deployment."""
    return (decode if scenario.decodes else prefill)(scenario, rider)


def prefill(scenario: Scenario, rider: Rider | None = None) -> Iterator[Stop]:
    """Stops of one prefill chunk, from landing to the LM head (counting rules, sections 2 to 4).

    They are the scenario's token's, or another rider's of the same deployment.
    """
    return _trip(scenario, rider)


def decode(scenario: Scenario, rider: Rider | None = None) -> Iterator[Stop]:
    """Stops of one new token through one decode step (counting rules, section 6)."""
    return _trip(scenario, rider)


def _trip(scenario: Scenario, rider: Rider | None) -> Iterator[Stop]:
    """From landing to the LM head."""
    model, last = scenario.model, last_writer(scenario.model)
    rider = rider_of(scenario) if rider is None else rider
    start = Where(0, 0, rider.position, rider.home, Part.LAND)
    yield hops.land, start
    yield from _gathered(scenario, start._replace(part=Part.EMBEDDING))
    if scenario.plan.embedding is Embedding.VOCAB_PARALLEL and _tp(scenario) > 1:
        yield _sum(scenario), start._replace(part=Part.EMBEDDING)
    ends = [chunk.stage for chunk in scenario.chunks[1:]]
    for chunk, onward in zip_longest(scenario.chunks, ends):
        stage = chunk.stage
        home = scenario.mesh.moved(rider.home, Axis.PP, stage)
        for layer in chunk.layers:
            where = Where(layer, stage, rider.position, home, Part.ATTENTION, rider.picks.get(layer, ()))
            if layer > last:
                where = _after_kv(scenario, rider, where)
            after_kv = where if layer < last else _after_kv(scenario, rider, where)
            yield from _gathered(scenario, where)
            if mixes_tokens(model, layer):
                yield from _attention(scenario, where, after_kv)
            if has_ffn(model, layer):
                yield from _feed_forward(scenario, after_kv)
        if onward not in (None, stage):
            done = chunk.layers.stop - 1
            where = Where(done, stage, rider.position, home, Part.PIPELINE, to_stage=onward)
            yield hops.pp_send, where if done < last else _after_kv(scenario, rider, where)
    yield from _lm_head(scenario, rider)


def _tp(scenario: Scenario) -> int:
    return scenario.mesh.tp


def _split_tokens(scenario: Scenario) -> bool:
    """Whether each token lives on one TP rank outside attention."""
    return scenario.plan.sp is Sp.MEGATRON


def _gathered(scenario: Scenario, where: Where) -> Iterator[Stop]:
    """The pieces of a unit of sharded weights, before the unit runs."""
    sizes = shard_sizes(scenario.plan, scenario.mesh)
    if (sizes.experts if where.part is Part.MOE else sizes.dense) > 1:
        yield hops.weight_gather, where


def _sum(scenario: Scenario) -> HopBuilder:
    """The hop that ends a matmul split over TP."""
    return hops.reduce_scatter if _split_tokens(scenario) else hops.all_reduce


def _after_kv(scenario: Scenario, rider: Rider, where: Where) -> Where:
    """Dead work: once the last K/V (or state) is written, only T-1's row is still read."""
    return where if rider.to_head or scenario.token.draft_head else where._replace(dead=True)


def _split_matmul(scenario: Scenario, where: Where) -> Iterator[Stop]:
    """A column- and row-parallel pair of matmuls over TP: gather (with SP), then sum."""
    if _tp(scenario) > 1:
        if _split_tokens(scenario):
            yield hops.all_gather, where
        yield _sum(scenario), where


def _attention(scenario: Scenario, where: Where, after_kv: Where) -> Iterator[Stop]:
    if _tp(scenario) > 1 and _split_tokens(scenario):
        yield hops.all_gather, where
    yield from _meet(scenario, where, after_kv)
    if _tp(scenario) > 1:
        yield _sum(scenario), after_kv


def _meet(scenario: Scenario, where: Where, after_kv: Where) -> Iterator[Stop]:
    """What brings the layer's tokens together over CP: K/V, queries, heads or a state."""
    way = attention_way(scenario) if scenario.decodes else DecodeAttention.PASS_KV
    found = meeting_at(scenario, where.layer, way)
    if found is Meeting.STATE:
        yield hops.state_pass, where
    elif found is Meeting.HEADS:
        yield hops.heads_scatter, where
        parts = head_parts_at(scenario, where.layer)
        if scenario.mesh.cp > parts and has_kv(scenario.model, where.layer):
            yield hops.kv_exchange, where
        yield hops.heads_gather, after_kv
    elif found is Meeting.KV:
        yield hops.kv_exchange, where
    elif found is Meeting.QUERY:
        # The token's own K/V is written first; then its query reaches all that is kept elsewhere.
        yield hops.query_send, where
        yield hops.partials_return, where


def _feed_forward(scenario: Scenario, where: Where) -> Iterator[Stop]:
    if not scenario.model.is_moe(where.layer):
        if scenario.dense_tp > 1:
            yield from _split_matmul(scenario, where._replace(part=Part.FFN))
        return
    yield from _gathered(scenario, where._replace(part=Part.MOE))
    moe, shared = where._replace(part=Part.MOE), where._replace(part=Part.SHARED)
    own = scenario.model.shared_experts and scenario.plan.shared_tp is SharedTp.OWN and _tp(scenario) > 1
    around = own and scenario.plan.shared_overlap
    if own and not around:
        yield from _split_matmul(scenario, shared)
    yield from _routing_counts(scenario, moe)
    if around and _split_tokens(scenario):
        yield hops.all_gather, shared
    yield from _moe(scenario, moe)
    if around:
        yield _sum(scenario), shared


def _routing_counts(scenario: Scenario, where: Where) -> Iterator[Stop]:
    """Counts of rows per expert, where what routing exchanges is asked for."""
    if not scenario.plan.routing_metadata:
        return
    if scenario.mesh.replica_size > 1:
        yield hops.counts_reduce, where
    if scenario.mesh.dispatch_size > 1:
        yield hops.counts_gather, where


def _moe(scenario: Scenario, where: Where) -> Iterator[Stop]:
    """Hops of a MoE block, by contract; a group of one rank communicates nothing."""
    contract = scenario.plan.contract
    if contract is Contract.TP:
        yield from _split_matmul(scenario, where)
        return
    if scenario.mesh.dispatch_size > 1:
        if contract is Contract.DWDP:
            yield hops.weight_pull, where
        else:
            yield hops.dispatch, where
            if scenario.plan.routing_metadata:
                yield hops.probs_dispatch, where
            yield hops.combine, where
    if scenario.plan.sp is Sp.BEFORE_DISPATCH and _tp(scenario) > 1:
        yield hops.all_gather, where


def _lm_head(scenario: Scenario, rider: Rider) -> Iterator[Stop]:
    if not rider.to_head:
        return
    stage = scenario.head_stage
    home = scenario.mesh.moved(rider.home, Axis.PP, stage)
    where = Where(scenario.model.layers, stage, rider.position, home, Part.HEAD)
    yield from _gathered(scenario, where)
    if _tp(scenario) > 1:
        if _split_tokens(scenario):
            yield hops.head_copy, where
        yield hops.logits_gather, where


MAX_TRANSFERS = 1 << 16


def check_length(scenario: Scenario) -> None:
    """Refuse a trip that would make more transfers than memory holds.

    Raises:
        ConfigError: above an estimated ``MAX_TRANSFERS``.
    """
    mesh, model = scenario.mesh, scenario.model
    tp, cp, group = _tp(scenario), mesh.cp, mesh.dispatch_size
    sources = tp if scenario.plan.sp is Sp.OFF else 1
    picks = (model.top_k or 0) + len(scenario.always_picked)
    fan_out = 2 * picks * mesh.etp if scenario.plan.contract is Contract.EP else group
    shards = cp * scenario.plan.dcp
    layer = 6 + 6 * tp + 2 * tp * shards + (2 * sources * (fan_out + 1) if model.experts else 0)
    sizes = shard_sizes(scenario.plan, mesh)
    layer += tp * (sizes.dense - 1) + (picks * mesh.etp * (sizes.experts - 1) if model.experts else 0)
    if scenario.plan.routing_metadata and model.experts:
        layer += 2 * mesh.replica_size + sources * (group + picks * mesh.etp)
    if scenario.plan.contract is Contract.DWDP and model.experts:
        layer += sources * model.experts
    if model.layers * layer > MAX_TRANSFERS:
        raise ConfigError(
            "scenario",
            scenario.name,
            f"makes about {model.layers * layer:,} transfers for one token; a trip holds {MAX_TRANSFERS:,}",
            f"take fewer layers (here {model.layers}), or a smaller tp, cp, ep or top_k",
        )
