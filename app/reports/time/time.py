"""Time: a pass, the pipeline, two-batch overlap, tokens against weights, and what stragglers cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from app.query.address import scenario_of
from app.reports.blocks import Block, choice_control, counts, heading, note, number_control, table
from app.reports.numbers import whole_of
from app.reports.time.contracts import contract_blocks, straggler_blocks
from app.reports.time.pipelines import gantt, pipeline_blocks, training_lines
from app.reports.time.serving import passes_blocks, serving_blocks
from tracer.display import format_seconds
from tracer.errors import one_of
from tracer.mesh.hardware import hardware_preset_names
from tracer.scenario.step import mesh_line
from tracer.scenario.token import Phase
from tracer.timing import timeline
from tracer.timing.basis import Rates
from tracer.timing.pass_rows import known_words, pass_rows
from tracer.timing.rates import PEAK, profile_names
from tracer.timing.report import TimeReport, time_report, timelines_of
from tracer.timing.trace import trace_of

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.timing.pass_time import PassTime

MICRO_BATCHES = 8
MOST_MICRO_BATCHES = 256
RATES = {"calibrated": "measured kernels", "peak": "peak rates, a floor"}
PHASES = {"": "as the scenario says", "prefill": "prefill", "decode": "decode"}


def time_report_blocks(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for what is wrong with the scenario, a number, a profile or a GPU.
    """
    report, batches = timed(query)
    scenario = report.trip.scenario
    profile, gpu = query.get("profile") or PEAK, query.get("hardware") or None
    return {
        "title": mesh_line(scenario),
        "controls": _controls(scenario, report, batches, query),
        "blocks": [
            counts("In all", _sums(report)),
            *_trip(report),
            *_pass(report),
            *pipeline_blocks(report, batches),
            *_overlap(report),
            *contract_blocks(scenario, report, gpu, profile),
            *straggler_blocks(scenario),
            *(serving_blocks() if report.choice else []),
            *(passes_blocks() if report.whole else []),
            *(note(f"Not timed: {reason}") for reason in report.missing),
        ],
        "traces": [{"from": "/api/trace", "ending": ".perfetto.json"}],
    }


def timed(query: dict[str, str]) -> tuple[TimeReport, int]:
    """The time report that an address asks for, and its micro-batches.

    Raises:
        ConfigError: for what is wrong with the scenario, a number, a phase, a profile or a GPU.
    """
    scenario = scenario_of(query)
    phase = one_of("timed", query.get("timed", ""), tuple(PHASES))
    if phase:
        scenario = scenario.with_phase(Phase(phase))
    tokens = whole_of(query, "tokens", None)
    batches = whole_of(query, "micro_batches", MICRO_BATCHES, most=MOST_MICRO_BATCHES) or MICRO_BATCHES
    profile, gpu = query.get("profile") or PEAK, query.get("hardware") or None
    rates = query.get("rates") or Rates.CALIBRATED
    report = time_report(
        scenario, tokens=tokens, micro_batches=batches, profile=profile, hardware=gpu, rates=rates
    )
    return report, batches


def time_trace(query: dict[str, str]) -> dict[str, Any]:
    """The timelines that the page draws, as a Chrome trace.

    Raises:
        ConfigError: as :func:`timed`.
    """
    report, batches = timed(query)
    return trace_of(*timelines_of(report), *training_lines(report, batches))


def _controls(scenario: Scenario, report: TimeReport, batches: int, query: dict[str, str]) -> list[Block]:
    tokens = report.whole.tokens if report.whole else scenario.token.prompt
    own = f"the cluster's ({scenario.cluster.hardware})" if scenario.cluster.hardware else "none"
    gpus = [("", own), *((name, name) for name in hardware_preset_names())]
    rates = [(PEAK, PEAK), *((name, name) for name in profile_names())]
    return [
        choice_control("timed", "Phase", query.get("timed", ""), PHASES.items()),
        number_control("tokens", "New tokens per replica", tokens, least=1),
        number_control("micro_batches", "Micro-batches, or groups in decode", batches, least=1),
        choice_control("hardware", "GPU", query.get("hardware", ""), gpus),
        choice_control("rates", "Times", query.get("rates") or Rates.CALIBRATED, RATES.items()),
        choice_control("profile", "Link rates", query.get("profile") or PEAK, rates),
    ]


def _sums(report: TimeReport) -> Iterator[tuple[str, str]]:
    yield "one token's trip on the links", format_seconds(report.times.seconds)
    if report.whole is not None:
        yield f"one pass of {report.whole.tokens:,} tokens", format_seconds(report.whole.seconds)
    if report.pipeline is not None:
        yield "of the pipeline is bubble", f"{report.pipeline.bubble:.1%}"
    if report.decode is not None:
        yield "a token of one request every", format_seconds(report.decode.seconds_per_token)
    if report.throughput:
        best = max(report.throughput, key=lambda each: each.tokens_per_s_gpu)
        yield "tokens per second per GPU", f"{best.tokens_per_s_gpu:,.0f}"
    if report.overlap is not None:
        yield "throughput by two-batch overlap", f"{report.overlap.gain:+.1%}"
    if report.choice is not None:
        yield "contract to run", report.choice.contract


def _trip(report: TimeReport) -> list[Block]:
    line = timeline.of_trip(report.trip, report.times)
    return [
        heading("One token's trip, hop by hop"),
        gantt("One token's trip on the links, a row per layer", line),
        note(f"Assumes {report.times.assumption}."),
    ]


def _pass(report: TimeReport) -> list[Block]:
    whole = report.whole
    if whole is None:
        return []
    measured = whole.rates is Rates.CALIBRATED
    heads = ["", "time", *(["floor"] if measured else []), "what binds it", *(["basis"] if measured else [])]
    return [
        heading(f"One pass of {whole.tokens:,} tokens per replica"),
        table("What a pass takes", heads, _pass_rows(whole)),
        *([note(f"{known_words(whole).capitalize()}.")] if measured else []),
        note(f"Assumes {whole.assumption}."),
        *(note(f"{str(each).capitalize()}.") for each in report.throughput),
    ]


def _pass_rows(whole: PassTime) -> Iterator[list[str]]:
    measured = whole.rates is Rates.CALIBRATED
    for each in pass_rows(whole):
        row = [each.name, format_seconds(each.seconds), format_seconds(each.floor_seconds), each.binds]
        yield [*row, each.basis] if measured else [*row[:2], row[3]]


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
        gantt(
            "Two batches on the streams, dispatch and combine under compute",
            timeline.of_streams(overlap.placed),
        ),
        table("Two-batch overlap in figures", ["", "value"], rows),
    ]
