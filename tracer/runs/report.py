"""Everything ``tokentrip run`` says of a recording, as an object, JSON, Markdown and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.runs.blame import Blame, blame
from tracer.runs.diff import DiffRow, Status, compare_layers, outside_rows, planned_layer
from tracer.runs.files import read_run
from tracer.runs.groups import Expected, GroupDifference, differing_groups, of_mesh
from tracer.runs.layout import RecoveredLayout, recover
from tracer.runs.phases import Classified, classify
from tracer.runs.recording import Op, RankRecord, Recording
from tracer.runs.report_text import MAX_SHOWN, markdown, report_text
from tracer.runs.scenario import to_scenario
from tracer.runs.sizes import Bandwidth, Imbalance, Step, bandwidths, imbalances, steps

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SCHEMA = 1
MAX_EXAMINED = 128


@dataclass(frozen=True, slots=True)
class Against:
    """What a run is held against: a scenario for the trip, and the groups that are expected."""

    scenario: Scenario
    expected: Expected


@dataclass(frozen=True, eq=False)
class RunReport:
    """A recording examined: its layout, the groups and operations that differ, who is late, what sizes say.

    ``group_differences`` is None where nothing can be compared: no scenario was given, and the recording
    does not name its groups. ``scenario`` is the one held against, or the recovered one.
    """

    recording: Recording
    layout: RecoveredLayout
    scenario: Scenario | None
    group_differences: tuple[GroupDifference, ...] | None
    blame: Blame
    diff: tuple[DiffRow, ...]
    classified: dict[int, Classified]
    imbalances: tuple[Imbalance, ...]
    bandwidths: tuple[Bandwidth, ...]
    steps: tuple[Step, ...]
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
        return report_text(self)


def examine_files(paths: Sequence[str | Path], against: Against | None = None) -> RunReport:
    """Read files and examine what they record.

    Raises:
        ConfigError: as :func:`tracer.runs.files.read_run`.
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
    classified = {r.rank: classify(r.rank, r.ops, layout.families, layout.shapes.hidden) for r in sample}
    diff, why_not = _diff(sample, classified, layout, scenario)
    shapes = layout.shapes
    warnings += why_not + list(layout.notes) + culprits.warnings + _missing(recording)
    refused_later = [str(each) for each in recording.refused if str(each) not in warnings]
    return RunReport(
        recording, layout, scenario, groups, culprits, tuple(diff), classified,
        tuple(imbalances(sample, shapes.hidden, shapes.top_k, shapes.rows)),
        tuple(bandwidths(sample, layout.families)), tuple(steps(sample)),
        tuple(dict.fromkeys([*refused_later, *warnings])),
    )  # fmt: skip


def _reference(
    layout: RecoveredLayout, against: Against | None
) -> tuple[Scenario | None, Expected | None, list[str]]:
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
    if layout.chunks is None or layout.chunks > 1:
        notes.append("virtual stages are not written into the scenario: it sends once between stages")
    return scenario, of_mesh(scenario.mesh), notes


def _sample(recording: Recording) -> list[RankRecord]:
    """Ranks whose operations are classified: the sample, and what the inquiry decoded besides."""
    more = [record for record in recording.ranks.values() if record.decoded]
    return more if len(more) <= MAX_EXAMINED else list(recording.sample)


def _diff(
    sample: list[RankRecord],
    classified: dict[int, Classified],
    layout: RecoveredLayout,
    scenario: Scenario | None,
) -> tuple[list[DiffRow], list[str]]:
    """Rows of a layer and of everything outside it, and why rows are missing."""
    with_ops = [record for record in sample if record.ops]
    outside = outside_rows((record.rank, record.ops, classified[record.rank]) for record in with_ops)
    layers = [layer for found in classified.values() for layer in found.layers]
    if not layers:
        return outside, [
            "no layer of the forward pass can be told apart in this recording: no operations compared"
        ]
    if scenario is None or scenario.model is None:
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
