"""Pipelines of the time page: forward over micro-batches, decode over groups of requests, and DualPipe."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from app.reports.blocks import Block, alert, chart, heading, note, table
from layouts.charts.gantt import gantt_figure
from tracer.display import format_seconds
from tracer.errors import ConfigError
from tracer.timing import timeline
from tracer.timing.schedules.training import ASSUMPTION, TITLES, Training, trainings

if TYPE_CHECKING:
    from tracer.timing.pass_time import PassTime
    from tracer.timing.report import TimeReport
    from tracer.timing.schedules.decode_pipeline import DecodePipeline
    from tracer.timing.schedules.pipeline import Pipeline
    from tracer.timing.timeline import Timeline

FORMS = {
    "dualpipe": "deepseek-ai/DualPipe's README",
    "interleaved": "(p-1)(F+B) of a chunk, which is (p-1)/(m·v+p-1) of the time",
    "dualpipe_v": "(p-1)(F&B+B-3W) of a chunk",
}
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
    """The lines of the training timelines that the page draws."""
    if report.pipeline is None or report.whole is None:
        return []
    try:
        found = trainings(report.whole, micro_batches)
    except ConfigError:
        return []
    return [timeline.of_training(each.schedule, each.title) for each in found]


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
    steps, stages, groups = decode.shape[0], decode.stages, decode.groups
    steady, chunks = decode.steady_bubble, len(decode.stage_of) // decode.stages
    laps = f" of {chunks} chunks" if chunks > 1 else ""
    rows = [
        ["a token of one request every", format_seconds(decode.seconds_per_token)],
        [f"bubble over {steps} tokens", f"{decode.bubble:.2%}"],
        *([["bubble once it runs steadily, free sends", f"{steady:.2%}"]] if steady is not None else []),
    ]
    return [
        heading(f"Decode pipeline: {stages} stages{laps}, {groups} groups of requests"),
        gantt("The decode pipeline, a row per stage", timeline.of_decode(decode)),
        table("The decode pipeline in figures", ["", "value"], rows),
        note("A token leaves the last stage before the next of its request enters the first."),
    ]


def _training(whole: PassTime, micro_batches: int) -> list[Block]:
    """The schedules of the same stages in training, or why they do not run on them."""
    title = "The same stages in training"
    try:
        found = trainings(whole, micro_batches)
    except ConfigError as error:
        return [
            heading(title if whole.traffic.scenario.plan.chunks > 1 else f"{title}: DualPipe"),
            alert(error),
        ]
    return [block for each in found for block in _training_blocks(title, each)]


def _training_blocks(title: str, found: Training) -> list[Block]:
    name, schedule = found.title, found.schedule
    ends = " from both ends" if found.name == "dualpipe" else ""
    forms = "" if not found.idle_seconds else f" Idle seconds by closed forms: {FORMS[found.name]}."
    return [
        heading(f"{title}: {name}, {schedule.micro_batches} micro-batches{ends}"),
        gantt(f"{name}, a row per stage", timeline.of_training(schedule, name)),
        table(f"{name} in figures", ["", "value"], _training_rows(found)),
        note(f"Assumes {ASSUMPTION}.{forms}"),
    ]


def _training_rows(found: Training) -> list[list[str]]:
    times, schedule = found.times, found.schedule
    share = 1 - min(schedule.busy_seconds) / schedule.makespan
    return [
        ["whole schedule", format_seconds(schedule.makespan)],
        ["bubble of the stage that idles most", f"{share:.2%}"],
        ["forward chunk", format_seconds(times.forward)],
        ["backward chunk", format_seconds(times.backward)],
        *([["both together", format_seconds(times.overlapped)]] if found.name.startswith("dual") else []),
        *([f"a stage idles, {TITLES[name]}", format_seconds(spent)] for name, spent in found.idle_seconds),
        *(
            [["a stage idles between its first and last cell", format_seconds(found.idle_inside)]]
            if found.name == "zb_v"
            else []
        ),
    ]
