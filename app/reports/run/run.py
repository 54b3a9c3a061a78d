"""The page Run: what a recorded run did, beside what should have happened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from app.query.address import flatten
from app.reports.blocks import Block, choice_control, counts, heading, note, picture, table, text_control
from app.reports.run.files import MAX_BYTES, MAX_UNPACKED, sent_files, without_folders
from app.reports.run.played import played
from app.reports.run.sizes import size_blocks
from layouts.pictures.run_map import MAX_RANKS, run_map
from layouts.pictures.run_rows import run_rows
from tracer.errors import ConfigError
from tracer.runs.against import against as reference
from tracer.runs.diff import Status
from tracer.runs.layout import AXES
from tracer.runs.reading.files import read_run
from tracer.runs.report import RunReport, examine
from tracer.runs.rules import RULES
from tracer.runs.scenario import to_scenario
from tracer.runs.shipped import SHIPPED, shipped_files

if TYPE_CHECKING:
    from tracer.runs.reading.recording import Group

MAX_ROWS = 200
ALL = ("", "all")
NOBODY = "Nobody is late"


def run_report(query: dict[str, str]) -> dict[str, Any]:
    """The page without files of the reader's own: what it takes, or a recording that ships here.

    Raises:
        ConfigError: for a recording that does not ship, or keys that break a rule.
    """
    name = query.get("recording", "")
    if not name:
        return {"title": "No recording yet", "controls": _controls(query, None), "blocks": _empty()}
    with shipped_files(name) as paths:
        return _report(query, paths, f"recording · {SHIPPED[name]}")


def run_of_files(query: dict[str, str], body: bytes) -> dict[str, Any]:
    """The page of files that were sent along; they are read, examined and forgotten.

    Raises:
        ConfigError: when they are too large, or hold no recording.
    """
    with sent_files(body) as paths:
        return _report(query, paths, f"recording · {len(paths):,} files of yours")


def _report(query: dict[str, str], paths: list[Path], source: str) -> dict[str, Any]:
    try:
        recording = read_run(paths)
        held = query.get("held", "").strip()
        report = examine(recording, reference(held, recording.world_size) if held else None)
        found = _page(query, report, source)
    except ConfigError as error:
        got, rule = _plain(error.got, paths), without_folders(error.rule, paths)
        raise ConfigError(error.field, got, rule, error.fix) from error
    text = without_folders(json.dumps(found), paths)
    page: dict[str, Any] = json.loads(text)
    return page


def _plain(got: object, paths: list[Path]) -> object:
    if isinstance(got, list):
        return [_plain(each, paths) for each in got]
    return without_folders(got, paths) if isinstance(got, str) else got


def _page(query: dict[str, str], report: RunReport, source: str) -> dict[str, Any]:
    ranks = _chosen_ranks(query, report)
    family = query.get("run_group", "")
    run = report.recording
    versions = sorted({record.version for record in run.ranks.values() if record.version})
    told = f", {', '.join(map(str, run.sources)).replace('_', ' ')} {', '.join(versions)}".rstrip()
    return {
        "title": f"{source} · {len(run.ranks):,} of {run.world_size:,} ranks{told}",
        "controls": _controls(query, report),
        "blocks": [
            *_late(report),
            *_map(report, ranks, family),
            *_evidence(report),
            *_layout(report),
            *_layer(report),
            *size_blocks(report),
            *_groups(report, family),
            *_warnings(report),
        ],
        "texts": [
            {"ending": "-differences.md", "text": report.to_markdown()},
            {
                "ending": "-differences.json",
                "text": json.dumps(report.to_dict(), indent=1, ensure_ascii=False),
            },
            *_scenario_text(report),
        ],
    }


def _chosen_ranks(query: dict[str, str], report: RunReport) -> list[int]:
    """The rank that is asked for, else those of the suspects and their groups first, then all."""
    known = list(report.recording.ranks)
    text = query.get("run_rank", "")
    if text:
        asked = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1
        if asked not in report.recording.ranks:
            raise ConfigError("run_rank", text, "gave no recording", f"try run_rank={known[0]}")
        return [asked]
    named = [each.rank for each in report.blame.suspects]
    near = [wait.waiter for wait in report.blame.waits if wait.culprit in named]
    sample = [record.rank for record in report.recording.sample]
    first = [rank for rank in dict.fromkeys([*named, *near, *sample]) if rank in report.recording.ranks]
    return sorted(first[:32])


def _controls(query: dict[str, str], report: RunReport | None) -> list[Block]:
    controls: list[Block] = [
        {
            "kind": "files", "key": "files", "label": "Dumps, a folder, a profiler trace or NCCL logs",
            "most_bytes": MAX_BYTES, "most_unpacked": MAX_UNPACKED, "wrong": "",
        },
        {
            **choice_control(
                "recording", "Or a recording that ships here", query.get("recording", ""),
                [("", "none"), *SHIPPED.items()],
            ),
            "drops_files": True,
        },
        text_control("held", "Hold it to a scenario or a launch line", query.get("held", "")),
    ]  # fmt: skip
    if report is not None:
        ranks = list(report.recording.ranks)[:MAX_RANKS]
        controls.append(
            choice_control(
                "run_rank", "Rank", query.get("run_rank", ""), [ALL, *((str(r), str(r)) for r in ranks)]
            )
        )
        families = sorted(set(report.layout.families.values()))
        controls.append(
            choice_control(
                "run_group", "Groups", query.get("run_group", ""), [ALL, *((f, f) for f in families)]
            )
        )
    return controls


def _empty() -> list[Block]:
    return [
        heading("Read what happened"),
        note(
            "Drop Flight Recorder dumps (one per rank, pickle or JSON), profiler traces (.json, .json.gz) "
            "or logs of NCCL_DEBUG=INFO here. The page tells who is late and who waits, recovers the "
            "layout from the groups, and lays the recorded operations of a layer beside those of the trip."
        ),
        note(
            f"Files are sent for one answer and forgotten with it: up to {MAX_BYTES >> 20} MB packed, "
            f"{MAX_UNPACKED >> 20} MB unpacked. What is larger is read where it lies: tokentrip run FILES."
        ),
    ]


def _late(report: RunReport) -> list[Block]:
    suspects = report.blame.suspects
    if not suspects:
        return [heading(NOBODY), *map(note, report.blame.warnings[:4])]
    names = ", ".join(str(each.rank) for each in suspects[:12]) + (", ..." if len(suspects) > 12 else "")
    title = "Which rank stopped first?" if len(suspects) == 1 else "Which ranks stopped first?"
    return [heading(f"{title} {names}")]


def _evidence(report: RunReport) -> list[Block]:
    rows = [
        (str(each.rank), each.why, f"{each.waiting:,}", f"rule {each.rule}")
        for each in report.blame.suspects[:MAX_ROWS]
    ]
    heads = ("rank", "why", "ranks that wait", "by")
    return [table("Evidence, rank by rank", heads, rows, prose=True)] if rows else []


def _map(report: RunReport, ranks: Sequence[int], family: str) -> list[Block]:
    block = played(report, list(ranks), family)
    figure = (
        "The figure of a rank is the last operation that it completed in its smallest group (TP where "
        "there is one); compare it within a group, never between groups. Clocks of different hosts may "
        "differ."
    )
    if block is None:
        return [picture("The ranks of the run", run_map(report, "page")), note(figure)]
    return [block, note(figure)]


def _layout(report: RunReport) -> list[Block]:
    layout = report.layout
    sizes = " ".join(f"{axis}{layout.sizes[axis]}" for axis in AXES if layout.sizes[axis] > 1) or "one rank"
    stages = "" if layout.chunks == 1 else ", interleaved" if layout.chunks else ", virtual stages left open"
    rows = []
    for axis in AXES:
        groups = [g for g in report.recording.groups if layout.families.of(g) == axis and g.size > 1]
        if groups:
            rows.append((_listed(groups), f"{axis} {layout.sizes[axis]}"))
    if layout.chunks is not None and layout.chunks > 1:
        rows.append(("sends from the last stage to the first", f"{layout.chunks} chunks a stage"))
    known = [
        (word, f"{value:,}" if isinstance(value, int) else str(value))
        for word, value in (
            ("order", layout.order), ("hidden", layout.shapes.hidden), ("rows per rank", layout.shapes.rows),
            ("experts", layout.shapes.experts), ("top-k", layout.shapes.top_k), ("layers", layout.layers),
        )
        if value
    ]  # fmt: skip
    blocks = [
        heading(f"Layout, recovered from the groups: {sizes}{stages}"),
        counts("What the sizes say", known),
        table("Recorded groups and what they say", ("recorded", "says"), rows),
    ]
    if layout.guessed:
        blocks.append(note(f"Guessed, not stated by the recording: {', '.join(layout.guessed)}."))
    differ = report.group_differences
    if differ is None:
        blocks.append(note("The recording does not name its groups; name a scenario to compare them with."))
    elif not differ:
        blocks.append(note(f"All {len(report.recording.groups):,} recorded groups are as expected."))
    else:
        lines = [
            (str(each.group), each.family or "", str(list(each.expected[:16]))) for each in differ[:MAX_ROWS]
        ]
        blocks.append(
            table(f"{len(differ):,} groups differ", ("recorded", "family", "expected"), lines, prose=True)
        )
    return blocks


def _listed(groups: Sequence[Group]) -> str:
    shown = ", ".join(f"({' '.join(map(str, group.members[:8]))})" for group in groups[:2])
    return f"{len(groups):,} groups of {groups[0].size}: {shown}{', …' if len(groups) > 2 else ''}"


def _layer(report: RunReport) -> list[Block]:
    rows = [row for row in report.diff if row.status is not Status.OUTSIDE]
    outside = [row for row in report.diff if row.status is Status.OUTSIDE]
    blocks: list[Block] = []
    if rows:
        differing = [row for row in rows if row.differs]
        title = (
            "One layer, forward: plan and run agree"
            if not differing
            else f"One layer, forward: {len(differing)} operations differ"
        )
        blocks += [
            heading(title),
            picture("A layer as planned and as recorded", run_rows(rows, "page")),
            table(
                "Operations of the layer",
                ("status", "recorded", "planned", "why", "to set"),
                [
                    (
                        str(row.status) + (" (explained)" if row.explained else ""),
                        "" if row.recorded is None
                        else f"{row.recorded.kind} {row.recorded.shapes_text} {row.recorded.dtype}",
                        "" if row.planned is None else f"{row.planned.hop} on {row.planned.axis}",
                        row.why,
                        row.fix or "",
                    )
                    for row in rows
                ],
                marked=[place for place, row in enumerate(rows) if row.differs],
                prose=True,
            ),
        ]  # fmt: skip
    if report.layout.mesh is not None:
        blocks.append(_links(report))
    if outside:
        lines = [
            (
                str(row.phase).replace("_", " "), f"{row.count:,}",
                "" if row.recorded is None else f"{row.recorded.kind} on {row.recorded.group}", row.why,
            )
            for row in outside[:MAX_ROWS]
        ]  # fmt: skip
        caption = "Outside the forward layers"
        blocks += [
            heading(caption),
            table(caption, ("phase", "count", "such as", "what it is"), lines, prose=True),
        ]
    return blocks


def _links(report: RunReport) -> Block:
    """The recovered scenario on the other pages."""
    keys = {"scenario": "", **flatten(to_scenario(report.layout)[0].to_dict())}
    address = "?" + urlencode(keys)
    trip = report.layout.shapes.hidden is not None
    return {
        "kind": "links",
        "links": [
            *([["Follow a token of the recovered scenario", "/", address]] if trip else []),
            ["Its mesh", "/mesh", address],
        ],
    }


def _scenario_text(report: RunReport) -> list[dict[str, str]]:
    if report.layout.mesh is None:
        return []
    return [{"ending": "-scenario.toml", "text": to_scenario(report.layout)[0].to_toml()}]


def _groups(report: RunReport, family: str) -> list[Block]:
    found = [
        group
        for group in report.recording.groups
        if group.size > 1 and (not family or report.layout.families.of(group) == family)
    ]
    rows = [
        (group.description or group.name, report.layout.families.of(group) or "", f"{group.size}",
         ", ".join(map(str, group.members[:24])) + (", …" if group.size > 24 else ""))
        for group in found[:MAX_ROWS]
    ]  # fmt: skip
    caption = "Groups and their members"
    return [heading(caption), table(caption, ("group", "axes", "ranks", "members"), rows, prose=True)]


def _warnings(report: RunReport) -> list[Block]:
    rules = [(f"rule {number}", name, limit) for number, name, limit in RULES]
    caption = "How a late rank is named"
    blocks = [heading(caption), table(caption, ("", "rule", "limits"), rules, prose=True)]
    if report.warnings:
        lines = [(f"{place}", text) for place, text in enumerate(report.warnings[:MAX_ROWS], 1)]
        blocks += [heading("What to know"), table("Warnings", ("", "warning"), lines, prose=True)]
    return blocks
