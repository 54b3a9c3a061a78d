"""What sizes and times of a run say: imbalance of experts, rates beside the estimate, overlap, steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.reports.blocks import Block, chart, heading, table
from layouts.charts.imbalance import imbalance_figure
from tracer.display import format_bytes, format_seconds
from tracer.runs.expected import expected_time

if TYPE_CHECKING:
    from tracer.runs.report import RunReport

MAX_EXCHANGES, MAX_RANKS, MAX_ROWS = 64, 256, 60


def size_blocks(report: RunReport) -> list[Block]:
    """Blocks for what the recording tells; none for what it does not."""
    return [*_imbalance(report), *_rates(report), *_steps(report), *_layers(report)]


def _imbalance(report: RunReport) -> list[Block]:
    found = report.imbalances[:MAX_EXCHANGES]
    if not found:
        return []
    ranks = sorted({rank for each in found for rank in each.rows})[:MAX_RANKS]
    worst = max(found, key=lambda each: each.worst)
    names = [f"{place}: number {each.sequence:,} of ranks {each.group.members[0]}–{each.group.members[-1]}"
             for place, each in enumerate(found, 1)]  # fmt: skip
    shares = [
        [
            each.rows[rank] * len(each.rows) / max(1, sum(each.rows.values())) if rank in each.rows else None
            for rank in ranks
        ]
        for each in found
    ]
    rows = [
        (name, f"{min(each.rows.values()):,}", f"{max(each.rows.values()):,}", f"{each.worst:.3f}")
        for name, each in zip(names, found, strict=True)
    ]
    title = f"Rows received by rank: at most {worst.worst:.3f} times the mean"
    return [
        heading(title),
        chart("Rows received, exchange by rank", imbalance_figure(names, ranks, shares),
              height=min(640, 120 + 24 * len(found))),
        table("Exchanges of rows", ("exchange", "fewest", "most", "most over mean"), rows),
    ]  # fmt: skip


def _rates(report: RunReport) -> list[Block]:
    rows = []
    for rate in report.bandwidths[:MAX_ROWS]:
        expected = expected_time(rate, report.scenario)
        rows.append(
            (
                f"{rate.kind} of {rate.family or 'a group'}", f"{rate.ranks}", format_bytes(rate.bytes),
                f"{rate.count:,}", format_seconds(rate.median_ns * 1e-9),
                f"{rate.bytes_per_s / 1e9:.3g} GB/s",
                "—" if expected is None else format_seconds(expected.seconds),
                "" if expected is None else expected.basis,
            )
        )  # fmt: skip
    if not rows:
        return []
    heads = ("collective", "ranks", "bytes", "count", "median", "bus bandwidth", "time says", "by")
    return [heading("Bandwidth per collective"), table("Rates of collectives", heads, rows)]


def _steps(report: RunReport) -> list[Block]:
    rows = [
        (
            "whole trace" if step.number is None else f"step {step.number}", f"{step.rank}",
            format_seconds(step.length_ns * 1e-9), format_seconds(step.compute_ns * 1e-9),
            format_seconds(step.communication_ns * 1e-9), format_seconds(step.exposed_ns * 1e-9),
            f"{step.overlap:.0%}",
        )
        for step in sorted(report.steps, key=lambda each: (each.number or 0, each.rank))[:MAX_ROWS]
    ]  # fmt: skip
    if not rows:
        return []
    heads = ("step", "rank", "length", "compute", "communication", "exposed", "overlapped")
    return [heading("Steps side by side"), table("Steps", heads, rows)]


def _layers(report: RunReport) -> list[Block]:
    rows = [
        (
            f"rank {each.rank}, layer {each.number}", format_seconds(each.communication_ns * 1e-9),
            format_seconds(each.exposed_ns * 1e-9),
        )
        for each in report.layer_times[:MAX_ROWS]
    ]  # fmt: skip
    if not rows:
        return []
    caption = "Exposed communication per layer"
    return [heading(caption), table(caption, ("forward layer", "communication", "exposed"), rows)]
