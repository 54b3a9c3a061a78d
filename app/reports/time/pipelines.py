"""Pipelines of the time page: forward over micro-batches, decode over groups of requests, and DualPipe."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from app.reports.blocks import Block, alert, chart, heading, note, table
from layouts.charts.gantt import gantt_figure
from tracer.display import format_seconds
from tracer.errors import ConfigError
from tracer.timing import timeline
from tracer.timing.schedules.decode_pipeline import decode_bubble
from tracer.timing.schedules.training import ASSUMPTION, Training, train

if TYPE_CHECKING:
    from tracer.timing.pass_time import PassTime
    from tracer.timing.report import TimeReport
    from tracer.timing.schedules.decode_pipeline import DecodePipeline
    from tracer.timing.schedules.pipeline import Pipeline
    from tracer.timing.timeline import Timeline

COLOURS = {
    "all_gather": "var(--strong-tp)", "reduce_scatter": "var(--soft)", "all_reduce": "var(--strong-tp)",
    "kv_exchange": "var(--kv)", "query_send": "var(--kv)", "partials_return": "var(--soft)",
    "state_pass": "var(--kv)",
    "dispatch": "var(--token)", "combine": "var(--token-text)", "weight_pull": "var(--token)",
    "pp_send": "var(--strong-pp)", "attention": "var(--strong-tp)", "shared": "var(--kv)",
    "experts": "var(--strong-pp)", "even micro-batch": "var(--strong-tp)", "odd micro-batch": "var(--soft)",
    "forward": "var(--strong-tp)", "backward": "var(--nvlink)", "backward for inputs": "var(--kv)",
    "backward for weights": "var(--soft)", "forward & backward": "var(--token)",
}  # fmt: skip
GROUP_COLOURS = (
    "var(--strong-tp)", "var(--soft)", "var(--strong-pp)", "var(--kv)", "var(--nvlink)", "var(--token)",
)  # fmt: skip


def gantt(name: str, line: Timeline) -> Block:
    """A timeline as a chart in the page's colours."""
    groups = cycle(GROUP_COLOURS)
    colours = [next(groups) if kind.startswith("group ") else COLOURS.get(kind) for kind in line.kinds]
    figure = gantt_figure(line, colours=tuple(colour or "var(--ink)" for colour in colours))
    del figure["layout"]["title"]
    return chart(name, figure, height=min(720, 130 + 30 * len(line.rows)))


def pipeline_blocks(report: TimeReport, micro_batches: int) -> list[Block]:
    """The pipeline of the report's phase; beside prefill's, the same stages in training."""
    if report.decode is not None:
        return _decode(report.decode)
    if report.pipeline is None or report.whole is None:
        return []
    return [*_forward(report.pipeline), *_training(report.whole, micro_batches)]


def training_lines(report: TimeReport, micro_batches: int) -> list[Timeline]:
    """The lines of DualPipe's timeline, when the page draws it."""
    if report.pipeline is None or report.whole is None:
        return []
    try:
        return [timeline.of_dualpipe(train(report.whole, micro_batches).schedule)]
    except ConfigError:
        return []


def _forward(pipeline: Pipeline) -> list[Block]:
    stages, batches, chunks = pipeline.stages, pipeline.micro_batches, pipeline.chunks
    rows = [["whole pipeline", format_seconds(pipeline.makespan)], ["bubble", f"{pipeline.bubble:.2%}"]]
    if pipeline.closed_bubble is not None:
        form = "(S-1)/(M+S-1)" if chunks == 1 else "(S-1)/(M·v+S-1)"
        rows.append([f"bubble by {form}, even stages and free sends", f"{pipeline.closed_bubble:.2%}"])
    laps = f" of {chunks} chunks" if chunks > 1 else ""
    return [
        heading(f"Pipeline: {stages} stages{laps}, {batches} micro-batches"),
        gantt("The pipeline, a row per stage", timeline.of_pipeline(pipeline)),
        table("The pipeline in figures", ["", "value"], rows),
    ]


def _decode(decode: DecodePipeline) -> list[Block]:
    steps, stages, groups = decode.shape
    rows = [
        ["a token of one request every", format_seconds(decode.seconds_per_token)],
        [f"bubble over {steps} tokens", f"{decode.bubble:.2%}"],
        ["bubble once it runs steadily, free sends", f"{decode_bubble(stages, groups):.2%}"],
    ]
    return [
        heading(f"Decode pipeline: {stages} stages, {groups} groups of requests"),
        gantt("The decode pipeline, a row per stage", timeline.of_decode(decode)),
        table("The decode pipeline in figures", ["", "value"], rows),
        note("A token leaves the last stage before the next of its request enters the first."),
    ]


def _training(whole: PassTime, micro_batches: int) -> list[Block]:
    """DualPipe on the same stages, or why it does not run on them."""
    title = "The same stages in training: DualPipe"
    try:
        found = train(whole, micro_batches)
    except ConfigError as error:
        return [heading(title), alert(error)]
    schedule = found.schedule
    return [
        heading(f"{title}, {schedule.micro_batches} micro-batches from both ends"),
        gantt("DualPipe, a row per stage", timeline.of_dualpipe(schedule)),
        table("DualPipe in figures", ["", "value"], _training_rows(found)),
        note(f"Assumes {ASSUMPTION}. Idle seconds by the closed forms of deepseek-ai/DualPipe's README."),
    ]


def _training_rows(found: Training) -> list[list[str]]:
    names = {"dualpipe": "DualPipe", "zb1p": "ZB1P", "1f1b": "1F1B"}
    times = found.times
    return [
        ["whole schedule", format_seconds(found.schedule.makespan)],
        ["forward chunk", format_seconds(times.forward)],
        ["backward chunk", format_seconds(times.backward)],
        ["both together", format_seconds(times.overlapped)],
        *([f"a stage idles, {names[name]}", format_seconds(spent)] for name, spent in found.idle_seconds),
    ]
