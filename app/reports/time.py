"""Time: a pass, the pipeline, two-batch overlap, tokens against weights, and what stragglers cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from app.query import scenario_of
from app.reports.blocks import Block, chart, choice_control, counts, heading, note, number_control, table
from app.reports.numbers import whole_of
from app.reports.time_contracts import contract_blocks, straggler_blocks
from app.reports.time_serving import serving_blocks
from layouts.charts.gantt import gantt_figure
from tracer.hardware import hardware_preset_names
from tracer.timing import timeline
from tracer.timing.profiles import PEAK, profile_names
from tracer.timing.report import TimeReport, time_report
from tracer.timing.units import format_seconds
from tracer.trip_text import format_bytes, mesh_line

if TYPE_CHECKING:
    from tracer.scenario import Scenario
    from tracer.timing.pass_time import PassTime
    from tracer.timing.timeline import Timeline

MICRO_BATCHES = 8
MOST_MICRO_BATCHES = 256
COLOURS = {
    "all_gather": "var(--strong-tp)", "reduce_scatter": "var(--soft)", "all_reduce": "var(--strong-tp)",
    "kv_exchange": "var(--kv)", "query_send": "var(--kv)", "partials_return": "var(--soft)",
    "dispatch": "var(--token)", "combine": "var(--token-text)", "weight_pull": "var(--token)",
    "pp_send": "var(--strong-pp)", "attention": "var(--strong-tp)", "shared": "var(--kv)",
    "experts": "var(--strong-pp)", "even micro-batch": "var(--strong-tp)", "odd micro-batch": "var(--soft)",
}  # fmt: skip


def time_report_blocks(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for what is wrong with the scenario, a number, a profile or a GPU.
    """
    scenario = scenario_of(query)
    tokens = whole_of(query, "tokens", None)
    batches = whole_of(query, "micro_batches", MICRO_BATCHES, most=MOST_MICRO_BATCHES) or MICRO_BATCHES
    profile, gpu = query.get("profile") or PEAK, query.get("hardware") or scenario.cluster.hardware
    report = time_report(scenario, tokens=tokens, micro_batches=batches, profile=profile, hardware=gpu)
    return {
        "title": mesh_line(scenario),
        "controls": _controls(scenario, report, batches, query),
        "blocks": [
            counts("In all", _sums(report)),
            *_trip(report),
            *_pass(report),
            *_pipeline(report),
            *_overlap(report),
            *contract_blocks(scenario, report, gpu, profile),
            *straggler_blocks(scenario),
            *(serving_blocks() if report.choice else []),
            *(note(f"Not timed: {reason}") for reason in report.missing),
        ],
    }


def _controls(scenario: Scenario, report: TimeReport, batches: int, query: dict[str, str]) -> list[Block]:
    tokens = report.whole.tokens if report.whole else scenario.token.prompt
    own = f"the cluster's ({scenario.cluster.hardware})" if scenario.cluster.hardware else "none"
    gpus = [("", own), *((name, name) for name in hardware_preset_names())]
    rates = [(PEAK, PEAK), *((name, name) for name in profile_names())]
    return [
        number_control("tokens", "New tokens a replica", tokens, least=1),
        number_control("micro_batches", "Micro-batches", batches, least=1),
        choice_control("hardware", "GPU", query.get("hardware", ""), gpus),
        choice_control("profile", "Link rates", query.get("profile") or PEAK, rates),
    ]


def _sums(report: TimeReport) -> Iterator[tuple[str, str]]:
    yield "one token's trip on the links", format_seconds(report.times.seconds)
    if report.whole is not None:
        yield f"one pass of {report.whole.tokens:,} tokens", format_seconds(report.whole.seconds)
    if report.pipeline is not None:
        yield "of the pipeline is bubble", f"{report.pipeline.bubble:.1%}"
    if report.overlap is not None:
        yield "throughput by two-batch overlap", f"{report.overlap.gain:+.1%}"
    if report.choice is not None:
        yield "contract to run", report.choice.contract


def _gantt(name: str, line: Timeline) -> Block:
    colours = tuple(COLOURS.get(kind, "var(--ink)") for kind in line.kinds)
    figure = gantt_figure(line, colours=colours)
    figure.update_layout(title_text="")
    return chart(name, figure, height=min(720, 130 + 30 * len(line.rows)))


def _trip(report: TimeReport) -> list[Block]:
    line = timeline.of_trip(report.trip, report.times)
    return [
        heading("One token's trip, hop by hop"),
        _gantt("One token's trip on the links, a row a layer", line),
        note(f"Assumes {report.times.assumption}."),
    ]


def _pass(report: TimeReport) -> list[Block]:
    whole = report.whole
    if whole is None:
        return []
    return [
        heading(f"One pass of {whole.tokens:,} tokens a replica"),
        table("What a pass takes", ["", "time", "what binds it"], _pass_rows(whole)),
        note(f"Assumes {whole.assumption}."),
    ]


def _pass_rows(whole: PassTime) -> Iterator[list[str]]:
    for layer in (whole.attention, whole.shared, whole.experts, whole.dense):
        for each in layer.operators:
            binds = f"{each.bound}, {each.operator.intensity:.3g} FLOP/B, a layer"
            yield [each.operator.name, format_seconds(each.seconds), binds]
    for name, exchange in whole.exchange.items():
        sizes = [format_bytes(round(size)) for size in (exchange.nvlink_bytes, exchange.ib_bytes)]
        binds = f"{exchange.binding or 'nothing'}: {sizes[0]} NVLink, {sizes[1]} IB a GPU, a layer"
        yield [name, format_seconds(exchange.seconds), binds]
    for line in whole.traffic.lines:
        if not (line.axis == "ep" and whole.exchange):
            name = f"{line.axis.upper()} {line.part.replace('_', ' ')}"
            yield [name, format_seconds(line.seconds), f"{line.tier or 'nothing'}, a {line.per}"]


def _pipeline(report: TimeReport) -> list[Block]:
    pipeline = report.pipeline
    if pipeline is None:
        return []
    stages, batches = pipeline.start.shape
    rows = [
        ["whole pipeline", format_seconds(pipeline.makespan)],
        ["bubble", f"{pipeline.bubble:.2%}"],
        ["bubble by (S-1)/(M+S-1), even stages and free sends", f"{report.closed_bubble:.2%}"],
    ]
    return [
        heading(f"Pipeline: {stages} stages, {batches} micro-batches"),
        _gantt("The pipeline, a row a stage", timeline.of_pipeline(pipeline)),
        table("The pipeline in figures", ["", "value"], rows),
    ]


def _overlap(report: TimeReport) -> list[Block]:
    overlap = report.overlap
    if overlap is None:
        return []
    rows = [
        ["in sequence", format_seconds(overlap.sequential_seconds)],
        ["overlapped", format_seconds(overlap.seconds)],
        ["throughput", f"{overlap.gain:+.1%}"],
        ["throughput at most", f"{overlap.bound:+.1%}"],
        ["communication", format_seconds(overlap.communication_seconds)],
        ["communication left exposed", format_seconds(overlap.exposed_seconds)],
    ]
    return [
        heading("Two-batch overlap: four MoE layers, half of the tokens each"),
        _gantt(
            "Two batches on the streams, dispatch and combine under compute",
            timeline.of_streams(overlap.placed),
        ),
        table("Two-batch overlap in figures", ["", "value"], rows),
    ]
