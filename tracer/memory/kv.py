"""Where K/V is kept: which CP rank, which TP ranks and which heads, for any position of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def kv_heads_of(scenario: Scenario, tp: int) -> range:
    """KV heads of a TP rank: an equal share, or one that ``tp / kv_heads`` ranks replicate.

    With MLA the range is empty: every TP rank has the whole latent.
    """
    model, size = scenario.model, scenario.mesh.tp
    if model.mla:
        return range(0)
    heads = model.need("kv_heads", "say who holds which K/V")
    if heads < size:
        return range(tp * heads // size, tp * heads // size + 1)
    share = heads // size
    return range(tp * share, (tp + 1) * share)


def shard_peers(scenario: Scenario, rank: int) -> list[int]:
    """The other ranks that keep the rest of the tokens of this rank's KV heads: over cp, and over dcp."""
    grid, dcp = scenario.mesh.dense, scenario.plan.dcp
    first = grid.coordinate(rank, "tp") // dcp * dcp
    sharing = [scenario.mesh.moved(rank, "tp", tp) for tp in range(first, first + dcp)]
    found = {peer for same in sharing for peer in grid.group(same, "cp")}
    return sorted(found - {rank})


def positions_kept(scenario: Scenario, rank: int, context: int | None = None) -> int:
    """How many of a request's first ``context`` positions (None: its prompt) a rank of its replica keeps."""
    context = scenario.token.prompt if context is None else context
    grid, dcp = scenario.mesh.dense, scenario.plan.dcp
    cp, turn = grid.coordinate(rank, "cp"), grid.coordinate(rank, "tp") % dcp
    step = scenario.plan.dcp_interleave * grid.size_of("cp")
    in_prompt = min(context, scenario.token.prompt)
    kept = sum(
        _in_turn(run.start, min(run.stop, in_prompt), step, dcp, turn)
        for run in scenario.landing.positions_of_share(cp)
    )
    landing = scenario.decode_landing
    new = range(landing.first_position_on(cp), context, grid.size_of("cp"))
    return kept + (len(new) if dcp == 1 else sum(kv_dcp(scenario, position) == turn for position in new))


def _in_turn(start: int, stop: int, step: int, turns: int, turn: int) -> int:
    """Positions of ``start .. stop-1`` with ``position // step % turns == turn``."""

    def below(end: int) -> int:
        """Positions below ``end`` that are kept."""
        whole, rest = divmod(end, step * turns)
        return whole * step + min(max(rest - turn * step, 0), step)

    return below(stop) - below(start) if start < stop else 0
