"""Everything ``tokentrip run`` says of a recording, as an object, JSON, Markdown and text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, format_seconds
from tracer.errors import ConfigError
from tracer.runs.blame import blame
from tracer.runs.diff import DiffRow, Status, compare_layers, outside_rows
from tracer.runs.expected import expected_time
from tracer.runs.groups import Expected, GroupDifference, differing_groups, of_mesh
from tracer.runs.layout import AXES, RecoveredLayout, recover
from tracer.runs.phases import Classified, classify
from tracer.runs.planned import planned_layer
from tracer.runs.reading.files import read_run
from tracer.runs.reading.recording import Op, RankRecord, Recording
from tracer.runs.scenario import to_scenario
from tracer.runs.sizes import (
    Bandwidth,
    Imbalance,
    LayerTime,
    Step,
    bandwidths,
    imbalances,
    layer_times,
    steps,
)
from tracer.runs.waits import Blame
from tracer.scenario.scenario import Scenario

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario

SCHEMA = 1
MAX_EXAMINED = 128

MAX_SHOWN = 40
"""Lines of one kind; the rest is in the JSON."""


@dataclass(frozen=True, slots=True)
class Against:
    """What a run is held against: a scenario for the trip, and the groups that are expected."""

    scenario: BareScenario
    expected: Expected


@dataclass(frozen=True, eq=False)
class RunReport:
    """A recording examined: its layout, the groups and operations that differ, who is late, what sizes say.

    ``group_differences`` is None where nothing can be compared: no scenario was given, and the recording
    does not name its groups. ``scenario`` is the one held against, or the recovered one.
    """

    recording: Recording
    layout: RecoveredLayout
    scenario: BareScenario | None
    group_differences: tuple[GroupDifference, ...] | None
    blame: Blame
    diff: tuple[DiffRow, ...]
    classified: dict[int, Classified]
    imbalances: tuple[Imbalance, ...]
    bandwidths: tuple[Bandwidth, ...]
    steps: tuple[Step, ...]
    layer_times: tuple[LayerTime, ...]
    warnings: tuple[str, ...]

    @property
    def found(self) -> bool:
        """Whether something differs or somebody is late."""
        return bool(self.group_differences or self.blame.suspects or any(row.differs for row in self.diff))

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/run.schema.json`` describes them."""
        groups = self.group_differences
        return {
            "schema": SCHEMA,
            "layout": self.layout.to_dict(),
            "groups_differ": None if groups is None else len(groups),
            "suspects": [{"rank": each.rank, "why": each.why} for each in self.blame.suspects],
            "diff": [
                *(
                    {"status": "group", "phase": "groups", **each.to_dict()}
                    for each in (groups or ())[:MAX_SHOWN]
                ),
                *(row.to_dict() for row in self.diff),
            ],
            "warnings": list(self.warnings),
        }

    def to_markdown(self) -> str:
        """The comparison as a Markdown document."""
        return markdown(self)

    def __str__(self) -> str:
        return run_report_text(self)


def examine_files(paths: Sequence[str | Path], against: Against | None = None) -> RunReport:
    """Read files and examine what they record.

    Raises:
        ConfigError: as :func:`tracer.runs.reading.files.read_run`.
    """
    return examine(read_run(paths), against)


def examine(recording: Recording, against: Against | None = None) -> RunReport:
    """Recover the layout, hold the run against a scenario or the recovered one, and find who is late."""
    layout = recover(recording)
    warnings = [str(each) for each in recording.refused] + list(recording.notes)
    scenario, expected, how = _reference(layout, against)
    warnings += how
    groups = None
    if expected is not None and (against is not None or layout.names_groups):
        groups = tuple(differing_groups(recording, layout, expected, unnamed=against is not None))
    culprits = blame(recording)
    sample = _sample(recording)
    classified = {r.rank: classify(r.rank, r.ops, layout.families, layout.shapes) for r in sample}
    diff, why_not = _diff(sample, classified, layout, scenario)
    shapes = layout.shapes
    warnings += why_not + list(layout.notes) + culprits.warnings + _missing(recording)
    refused_later = [str(each) for each in recording.refused if str(each) not in warnings]
    return RunReport(
        recording, layout, scenario, groups, culprits, tuple(diff), classified,
        tuple(imbalances(sample, shapes.hidden, shapes.top_k, shapes.rows)),
        tuple(bandwidths(sample, layout.families)), tuple(steps(sample)),
        tuple(layer_times(sample, {rank: found.layers for rank, found in classified.items()})),
        tuple(dict.fromkeys([*refused_later, *warnings])),
    )  # fmt: skip


def _reference(
    layout: RecoveredLayout, against: Against | None
) -> tuple[BareScenario | None, Expected | None, list[str]]:
    """The scenario and the groups to compare with: those given, else the recovered ones."""
    if against is not None:
        return against.scenario, against.expected, []
    try:
        scenario, assumed = to_scenario(layout)
    except ConfigError as error:
        return (
            None,
            None if layout.mesh is None else of_mesh(layout.mesh),
            [f"no scenario can be made: {error}"],
        )
    notes = [f"assumed, because no recording holds it: {', '.join(assumed)}"] if assumed else []
    return scenario, of_mesh(scenario.mesh), notes


def _sample(recording: Recording) -> list[RankRecord]:
    """Ranks whose operations are classified: the sample, and what the inquiry decoded besides."""
    more = [record for record in recording.ranks.values() if record.decoded]
    return more if len(more) <= MAX_EXAMINED else list(recording.sample)


def _diff(
    sample: list[RankRecord],
    classified: dict[int, Classified],
    layout: RecoveredLayout,
    scenario: BareScenario | None,
) -> tuple[list[DiffRow], list[str]]:
    """Rows of a layer and of everything outside it, and why rows are missing."""
    with_ops = [record for record in sample if record.ops]
    outside = outside_rows((record.rank, record.ops, classified[record.rank]) for record in with_ops)
    layers = [layer for found in classified.values() for layer in found.layers]
    if not layers:
        return outside, [
            "no layer of the forward pass can be told apart in this recording: no operations compared"
        ]
    if not isinstance(scenario, Scenario):
        return outside, ["without a model there is no trip to compare operations with"]
    try:
        planned = planned_layer(scenario)
    except ConfigError as error:
        return outside, [f"no trip to compare operations with: {error}"]
    return [*compare_layers(layers, planned, layout.families), *outside], []


def _missing(recording: Recording) -> list[str]:
    missing = recording.missing
    if not missing:
        return []
    shown = ", ".join(map(str, missing[:16])) + (", ..." if len(missing) > 16 else "")
    return [f"{len(missing)} of {recording.world_size} ranks gave no recording: {shown}"]


def run_problems(report: RunReport) -> list[str]:
    """Lines for a failing test: groups that differ, ranks that are late, operations that differ."""
    lines = [f"group: {each}" for each in (report.group_differences or ())[:MAX_SHOWN]]
    lines += [f"rank {each.rank} is late: {each.why}" for each in report.blame.suspects[:MAX_SHOWN]]
    lines += [
        f"{row.status}: {row.why}" + (f"; {row.fix}" if row.fix else "")
        for row in report.diff
        if row.differs and row.status is not Status.OUTSIDE
    ]
    return lines


def ops_of(report: RunReport, rank: int) -> tuple[Op, ...]:
    """Operations of one rank; those of a large run are decoded now.

    Raises:
        ConfigError: when the rank gave no recording.
    """
    record = report.recording.ranks.get(rank)
    if record is None:
        raise ConfigError("rank", rank, "gave no recording", f"try {next(iter(report.recording.ranks))}")
    return record.ops


def run_report_text(report: RunReport) -> str:
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
    lines += [_rate(rate, report.scenario) for rate in report.bandwidths[:8]]
    for step in report.steps[:16]:
        name = "whole trace" if step.number is None else f"step {step.number}"
        lines.append(
            f"rank {step.rank}, {name}: {format_seconds(step.length_ns * 1e-9)}, communication "
            f"{format_seconds(step.communication_ns * 1e-9)}, exposed "
            f"{format_seconds(step.exposed_ns * 1e-9)} ({step.overlap:.0%} overlapped)"
        )
    if report.layer_times:
        exposed = sum(each.exposed_ns for each in report.layer_times) / len(report.layer_times)
        lines.append(
            f"{len(report.layer_times)} forward layers: {format_seconds(exposed * 1e-9)} of exposed "
            "communication each, in the mean"
        )
    return lines


def _rate(rate: Bandwidth, scenario: BareScenario | None) -> str:
    """One line about a collective's rate, and what the calibrated time of the scenario's hardware says."""
    expected = expected_time(rate, scenario)
    beside = "" if expected is None else f"; {format_seconds(expected.seconds)} by {expected.basis}"
    return (
        f"{rate.kind} of {rate.family or 'a group'} ({rate.ranks} ranks), {format_bytes(rate.bytes)}: "
        f"{rate.bytes_per_s / 1e9:.3g} GB/s, median "
        f"{format_seconds(rate.median_ns * 1e-9)} of {rate.count}{beside}"
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
