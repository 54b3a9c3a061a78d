"""A run report in words: for the terminal, and as a Markdown document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracer.display import format_bytes, format_seconds
from tracer.runs.diff import DiffRow, Status
from tracer.runs.layout import AXES

if TYPE_CHECKING:
    from tracer.runs.report import RunReport
    from tracer.runs.sizes import Bandwidth

MAX_SHOWN = 40
"""Lines of one kind; the rest is in the JSON."""


def report_text(report: RunReport) -> str:
    """The whole report: groups first, then the late, the layer, and what the sizes say."""
    blocks = [
        _head(report),
        _groups(report),
        _suspects(report),
        _layer(report),
        _outside(report),
        _sizes(report),
    ]
    blocks.append([f"warning: {line}" for line in report.warnings[:MAX_SHOWN]])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(report: RunReport) -> list[str]:
    layout, run = report.layout, report.recording
    sizes = " ".join(f"{axis}{layout.sizes[axis]}" for axis in AXES)
    chunks = "" if layout.chunks == 1 else f", {layout.chunks or 'perhaps several'} chunks a stage"
    lines = [
        f"{len(run.ranks):,} of {run.world_size:,} ranks, from {', '.join(run.sources)}",
        f"layout: {sizes}, order {layout.order}{chunks}",
    ]
    shapes = layout.shapes
    known = [
        f"{word} {value:,}"
        for word, value in (
            ("hidden", shapes.hidden), ("rows per rank", shapes.rows), ("experts", shapes.experts),
            ("top-k", shapes.top_k), ("layers", layout.layers),
        )
        if value
    ]  # fmt: skip
    known += [
        word
        for word, value in (("a shared expert", shapes.shared_expert), ("FP8 gathers", shapes.fp8_gather))
        if value
    ]
    if known:
        lines.append("model: " + ", ".join(known))
    if layout.nodes:
        lines.append(f"nodes: {layout.nodes} of {layout.gpus_per_node} ranks")
    if layout.guessed:
        lines.append(f"guessed: {', '.join(layout.guessed)}")
    return lines


def _groups(report: RunReport) -> list[str]:
    found = report.group_differences
    if found is None:
        return ["groups: not compared (the recording does not name them; give --against)"]
    if not found:
        return [f"groups: all {len(report.recording.groups)} recorded groups are as expected"]
    return [f"groups: {len(found)} differ", *(f"  {each}" for each in found[:MAX_SHOWN])]


def _suspects(report: RunReport) -> list[str]:
    suspects = report.blame.suspects
    if not suspects:
        return ["late: nobody"]
    return [
        "late: ranks " + ", ".join(str(each.rank) for each in suspects[:MAX_SHOWN]),
        *(
            f"  rank {each.rank}: {each.why}; {each.waiting} ranks wait for it"
            for each in suspects[:MAX_SHOWN]
        ),
    ]


def _layer(report: RunReport) -> list[str]:
    rows = [row for row in report.diff if row.status is not Status.OUTSIDE]
    if not rows:
        return []
    where = sorted({row.rank for row in rows if row.rank is not None})
    lines = [f"a layer of the forward pass beside the trip (rank {', '.join(map(str, where))}):"]
    return lines + [f"  {row.status:<8} {_what(row):<58} {row.why}{_fix(row)}" for row in rows]


def _what(row: DiffRow) -> str:
    op = row.recorded
    if op is None:
        return f"{row.planned.hop} on {row.planned.axis}" if row.planned is not None else ""
    return f"{op.kind} {op.shapes_text} {op.dtype}"


def _fix(row: DiffRow) -> str:
    return f"; {row.fix}" if row.fix else ""


def _outside(report: RunReport) -> list[str]:
    rows = [row for row in report.diff if row.status is Status.OUTSIDE]
    if not rows:
        return []
    lines = []
    for phase in dict.fromkeys(row.phase for row in rows):
        own = [row for row in rows if row.phase is phase]
        counts: Counter[str] = Counter()
        for row in own:
            if row.recorded is not None:
                group = row.recorded.group
                counts[f"{row.recorded.kind} on {group.description or f'{group.size} ranks'}"] += row.count
        kinds = ", ".join(f"{count} {what}" for what, count in counts.most_common(6))
        lines.append(f"  {own[0].why}\n    {kinds}{', ...' if len(counts) > 6 else ''}")
    return ["beside the forward layers:", *lines]


def _sizes(report: RunReport) -> list[str]:
    lines: list[str] = []
    if report.imbalances:
        worst = max(report.imbalances, key=lambda each: each.worst)
        rank = max(worst.rows, key=lambda each: worst.rows[each])
        lines.append(
            f"imbalance: {len(report.imbalances)} exchanges; the worst gives rank {rank} "
            f"{worst.rows[rank]:,}, {worst.worst:.3f} times the mean"
        )
    lines += [_rate(rate) for rate in report.bandwidths[:8]]
    for step in report.steps[:16]:
        name = "whole trace" if step.number is None else f"step {step.number}"
        lines.append(
            f"rank {step.rank}, {name}: {format_seconds(step.length_ns * 1e-9)}, communication "
            f"{format_seconds(step.communication_ns * 1e-9)}, exposed "
            f"{format_seconds(step.exposed_ns * 1e-9)} ({step.overlap:.0%} overlapped)"
        )
    return lines


def _rate(rate: Bandwidth) -> str:
    """One line about a collective's rate."""
    return (
        f"{rate.kind} of {rate.family or 'a group'} ({rate.ranks} ranks), {format_bytes(rate.bytes)}: "
        f"{rate.bytes_per_s / 1e9:.3g} GB/s, median {format_seconds(rate.median_ns * 1e-9)} of {rate.count}"
    )


def markdown(report: RunReport) -> str:
    """Groups, suspects and rows of the comparison as Markdown tables."""
    blocks = [
        "# Run against " + ("a scenario" if report.scenario is None else report.scenario.name or "a scenario")
    ]
    blocks.append("\n".join(_head(report)))
    if report.group_differences:
        rows = (
            (str(each.group), each.family or "", ", ".join(map(str, each.expected[:16])))
            for each in report.group_differences[:MAX_SHOWN]
        )
        blocks.append("## Groups that differ\n\n" + _table(("recorded", "family", "expected"), rows))
    if report.blame.suspects:
        late = ((str(each.rank), each.why, str(each.waiting)) for each in report.blame.suspects)
        blocks.append("## Late\n\n" + _table(("rank", "why", "ranks waiting"), late))
    if report.diff:
        lines = (
            (str(row.status), str(row.phase), f"{row.count} × {_what(row)}" if row.count > 1 else _what(row),
             row.why + _fix(row))
            for row in report.diff
        )  # fmt: skip
        blocks.append("## Operations\n\n" + _table(("status", "phase", "operation", "why"), lines))
    if report.warnings:
        blocks.append(
            "## Warnings\n\n" + "\n".join(f"- {_cell(line)}" for line in report.warnings[:MAX_SHOWN])
        )
    return "\n\n".join(blocks) + "\n"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join('---' for _ in header)} |"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text that cannot break out of a table or become markup: names in recordings are a stranger's."""
    plain = " ".join(text.split())
    for mark in "\\|<>`*[]":
        plain = plain.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return plain
