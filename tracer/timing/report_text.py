"""The time report as text a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.display import format_bytes, format_seconds
from tracer.scenario.step import mesh_line
from tracer.timing.basis import PEAK_BASIS, Rates
from tracer.timing.schedules.decode_pipeline import decode_bubble

if TYPE_CHECKING:
    from tracer.timing.calibration.answer import Estimate
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
    if report.throughput:
        lines += ["", *map(str, report.throughput)]
    if report.choice is not None:
        at_peak = "tokens against weights, both at peak rates:"
        calibrated = report.whole is not None and report.whole.rates is Rates.CALIBRATED
        lines += ["", *([at_peak] if calibrated else []), str(report.choice)]
    if report.missing:
        lines += ["", *(f"not timed: {reason}" for reason in report.missing)]
    return "\n".join(lines)


def _pass_lines(whole: PassTime) -> Iterator[str]:
    measured = whole.rates is Rates.CALIBRATED
    yield f"one pass of {whole.tokens:,} tokens a replica: {format_seconds(whole.seconds)} through all stages"
    if measured:
        yield f"  {known_words(whole)}"
    bases: list[str] = []
    yield f"  {'a layer':<24}{'time':>9}{'floor':>9}  what binds" if measured else _PEAK_HEAD
    for each in pass_rows(whole):
        floor = f"{format_seconds(each.floor_seconds):>9}" if measured else ""
        mark = f" [{_place(bases, each.basis)}]" if measured else ""
        yield f"  {each.name:<24}{format_seconds(each.seconds):>9}{floor}  {each.binds}{mark}"
    yield from (f"  [{place}] {basis}" for place, basis in enumerate(bases, 1))
    yield f"  assumes {whole.assumption}"


_PEAK_HEAD = f"  {'a layer':<24}{'time':>9}  what binds"


def _place(bases: list[str], basis: str) -> int:
    if basis not in bases:
        bases.append(basis)
    return bases.index(basis) + 1


def known_words(whole: PassTime) -> str:
    """The pass's floor, its expected error and its interval, or why there is none."""
    floor = f"floor {format_seconds(whole.floor_seconds)} at peak"
    error, interval = whole.error, whole.interval_seconds
    if error is None or interval is None:
        return f"{floor}; no error known: over a tenth of it rests on calls or sizes that were not measured"
    low, high = map(format_seconds, interval)
    return f"{floor}; expected error {error:.1%}, nine of ten between {low} and {high}, by its parts' errors"


@dataclass(frozen=True, slots=True)
class PassRow:
    """One line of a pass: seconds and floor of a layer's piece, what binds it, what the time rests on."""

    name: str
    seconds: float
    floor_seconds: float
    binds: str
    basis: str


def pass_rows(whole: PassTime) -> Iterator[PassRow]:
    """Operators, small kernels, exchanges and traffic of a pass in order."""
    for layer in (whole.attention, whole.shared, whole.experts, whole.dense, whole.small):
        for each in layer.operators:
            binds = f"{each.bound}, {each.operator.intensity:.3g} FLOP/B"
            name = each.operator.name
            yield PassRow(name, each.seconds, each.floor_seconds, binds, basis_words(each.estimate))
    for name, exchange in whole.exchange.items():
        sizes = [format_bytes(round(size)) for size in (exchange.nvlink_bytes, exchange.ib_bytes)]
        binds = f"{exchange.binding or 'nothing'}: {sizes[0]} NVLink, {sizes[1]} IB a GPU"
        basis = basis_words(exchange.estimate)
        yield PassRow(name, exchange.seconds, exchange.floor_seconds, binds, basis)
    for line in whole.traffic.lines:
        if not (line.axis == "ep" and whole.exchange):
            name = f"{line.axis} {line.part.replace('_', ' ')}"
            binds = f"{line.tier or 'nothing'}, a {line.per}"
            basis = basis_words(whole.axes.get((line.axis, line.part)))
            yield PassRow(name, whole.line_seconds(line), line.seconds, binds, basis)


def basis_words(found: Estimate | None) -> str:
    """What a time rests on, with its expected error."""
    if found is None:
        return PEAK_BASIS
    return f"{found.basis}; " + ("error unknown" if found.error is None else f"error {found.error:.1%}")


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
