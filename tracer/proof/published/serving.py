"""Throughput a GPU and time to first token of DWDP in serving, as published and by the engine's model.

The generation stage is not predicted: its speed a user is the published one, for what its speculative
decoding accepts is nowhere stated. The context stage is ours: passes from the roofline and the contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tracer.proof.published.comparison import PublishedComparison, Row
from tracer.proof.published.dwdp import breakdown_batch, context_iteration
from tracer.proof.published.measurements import published
from tracer.timing.batch import TimedBatch
from tracer.timing.weights.serving import ContextStage, Served, serve

MODES = ("DEP", "DWDP")
STATED = "stated"
PASSES = {
    "peak": ("passes at peak", "context passes at peak rates"),
    "measured": (
        "passes as measured",
        "context passes as much longer than at peak as the source's own context-only pass",
    ),
}
_GIVEN = ("TTFT as published", "the first token as published")
_UNSAID = (
    "not stated, so assumed: which cases of its matrix the source compares (here the baseline's first, and "
    "DWDP with one group of 4 context GPUs fewer), what MTP accepts and where in its range a point lies "
    "(here the middle of the range of tokens/s/user, for DWDP times its published speed-up), how arrivals "
    "scatter and what waits for a generation slot (here nothing)"
)


@dataclass(frozen=True, slots=True)
class ServingPoint:
    """One published serving point: throughput and first token together, as the source measured them.

    ``user_speedup`` is DWDP's tokens/s of a user over the baseline's, ``batch`` requests of each of
    ``generation_gpus``; ``*_context_gpus`` are the context GPUs of the cases that are compared.
    """

    tokens_per_s_user: str
    tps_gpu: float
    dep_ttft_ms: float
    dwdp_ttft_ms: float
    user_speedup: float
    generation_gpus: int
    batch: int
    dep_context_gpus: int
    dwdp_context_gpus: int

    @property
    def requests(self) -> int:
        """Requests in flight: the source keeps every generation slot's worth."""
        return self.batch * self.generation_gpus

    def user_rate(self, mode: str) -> float:
        """Tokens a second of one user: the middle of the range, DWDP's with its speed-up."""
        low, high = map(float, self.tokens_per_s_user.split("-"))
        return (low + high) / 2 * (self.user_speedup if mode == "DWDP" else 1.0)

    def context_gpus(self, mode: str) -> int:
        """Context GPUs of a mode."""
        return self.dep_context_gpus if mode == "DEP" else self.dwdp_context_gpus


def serving_points() -> tuple[ServingPoint, ...]:
    """TPS/GPU gain and median TTFT at nearby per-user speeds."""
    return tuple(ServingPoint(**row) for row in published("dwdp")["serving"]["rows"])


@cache
def context_passes(mode: str, passes: str) -> tuple[float, ...]:
    """Seconds of a context pass of 1, 2, … prompts per rank: at peak, or as much longer as was measured.

    The measured ratio is the source's own context-only iteration over ours for the same pass.
    """
    most = range(1, published("dwdp")["serving"]["prompts_a_pass"] + 1)
    ours = [
        context_iteration(TimedBatch.prompts(_prompt_length(), count))[mode]["iteration"] for count in most
    ]
    return tuple(seconds * (_measured_ratio(mode) if passes == "measured" else 1.0) for seconds in ours)


def _prompt_length() -> int:
    """Tokens of a prompt on average: lengths are even from the input ratio's part of the longest."""
    serving = published("dwdp")["serving"]
    return int(serving["prompt"] * (1 + serving["input_ratio"]) / 2 + 0.5)


def _measured_ratio(mode: str) -> float:
    rows = published("dwdp")["breakdown"]["rows"]
    stated = next(row[mode.lower()] for row in rows if row["category"] == "iteration")
    return float(stated * 1e-3 / context_iteration(breakdown_batch())[mode]["iteration"])


def predicted(point: ServingPoint, mode: str, passes: str) -> Served:
    """The closed loop of one point."""
    stage = ContextStage(point.context_gpus(mode), context_passes(mode, passes))
    return serve(stage, point.requests, generation_seconds(point, mode))


def generation_seconds(point: ServingPoint, mode: str) -> float:
    """How long a request generates, at its published speed."""
    return float(published("dwdp")["serving"]["output"] / point.user_rate(mode))


def tps_gpu_gain(point: ServingPoint, passes: str) -> float:
    """DWDP's output tokens per second and GPU over the baseline's, context and generation GPUs counted.

    With ``passes`` ``stated`` the first token is the published one, and Little's law alone gives the rate.
    """
    rates = [
        _requests_per_s(point, mode, passes) / (point.context_gpus(mode) + point.generation_gpus)
        for mode in MODES
    ]
    return rates[1] / rates[0]


def _requests_per_s(point: ServingPoint, mode: str, passes: str) -> float:
    if passes != STATED:
        return predicted(point, mode, passes).requests_per_s
    ttft = (point.dep_ttft_ms if mode == "DEP" else point.dwdp_ttft_ms) * 1e-3
    return point.requests / (ttft + generation_seconds(point, mode))


def compare_serving(what: str, passes: str = "peak") -> PublishedComparison:
    """``what`` is ``tps_gpu`` (the gain) or ``ttft`` (both columns); ``passes`` one of :data:`PASSES`.

    The gain may also be had with ``passes`` ``stated``: from the published first token.
    """
    data = published("dwdp")
    rows = [row for point in serving_points() for row in _rows(point, what, passes)]
    title = "TPS/GPU over DEP" if what == "tps_gpu" else "TTFT"
    short, words = PASSES.get(passes, _GIVEN)
    queue = "" if passes == STATED else "; a queue only where the context stage binds; mean for median"
    assumptions = (
        f"closed loop of batch x generation GPUs requests, Little's law; {words}{queue}; prompts of "
        f"{_prompt_length():,} tokens, output of 1,024; K/V transfer left out; {_UNSAID}"
    )
    source = f"{data['source']}; {data['serving']['matrix']}"
    name = f"DWDP serving, {title} ({short})"
    return PublishedComparison(name, source, data["serving"]["setting"], assumptions, tuple(rows))


def _rows(point: ServingPoint, what: str, passes: str) -> list[Row]:
    name, generation = point.tokens_per_s_user, point.generation_gpus
    if what == "tps_gpu":
        counts = f"{point.dep_context_gpus}+{generation} to {point.dwdp_context_gpus}+{generation} GPUs"
        return [Row(f"{name} tokens/s/user", point.tps_gpu, tps_gpu_gain(point, passes), "ratio", counts)]
    rows = []
    for mode, stated in (("DEP", point.dep_ttft_ms), ("DWDP", point.dwdp_ttft_ms)):
        found = predicted(point, mode, passes)
        note = "context binds: queue" if found.context_bound else f"{found.prompts:.1f} prompts a pass"
        rows.append(Row(f"{name} {mode}", stated, found.ttft_seconds * 1e3, "ms", note))
    return rows
