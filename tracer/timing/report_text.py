"""The time report as text a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracer.display import format_bytes, format_seconds
from tracer.scenario.step import mesh_line
from tracer.timing.schedules.decode_pipeline import decode_bubble

if TYPE_CHECKING:
    from tracer.timing.pass_time import PassTime
    from tracer.timing.report import TimeReport
    from tracer.timing.schedules.overlap import Overlap


def report_text(report: TimeReport) -> str:
    """Every part that is there, then what is missing and why."""
    scenario = report.trip.scenario
    lines = [f"{scenario.name or 'scenario'}: {mesh_line(scenario)}", ""]
    lines += [
        f"one token's trip: {format_seconds(report.times.seconds)} on the links ({report.times.assumption})"
    ]
    if report.whole is not None:
        lines += ["", *_pass_lines(report.whole)]
    if report.overlap is not None:
        lines += ["", *_overlap_lines(report.overlap)]
    if report.pipeline is not None:
        stages, batches = report.pipeline.start.shape
        lines += [
            "",
            f"pipeline: {stages} stages x {batches} micro-batches, each such a pass, in "
            f"{format_seconds(report.pipeline.makespan)}, bubble {report.pipeline.bubble:.1%} "
            f"(closed form for even stages and free sends: {report.closed_bubble:.1%})",
        ]
    if report.decode is not None:
        _, stages, groups = report.decode.start.shape
        lines += [
            "",
            f"decode pipeline: {groups} groups of requests over {stages} stages, a token every "
            f"{format_seconds(report.decode.seconds_per_token)}, bubble {report.decode.bubble:.1%} over 16 "
            f"tokens (steady, free sends: {decode_bubble(stages, groups):.1%})",
        ]
    if report.choice is not None:
        lines += ["", str(report.choice)]
    if report.missing:
        lines += ["", *(f"not timed: {reason}" for reason in report.missing)]
    return "\n".join(lines)


def _pass_lines(whole: PassTime) -> Iterator[str]:
    yield f"one pass of {whole.tokens:,} tokens a replica: {format_seconds(whole.seconds)} through all stages"
    yield f"  {'a layer':<24}{'time':>9}  what binds"
    for layer in (whole.attention, whole.shared, whole.experts, whole.dense):
        for each in layer.operators:
            yield (
                f"  {each.operator.name:<24}{format_seconds(each.seconds):>9}  {each.bound}, "
                f"{each.operator.intensity:.3g} FLOP/B"
            )
    for name, exchange in whole.exchange.items():
        sizes = [format_bytes(round(size)) for size in (exchange.nvlink_bytes, exchange.ib_bytes)]
        binds = f"{exchange.binding or 'nothing'}: {sizes[0]} NVLink, {sizes[1]} IB a GPU"
        yield f"  {name:<24}{format_seconds(exchange.seconds):>9}  {binds}"
    for line in whole.traffic.lines:
        if not (line.axis == "ep" and whole.exchange):
            name = f"{line.axis} {line.part.replace('_', ' ')}"
            yield f"  {name:<24}{format_seconds(line.seconds):>9}  {line.tier or 'nothing'}, a {line.per}"
    yield f"  assumes {whole.assumption}"


def _overlap_lines(overlap: Overlap) -> Iterator[str]:
    yield (
        f"two-batch overlap (4 MoE layers): {overlap.gain:+.1%} throughput, bound {overlap.bound:+.1%}; "
        f"{format_seconds(overlap.sequential_seconds)} in sequence, "
        f"{format_seconds(overlap.seconds)} overlapped"
    )
    yield (
        f"  communication left exposed: {format_seconds(overlap.exposed_seconds)} of "
        f"{format_seconds(overlap.communication_seconds)}"
    )
