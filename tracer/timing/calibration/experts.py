"""The physics of routed experts on the busiest GPU of an expert-parallel group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, log2, sqrt
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.timing.calibration.fit import MICROSECOND, NANOSECOND, OpWork
from tracer.timing.calibration.formats import KernelDtype, flops_of, memory_of

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware

BALANCED, POWER_LAW = "balanced", "power_law_"
MAX_EXPONENT = 4.0


@dataclass(frozen=True, slots=True)
class BusiestGpu:
    """What the busiest GPU of the group computes: rows over its experts, experts with a row, the largest."""

    rows: float
    hit_experts: float
    largest: float


def exponent_of(distribution: str, field: str = "moe.distribution") -> float | None:
    """The exponent of ``power_law_x``; None for ``balanced``.

    >>> exponent_of("power_law_1.2"), exponent_of("balanced")
    (1.2, None)

    Raises:
        ConfigError: for another name, or an exponent outside 0 to 4.
    """
    if distribution == BALANCED:
        return None
    rule = f"must be {BALANCED} or {POWER_LAW}x with x above 0 and up to {MAX_EXPONENT:g}"
    try:
        exponent = float(distribution.removeprefix(POWER_LAW)) if distribution.startswith(POWER_LAW) else -1.0
    except (ValueError, AttributeError):
        exponent = -1.0
    if not 0 < exponent <= MAX_EXPONENT:
        raise ConfigError(field, distribution, rule, "try power_law_1.2")
    return exponent


@dataclass(frozen=True, slots=True)
class Loads:
    """Picks of every expert slot, in the order of the GPUs that hold them, as a census counts them."""

    picks: tuple[float, ...]

    def busiest(self, tokens: float, top_k: int, ep: int) -> BusiestGpu:
        """The busiest GPU where ``tokens`` spread as the counted picks did."""
        scale, held = tokens * top_k / sum(self.picks), len(self.picks) // ep
        groups = [self.picks[at * held : (at + 1) * held] for at in range(ep)]
        group = max(groups, key=sum)
        rows = max(1.0, scale * sum(group))
        hit = sum(1 - exp(-scale * picks) for picks in group)
        return BusiestGpu(rows, min(max(1.0, hit), rows), scale * max(group))


@lru_cache(maxsize=4096)
def expected_busiest_gpu(
    tokens: float, top_k: int, experts: int, ep: int, distribution: str | Loads
) -> BusiestGpu:
    """Loads of the busiest of ``ep`` GPUs for ``tokens`` of the whole group.

    A power law draws the loads of experts from a density x^-a between 1 and 0.8 of the tokens (as the
    measured tables do); here each expert takes one of the equally likely quantiles, so that the answer
    is always the same. An expert never takes a token twice.
    """
    if isinstance(distribution, Loads):
        return distribution.busiest(tokens, top_k, ep)
    held, picks, exponent = experts // ep, tokens * top_k, exponent_of(distribution)
    if exponent is None:
        hit = held if picks >= experts else min(float(held), max(1.0, picks / ep))
        rows = max(picks / ep, 1.0)
        return BusiestGpu(rows, hit, rows / hit)
    loads = _power_law(tokens, picks, experts, exponent)
    mean = sum(loads) / experts
    spread = sqrt(sum((load - mean) ** 2 for load in loads) / experts)
    # The busiest group: the one with the largest expert, or one with several large ones.
    first = loads[0] + (held - 1) * (sum(loads) - loads[0]) / max(1, experts - 1)
    sigmas = sqrt(2 * max(0.0, _log(ep))) * 0.8
    several = held * mean + sigmas * spread * sqrt(held * (1 - held / experts)) if ep > 1 else 0.0
    rows = min(max(first, several, 1.0), tokens * min(top_k, held))
    share = sum(1 - exp(-load) for load in loads[1:]) / max(1, experts - 1)
    hit = max(1.0, 1 - exp(-loads[0]) + (held - 1) * share)
    return BusiestGpu(rows, min(hit, float(held)), loads[0])


def _log(value: float) -> float:
    return log2(value) / log2(exp(1))


def _power_law(tokens: float, picks: float, experts: int, exponent: float) -> list[float]:
    """Loads of all experts, largest first; they sum to ``picks`` and none is above ``tokens``."""
    top, flat = max(0.8 * tokens, 1.0001), abs(exponent - 1) < 1e-9
    bend = 1 - exponent
    shares = [(experts - place - 0.5) / experts for place in range(experts)]
    drawn = [top**u if flat else ((top**bend - 1) * u + 1) ** (1 / bend) for u in shares]
    scale = picks / sum(drawn)
    loads = [min(tokens, load * scale) for load in drawn]
    for _ in range(20):
        missing = picks - sum(loads)
        open_sum = sum(load for load in loads if load < tokens)
        if missing < 1e-3 * picks or not open_sum:
            break
        factor = 1 + missing / open_sum
        loads = [min(tokens, load * factor) if load < tokens else load for load in loads]
    return loads


def _skew(
    load: BusiestGpu, tokens: float, top_k: int, experts: int, ep: int, distribution: str | Loads
) -> float:
    """Place among the measured distributions: 0 balanced, 1 for power_law_1.01, 2 for power_law_1.2.

    Counted loads lie where the busiest GPU's rows lie between those of the three.
    """
    if not isinstance(distribution, Loads):
        exponent = exponent_of(distribution)
        return 0.0 if exponent is None else 1.0 + max(-1.0, (exponent - 1.01) / 0.19)
    steps = [
        expected_busiest_gpu(tokens, top_k, experts, ep, name).rows
        for name in (BALANCED, "power_law_1.01", "power_law_1.2")
    ]
    for place, (low, high) in enumerate(pairwise(steps)):
        if load.rows < high:
            return place + max(0.0, (load.rows - low) / (high - low))
    return 2.0


def moe_work(
    hardware: Hardware,
    tokens: float,
    hidden: float,
    expert_hidden: float,
    experts: int,
    top_k: int,
    ep: int,
    dtype: KernelDtype,
    distribution: str | Loads,
    kernel: str,
    matrices: int = 3,
) -> OpWork:
    """Grouped GEMMs of the routed experts that the busiest GPU holds, routing and un-routing included.

    ``tokens`` are those of the whole expert-parallel group before dispatch; ``matrices`` is 3 with a gate
    and 2 without. Limits: launch; arithmetic; weights of the experts hit; rows between the GEMMs; rows of
    all tokens; picks; experts hit; experts; the largest expert's rows.
    """
    memory, flops = memory_of(hardware, "experts"), flops_of(hardware, dtype, "experts")
    load = expected_busiest_gpu(tokens, top_k, experts, ep, distribution)
    weights = matrices * hidden * expert_hidden
    arithmetic = 2.0 * load.rows * weights / flops
    read = load.hit_experts * weights * dtype.weight_bytes / memory
    limits = (
        MICROSECOND,
        arithmetic,
        read,
        load.rows * (4 * hidden + 4 * expert_hidden) / memory,
        2.0 * tokens * hidden / memory,
        tokens * top_k * NANOSECOND,
        load.hit_experts * NANOSECOND,
        experts * NANOSECOND,
        load.largest * hidden * 1e-12,
    )
    place = {
        "t": log2(tokens),
        "x": log2(load.rows / load.hit_experts),
        "hit": log2(load.hit_experts),
        "w": log2(weights),
        "ep": log2(ep),
        "i": log2(expert_hidden),
        "h": log2(hidden),
        "e": log2(experts),
        "skew": _skew(load, tokens, top_k, experts, ep, distribution),
    }
    return OpWork(f"{dtype}/{kernel}", limits, place, max(arithmetic, read))
