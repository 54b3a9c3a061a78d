"""Published throughput beside ours, with the errors: whole passes, and serving when weights move."""

from __future__ import annotations

from app.reports.blocks import Block, heading, note, table
from tracer.proof.published.comparison import PublishedComparison
from tracer.proof.published.passes import compare_overlap, compare_overview, compare_published_passes
from tracer.proof.published.serving import PASSES, STATED, compare_serving

HEADS = ("published", "ours", "error", "")


def serving_blocks() -> list[Block]:
    """The published table beside ours at the passes as measured, and the errors of every reading."""
    gain, first = (compare_serving(what, "measured") for what in ("tps_gpu", "ttft"))
    others = [compare_serving("tps_gpu", passes) for passes in (*PASSES, STATED)]
    others += [compare_serving("ttft", passes) for passes in PASSES]
    rows = [
        [each.title.removeprefix("DWDP serving, "), f"{each.median_error:.0%}", f"{each.worst_error:.0%}"]
        for each in others
    ]
    return [
        heading("Serving when weights move: throughput a GPU with the first token"),
        note(f"Published: {gain.setting} ({gain.source})."),
        table(
            "Output tokens per second and GPU, DWDP over DEP", ["TPS/GPU, DWDP over DEP", *HEADS], _rows(gain)
        ),
        table("Time to first token", ["TTFT", *HEADS], _rows(first)),
        table("Errors of each reading", ["reading", "median error", "worst error"], rows, prose=True),
        note(f"Ours, nothing fitted: {first.assumptions}."),
    ]


def passes_blocks() -> list[Block]:
    """Whole passes of DeepSeek-V3 as others measured them beside ours, and where overlap gains."""
    passes, overlap, overview = compare_published_passes(), compare_overlap(), compare_overview()
    return [
        heading("How far off whole passes are"),
        table("Tokens a second of a node", ["", *HEADS], [*_rows(passes), *_rows(overview)]),
        table("Two-batch overlap, throughput over none", ["", *HEADS], _rows(overlap)),
        note(f"Published: {passes.source}; {overview.source}."),
        note(f"Ours, nothing fitted to a pass: {passes.assumptions}."),
    ]


def _rows(compared: PublishedComparison) -> list[list[str]]:
    return [
        [
            row.name,
            _value(row.published, row.unit),
            _value(row.predicted, row.unit),
            f"{row.error:+.0%}",
            row.note,
        ]
        for row in compared.rows
    ]


def _value(value: float, unit: str) -> str:
    return f"{value:.2f}×" if unit == "ratio" else f"{value:,.0f} {unit}"
