"""Tokens against weights as tables: crossovers, contention at a source, and serving."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.display import exact_sum, left, right, text_table
from tracer.mesh.cluster import Link
from tracer.proof.published.dwdp import copy_rate, sglang_prefill, source_group
from tracer.proof.published.serving import MODES, ServingPoint, predicted, serving_points, tps_gpu_gain
from tracer.timing.batch import TimedBatch
from tracer.timing.weights.buffers import run_pass
from tracer.timing.weights.contention import SLICE_BYTES, Stretch, stretch
from tracer.timing.weights.crossover import crossover_table
from tracer.timing.weights.group import MoeGroup
from tracer.timing.weights.layer import contest

BATCHES = (1, 2, 4, 8)
_ATTENTION = ("attention projections", "attention core", "attention output")
FABRICS = {"NVLink 5": Link(900e9), "NVLink 4": Link(450e9), "400 Gb/s IB": Link(50e9)}


def weights_text() -> str:
    """Every table, for the published model and GPU."""
    group = source_group()
    return "\n".join([*crossover_lines(group), "", *contention_lines(group), "", *serving_lines()])


def crossover_lines(group: MoeGroup) -> Iterator[str]:
    """Shortest prompt at which weights may move, by batch and fabric."""
    yield f"shortest prompt at which moving weights is no slower ({group.spec.name}, group of {group.ranks})"
    table = crossover_table(group, BATCHES, FABRICS.values())
    rows = []
    for row, count in enumerate(BATCHES):
        cells = table[row * len(FABRICS) : (row + 1) * len(FABRICS)]
        rows.append((count, *(f"{each.prompt:,}" if each.prompt else "never" for each in cells)))
    columns = (left("prompts a rank", 16), *(right(name, 14, gap=0) for name in FABRICS))
    yield from text_table(columns, rows)
    yield "  a group on IB spans islands: shown to see the cost, not a supported setup"


def stretches(group: MoeGroup, window_seconds: float, trials: int = 100) -> tuple[Stretch, Stretch]:
    """Pulls stretched by readers that meet at a source: whole, and in 1 MB slices; ranks in random phase."""
    source = group.remote_bytes / (group.ranks - 1)
    rate = group.fabric.bytes_per_s * group.fabric_share
    whole = stretch(group.ranks, source, rate, spread_seconds=window_seconds, trials=trials)
    few = max(2, trials // 20)  # a pull of a gigabyte and a half is 1,500 slices
    sliced = stretch(
        group.ranks, source, rate, spread_seconds=window_seconds, trials=few, slice_bytes=SLICE_BYTES
    )
    return whole, sliced


def contention_lines(group: MoeGroup) -> Iterator[str]:
    """A short window (16,384 tokens per pass, where the source gained 8 %), copies at the measured rate."""
    found = contest(group, TimedBatch.prompts(4096, 4))
    copy = group.remote_bytes / copy_rate()
    whole, sliced = stretches(group, max(found.dwdp_compute, copy))
    attention = exact_sum(found.dwdp.of(name) for name in _ATTENTION)
    rest = found.dwdp_compute - attention
    passes = [
        run_pass(group.spec.moe_layers, attention, rest, copy * each.mean).seconds for each in (whole, sliced)
    ]
    yield "readers that meet at one source (4 prompts of 4,096 a rank, copies at the measured rate)"
    for name, each, seconds in zip(("whole pulls", "1 MB slices"), (whole, sliced), passes, strict=True):
        stretched = f"copy {each.mean:.3f} ± {each.error:.3f} times as long"
        yield from text_table(
            (left(width=12), left(gap=1)),
            [(name, f"{stretched}, pass {seconds * 1e3:.0f} ms")],
            headings=False,
        )
    yield f"  slices gain {passes[0] / passes[1] - 1:.1%}; published for a nearby setting: 8 %"


def serving_lines() -> Iterator[str]:
    """Throughput and first token as published, and in brackets as predicted; SGLang's as published."""
    yield "serving as published, and in brackets as predicted with context passes as long as measured"
    columns = (
        left("tokens/s/user", 15),
        right("TPS/GPU", 15, gap=0),
        right("TTFT, tokens", 22, gap=0),
        right("TTFT, weights", 22, gap=0),
    )
    yield from text_table(columns, map(_serving_row, serving_points()))
    found = sglang_prefill()
    yield f"prefill alone, as published: {found['setting']}"
    prompts = (left("tokens per pass", 15), *(right(f"{prompt:,}", 9, gap=0) for prompt in found["prompts"]))
    limits = [
        (f"{limit:,}", *("-" if value is None else f"{value:.2f}x" for value in row))
        for limit, row in zip(found["max_tokens"], found["speedup"], strict=True)
    ]
    yield from text_table(prompts, limits)


def _serving_row(point: ServingPoint) -> tuple[object, ...]:
    """Published figures of one point, the predicted ones in brackets."""
    gain = f"{point.tps_gpu:.2f}x ({tps_gpu_gain(point, 'measured'):.2f}x)"
    stated = zip((point.dep_ttft_ms, point.dwdp_ttft_ms), MODES, strict=True)
    shown = (
        f"{first:,.0f} ({predicted(point, mode, 'measured').ttft_seconds * 1e3:,.0f}) ms"
        for first, mode in stated
    )
    return point.tokens_per_s_user, gain, *shown
