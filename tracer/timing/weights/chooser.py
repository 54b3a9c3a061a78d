"""Picks the MoE contract for a workload: predicts the copy, guards the first token, falls back to tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.display import format_seconds
from tracer.errors import finite_number
from tracer.scenario.plan import Contract
from tracer.timing.operators import dense_layer
from tracer.timing.roofline import layer_time
from tracer.timing.weights.checklist import Check, dwdp_checklist
from tracer.timing.weights.layer import LayerContest, contest
from tracer.timing.weights.rendezvous import waiting_share

if TYPE_CHECKING:
    from tracer.timing.batch import TimedBatch
    from tracer.timing.weights.group import MoeGroup


@dataclass(frozen=True, slots=True)
class Workload:
    """What a group serves: the requests of one pass of a rank, and how they arrive.

    ``length_cv`` is the coefficient of variation of the ranks' tokens; ``passes_per_s`` is how many such
    passes arrive a rank and second; ``ttft_limit_s`` is the longest wait for a first token that is
    allowed, None for no limit.

    Raises:
        ConfigError: for negative rates or a limit that is not above 0.
    """

    batch: TimedBatch
    length_cv: float = 0.0
    passes_per_s: float = 0.0
    ttft_limit_s: float | None = None

    def __post_init__(self) -> None:
        finite_number("workload.length_cv", self.length_cv, zero=True)
        finite_number("workload.passes_per_s", self.passes_per_s, zero=True)
        if self.ttft_limit_s is not None:
            finite_number("workload.ttft_limit_s", self.ttft_limit_s, unit="seconds")


@dataclass(frozen=True, slots=True)
class Forecast:
    """One contract's pass: seconds of work, and until the first token with queueing (inf: overload)."""

    pass_seconds: float
    ttft_seconds: float

    def __str__(self) -> str:
        return f"pass {format_seconds(self.pass_seconds)}, first token {format_seconds(self.ttft_seconds)}"


@dataclass(frozen=True, slots=True)
class Choice:
    """The contract to run, why, and the figures it rests on.

    ``tokens`` and ``weights`` forecast both contracts; ``copy_seconds`` is the predicted copy per layer and
    ``window_seconds`` the compute that hides it.
    """

    contract: str
    reason: str
    tokens: Forecast
    weights: Forecast
    copy_seconds: float
    window_seconds: float
    checks: tuple[Check, ...]

    def __str__(self) -> str:
        lines = [
            f"contract {self.contract}: {self.reason}",
            f"  copy {self.copy_seconds * 1e3:.3g} ms a layer, window {self.window_seconds * 1e3:.3g} ms",
            f"  tokens move : {self.tokens}",
            f"  weights move: {self.weights}",
        ]
        return "\n".join([*lines, *(f"  {check}" for check in self.checks)])


def choose_contract(
    group: MoeGroup,
    workload: Workload,
    *,
    tp: int = 1,
    nvlink_domains: int = 1,
    exchange_seconds: float | None = None,
) -> Choice:
    """``dwdp`` where every check holds, it is faster and keeps the TTFT limit; else tokens move.

    Tokens move as the group's ``copies`` say: ``ag_rs`` for ``all``, else ``ep``. Waiting at rendezvous is
    that of ``length_cv`` and charged to tokens; ``exchange_seconds`` replaces the group's own
    dispatch and combine of a layer (relays, several NVLink domains). Queueing is M/D/1 a rank: ρ/(2(1-ρ))
    passes.

    Raises:
        ConfigError: for a size the model lacks, or a rate no source states.
    """
    found = contest(group, workload.batch)
    if exchange_seconds is not None:
        found = replace(
            found,
            exchange_seconds=finite_number("exchange_seconds", exchange_seconds, zero=True, unit="seconds"),
        )
    checks = dwdp_checklist(group, workload.batch, tp=tp, nvlink_domains=nvlink_domains)
    rest = _dense_seconds(group, workload.batch)
    waiting = waiting_share(group.ranks, workload.length_cv).share
    moe = group.spec.moe_layers
    tokens = _forecast((rest + moe * found.dep_seconds) / (1 - waiting), workload)
    weights = _forecast(rest + moe * found.dwdp_seconds, workload)
    fallback = str(Contract.AG_RS if group.copies == "all" else Contract.EP)
    reason = _against(checks, tokens, weights, workload)
    contract = fallback if reason else str(Contract.DWDP)
    return Choice(
        contract,
        reason or _in_favour(found, tokens, weights, workload.ttft_limit_s),
        tokens,
        weights,
        found.prefetch_seconds,
        found.dwdp_compute,
        checks,
    )


def _dense_seconds(group: MoeGroup, batch: TimedBatch) -> float:
    """Seconds of the dense layers, the same under both contracts."""
    count = group.spec.layers - group.spec.moe_layers
    if count == 0:
        return 0.0
    return count * layer_time(dense_layer(group.spec, batch), group.hardware, rows=False).seconds


def _forecast(seconds: float, workload: Workload) -> Forecast:
    load = workload.passes_per_s * seconds
    if load >= 1:
        return Forecast(seconds, float("inf"))
    return Forecast(seconds, seconds * (1 + load / (2 * (1 - load))))


def _against(
    checks: tuple[Check, ...], tokens: Forecast, weights: Forecast, workload: Workload
) -> str | None:
    """Why weights must not move; None when nothing speaks against it."""
    failed = next((check for check in checks if not check.holds), None)
    if failed is not None:
        return f"{failed.name} fails ({failed.why})"
    limit = workload.ttft_limit_s
    if limit is not None and weights.ttft_seconds > limit and tokens.ttft_seconds <= weights.ttft_seconds:
        return f"the first token would take {weights.ttft_seconds:.3g} s, over the limit of {limit:g} s"
    if weights.pass_seconds >= tokens.pass_seconds:
        return f"a pass takes {weights.pass_seconds:.3g} s, with tokens {tokens.pass_seconds:.3g} s"
    return None


def _in_favour(found: LayerContest, tokens: Forecast, weights: Forecast, limit: float | None) -> str:
    gain = tokens.pass_seconds / weights.pass_seconds
    missed = limit is not None and weights.ttft_seconds > limit
    late = f"; neither contract keeps the limit of {limit:g} s" if missed else ""
    return f"compute is {found.window_ratio:.2f} times the copy, passes are {gain:.2f} times as fast{late}"
