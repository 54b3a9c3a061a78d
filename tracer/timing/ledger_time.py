"""Figures on time that the source documents state, each computed anew: verdict, our value, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tracer.cluster import Link
from tracer.model_config.presets import model_preset
from tracer.timing.dwdp_crossover import crossover_prompt
from tracer.timing.links import transfer_seconds
from tracer.timing.measurements import published
from tracer.timing.operators import expert_load
from tracer.timing.overlap import MoeTimes, overlap_two
from tracer.timing.published_dwdp import (
    LENGTHS,
    compare_synchronization,
    copy_rate,
    source_contests,
    source_group,
)
from tracer.timing.roofline import weight_intensity


class Verdict(StrEnum):
    """How a stated figure fares: reproduces, loose, wrong, or published (a measurement of others)."""

    REPRODUCES = "R"
    LOOSE = "loose"
    WRONG = "W"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class TimeFigure:
    """One stated figure: the document, what it says, the verdict, what the engine computes, and why."""

    document: str
    stated: str
    verdict: Verdict
    computed: str
    why: str


def time_figures() -> tuple[TimeFigure, ...]:
    """Every line on time, in the order of the documents."""
    return tuple(build() for build in _LINES)


def _intensity() -> TimeFigure:
    bf16, fp8 = weight_intensity(512, 2), weight_intensity(512, 1)
    return TimeFigure(
        "MoE inference internals", "512 tokens an expert: 2·M = 1,024 FLOP/B", Verdict.LOOSE,
        f"{bf16:,.0f} FLOP/B in BF16, {fp8:,.0f} in FP8",
        "2·M FLOPs a weight; a byte is a weight in FP8 and half of one in BF16",
    )  # fmt: skip


def _experts_hit() -> TimeFigure:
    hit = expert_load(model_preset("deepseek-v3"), 8).hit
    return TimeFigure(
        "MoE inference internals", "8 requests: 0.25 tokens an expert, selected ones get 1 or 2",
        Verdict.REPRODUCES, f"{hit:.1f} of 256 experts hit", "256·(1 - (1 - 8/256)^8), uniform picks",
    )  # fmt: skip


def _overlap_gain() -> TimeFigure:
    equal = overlap_two(MoeTimes(4, 4, 1, 3, 4), layers=58)
    half = overlap_two(MoeTimes(4, 2, 1, 3, 2), layers=58)
    return TimeFigure(
        "MoE inference internals", "overlap gains 40 to 70 %", Verdict.PUBLISHED,
        f"{half.gain:.0%} when communication is half of compute, {equal.gain:.0%} when they are equal",
        "a claim without its ratio; the bound is all work over the fuller stream",
    )  # fmt: skip


def _all_to_all(link: Link, name: str, stated: str) -> TimeFigure:
    sent = 7 * 128 * 4096 * 2 * 64
    seconds = transfer_seconds(link, sent)
    return TimeFigure(
        "Expert parallelism simulation", f"64 all-to-alls over {name}: {stated}", Verdict.WRONG,
        f"{seconds * 1e3:.3g} ms",
        f"each GPU sends {sent / 1e6:.0f} MB over its own link; all GPUs' bytes were divided by one link",
    )  # fmt: skip


def _nvlink_time() -> TimeFigure:
    return _all_to_all(Link(450e9), "NVLink at 450 GB/s", "9.5 ms")


def _ib_time() -> TimeFigure:
    return _all_to_all(Link(50e9), "IB at 50 GB/s", "86 ms")


def _window() -> TimeFigure:
    ours = [each.window_ratio for each in source_contests(plain=True)]
    rows = published("dwdp")["roofline"]["rows"]
    worst = max(abs(o / row["compute_over_prefetch"] - 1) for o, row in zip(ours, rows, strict=True))
    return TimeFigure(
        "A collective costs more than its bytes", "compute / prefetch 0.19, 0.62, 1.52, 4.77 at 1K to 32K",
        Verdict.REPRODUCES, ", ".join(f"{value:.2f}" for value in ours),
        f"peak rates, BF16 attention, NVFP4 experts, nothing fitted; worst error {worst:.0%}",
    )  # fmt: skip


def _speedup() -> TimeFigure:
    ours = [each.speedup for each in source_contests()]
    crossing = crossover_prompt(source_group())
    return TimeFigure(
        "A collective costs more than its bytes", "DEP / DWDP 0.10, 0.73, 1.27, 1.17 at 1K to 32K",
        Verdict.REPRODUCES, ", ".join(f"{value:.2f}" for value in ours),
        f"every pick sent; crosses at {crossing:,} tokens, and the gain falls again past {LENGTHS[2]:,}",
    )  # fmt: skip


def _breakdown_unit() -> TimeFigure:
    rate = copy_rate()
    return TimeFigure(
        "A collective costs more than its bytes", "copy 429 µs, iteration 1,319.85 µs", Verdict.WRONG,
        f"ms: {rate / 1e9:.0f} GB/s of 900", f"in µs the copy would run at {rate / 1e9:.0f} TB/s",
    )  # fmt: skip


def _gains() -> TimeFigure:
    rows = {row["category"]: row for row in published("dwdp")["breakdown"]["rows"]}
    whole = rows["iteration"]
    gross = (rows["communication"]["dep"] + rows["synchronization"]["dep"]) / whole["dep"]
    real = 1 - whole["dwdp"] / whole["dep"]
    return TimeFigure(
        "A collective costs more than its bytes", "21.86 % gross, 14.26 % realised", Verdict.REPRODUCES,
        f"{gross:.2%} and {real:.2%}",
        "communication and synchronization over the iteration; the rest ran slower",
    )  # fmt: skip


def _synchronization() -> TimeFigure:
    compared = compare_synchronization()
    return TimeFigure(
        "A collective costs more than its bytes", "synchronization 12 % (blog: 10 %) at a CV of 20 %",
        Verdict.PUBLISHED, f"{compared.rows[0].predicted:.1f} % when all of the time varies with length",
        compared.assumptions,
    )  # fmt: skip


_LINES: tuple[Callable[[], TimeFigure], ...] = (
    _intensity, _experts_hit, _overlap_gain, _nvlink_time, _ib_time, _window, _speedup, _breakdown_unit,
    _gains, _synchronization,
)  # fmt: skip
