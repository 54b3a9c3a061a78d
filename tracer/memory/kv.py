"""Where K/V is kept: which CP rank, which TP ranks and which heads, for any position of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.model.layers import CompressedAttention, HeadAttention, LatentAttention

if TYPE_CHECKING:
    from tracer.model.layers import Attention
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario


def kv_cp(scenario: Scenario, position: int) -> int:
    """CP coordinate that keeps a position's K/V: its home's, for prompt and new tokens alike."""
    if position < scenario.token.prompt:
        return scenario.landing.place_of(position)[0]
    return scenario.decode_landing.cp_of(position)


def kv_dcp(scenario: Scenario, position: int) -> int:
    """Which rank of each DCP group keeps a position's K/V.

    ``(position // interleave // cp) mod dcp``: with cp = 1 vLLM's ``(position // interleave) mod dcp``
    (docs/serving/context_parallel_deployment.md; ``cp_kv_cache_interleave_size`` is 1 unless set).
    Dividing by cp first keeps the round over CP ranks and the round over DCP ranks from coinciding.
    """
    plan = scenario.plan
    return position // plan.dcp_interleave // scenario.mesh.cp % plan.dcp


def kv_tps(scenario: Scenario, position: int) -> list[int]:
    """TP coordinates that keep a position's K/V, each its own heads (or its own replica of them)."""
    turn, dcp = kv_dcp(scenario, position), scenario.plan.dcp
    return list(range(turn, scenario.mesh.tp, dcp))


def kv_cps(scenario: Scenario, position: int) -> list[int]:
    """CP coordinates that keep a position's K/V: its home's, or all that its home shares heads with."""
    return kv_cps_of(scenario, kv_cp(scenario, position))


def kv_cps_of(scenario: Scenario, cp: int, parts: int | None = None) -> list[int]:
    """CP coordinates that keep the K/V of tokens at home on one: itself, and those it shares heads with.

    ``parts`` are the ranks that share heads (None: as the plan says).
    """
    parts = scenario.plan.head_parts(scenario.mesh.cp) if parts is None else parts
    first = cp // parts * parts
    return list(range(first, first + parts))


def heads_peers(scenario: Scenario, rank: int, parts: int | None = None) -> list[int]:
    """The other CP ranks with which a rank shares the heads of its tokens, by cp; none where K/V travels.

    ``parts`` as in :func:`kv_cps_of`.
    """
    mesh = scenario.mesh
    cp = mesh.dense.coordinate(rank, Axis.CP)
    return [mesh.moved(rank, Axis.CP, peer) for peer in kv_cps_of(scenario, cp, parts) if peer != cp]


def stored_heads(scenario: Scenario, rank: int, attention: Attention | None = None) -> range:
    """KV heads that a rank keeps: its TP rank's, or the part of them that it computes (``head_parts``).

    ``attention`` is that of the layer (None: the model's main kind).

    Fewer KV heads than parts are copied evenly. With MLA the range is empty, for the whole latent, unless
    heads are cut over CP: then it names the heads after the up-projection.
    """
    grid, parts = scenario.mesh.dense, scenario.plan.head_parts(scenario.mesh.cp)
    tp = grid.coordinate(rank, Axis.TP)
    if parts == 1:
        return kv_heads_of(scenario, tp, attention)
    own = kv_heads_of(scenario, tp, attention)
    if _is_latent(scenario.model, attention):
        heads = attention.heads if attention is not None else scenario.model.need("heads", _WHOSE)
        share = heads // scenario.mesh.tp
        own = range(tp * share, (tp + 1) * share)
    return cut_heads(own, parts, grid.coordinate(rank, Axis.CP) % parts)


def cut_heads(heads: range, parts: int, index: int) -> range:
    """Part ``index`` of some heads: an equal share, or one of them that several parts copy.

    >>> cut_heads(range(4, 8), 2, 1), cut_heads(range(4, 6), 4, 3)
    (range(6, 8), range(5, 6))
    """
    if len(heads) < parts:
        first = heads.start + index * len(heads) // parts
        return range(first, first + 1)
    share = len(heads) // parts
    return range(heads.start + index * share, heads.start + (index + 1) * share)


_WHOSE = "say who holds which K/V"


def _is_latent(model: ModelSpec, attention: Attention | None) -> bool:
    """Whether a layer caches one vector for all heads."""
    if attention is None:
        return model.mla
    return isinstance(attention, LatentAttention | CompressedAttention)


def kv_heads_of(scenario: Scenario, tp: int, attention: Attention | None = None) -> range:
    """KV heads of a TP rank: an equal share, or one that ``tp / kv_heads`` ranks replicate.

    With MLA the range is empty: every TP rank has the whole latent.
    """
    model, size = scenario.model, scenario.mesh.tp
    if _is_latent(model, attention):
        return range(0)
    own = attention.kv_heads if isinstance(attention, HeadAttention) else None
    heads = own or model.need("kv_heads", _WHOSE)
    if heads < size:
        return range(tp * heads // size, tp * heads // size + 1)
    share = heads // size
    return range(tp * share, (tp + 1) * share)


def shard_peers(scenario: Scenario, rank: int) -> list[int]:
    """The other ranks that keep the rest of the tokens of this rank's KV heads: over cp, and over dcp."""
    grid, dcp = scenario.mesh.dense, scenario.plan.dcp
    first = grid.coordinate(rank, Axis.TP) // dcp * dcp
    sharing = [scenario.mesh.moved(rank, Axis.TP, tp) for tp in range(first, first + dcp)]
    found = {peer for same in sharing for peer in grid.group(same, Axis.CP)}
    return sorted(found - {rank})


def positions_kept(scenario: Scenario, rank: int, context: int | None = None) -> int:
    """How many of a request's first ``context`` positions (None: its prompt) a rank of its replica keeps.

    None where its stage has no layers.
    """
    if not scenario.stage_layers[scenario.stage_of(rank)]:
        return 0
    context = scenario.token.prompt if context is None else context
    peers = heads_peers(scenario, rank)
    return sum(_positions_of_share(scenario, sharing, context) for sharing in (rank, *peers))


def _positions_of_share(scenario: Scenario, rank: int, context: int) -> int:
    """Those of them whose home is the rank's CP rank, and whose turn in its DCP group is the rank's."""
    grid, dcp = scenario.mesh.dense, scenario.plan.dcp
    cp, turn = grid.coordinate(rank, Axis.CP), grid.coordinate(rank, Axis.TP) % dcp
    step = scenario.plan.dcp_interleave * grid.size_of(Axis.CP)
    in_prompt = min(context, scenario.token.prompt)
    kept = sum(
        _in_turn(run.start, min(run.stop, in_prompt), step, dcp, turn)
        for run in scenario.landing.positions_of_share(cp)
    )
    landing = scenario.decode_landing
    new = range(landing.first_position_on(cp), context, grid.size_of(Axis.CP))
    return kept + (len(new) if dcp == 1 else sum(kv_dcp(scenario, position) == turn for position in new))


def _in_turn(start: int, stop: int, step: int, turns: int, turn: int) -> int:
    """Positions of ``start .. stop-1`` with ``position // step % turns == turn``."""

    def below(end: int) -> int:
        """Positions below ``end`` that are kept."""
        whole, rest = divmod(end, step * turns)
        return whole * step + min(max(rest - turn * step, 0), step)

    return below(stop) - below(start) if start < stop else 0
