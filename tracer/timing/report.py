"""What ``tokentrip time`` says of a scenario: the token's trip, a pass, overlap, pipeline, contract.

:func:`timelines_of` hands the same times to Gantt charts and trace viewers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum, format_seconds, left, right, text_table
from tracer.errors import ConfigError, whole_number
from tracer.mesh.hardware import GPU_FIGURES, Hardware, hardware_preset
from tracer.model.weight_format import WeightFormat
from tracer.scenario.plan import Contract, DispatchMode
from tracer.scenario.step import mesh_line
from tracer.scenario.token import Phase
from tracer.timing import timeline
from tracer.timing.basis import Rates, rates_word
from tracer.timing.batch import TimedBatch
from tracer.timing.pass_rows import known_words, pass_rows
from tracer.timing.pass_time import PassTime, pass_batch, pass_time
from tracer.timing.rates import PEAK, Profile, rates_of
from tracer.timing.schedules.chunked_prompt import chunked_prompt
from tracer.timing.schedules.decode_pipeline import DecodePipeline, run_decode
from tracer.timing.schedules.overlap import MoeTimes, Overlap, overlap_two
from tracer.timing.schedules.pipeline import Pipeline, run_pipeline
from tracer.timing.schedules.training import trainings
from tracer.timing.schedules.virtual_stages import run_chunks
from tracer.timing.throughput import Throughput, half_beside_communication, throughput
from tracer.timing.weights.chooser import Choice, Workload, choose_contract
from tracer.timing.weights.group import MoeGroup
from tracer.trip.clock import LinkRates, TripTime, trip_time
from tracer.trip.trip import take_trip

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario
    from tracer.timing.timeline import Timeline
    from tracer.trip.trip import Trip


SCHEMA = 1
OVERLAPPED_LAYERS = 4


@dataclass(frozen=True, slots=True)
class TimeReport:
    """Times of one scenario; parts that cannot be had are None, and ``missing`` says why.

    ``chunk`` are the tokens per chunk where ``pipeline`` serves one prompt in chunks.
    """

    trip: Trip
    times: TripTime
    whole: PassTime | None
    overlap: Overlap | None
    pipeline: Pipeline | None
    decode: DecodePipeline | None
    choice: Choice | None
    missing: tuple[str, ...]
    chunk: int | None = None
    throughput: tuple[Throughput, ...] = ()

    @property
    def closed_bubble(self) -> float | None:
        """The closed form of the pipeline's bubble, where it has one."""
        return None if self.pipeline is None else self.pipeline.closed_bubble

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        overlap, pipeline, decode, choice = self.overlap, self.pipeline, self.decode, self.choice
        return {
            "schema": SCHEMA,
            "scenario": self.trip.scenario.name,
            "trip": {"seconds": self.times.seconds, "assumption": self.times.assumption},
            "pass": self.whole and self.whole.to_dict(),
            "overlap": overlap
            and {
                name: getattr(overlap, name)
                for name in ("seconds", "sequential_seconds", "gain", "bound", "exposed_seconds")
            },
            "pipeline": pipeline
            and {
                "stages": pipeline.stages,
                "micro_batches": pipeline.micro_batches,
                **({} if pipeline.chunks == 1 else {"chunks": pipeline.chunks}),
                "seconds": pipeline.makespan,
                "bubble": pipeline.bubble,
                "bubble_closed_form": self.closed_bubble,
                **({} if self.chunk is None else {"chunk": self.chunk}),
            },
            "decode_pipeline": decode
            and {
                "stages": decode.stages,
                **({} if len(decode.stage_of) == decode.stages else {"chunks": len(decode.stage_of)}),
                "groups": decode.groups,
                "seconds_per_token": decode.seconds_per_token,
                "bubble": decode.bubble,
                "bubble_steady": decode.steady_bubble,
            },
            "choice": choice
            and {
                "contract": choice.contract,
                "reason": choice.reason,
                "copy_seconds": choice.copy_seconds,
                "window_seconds": choice.window_seconds,
                "checks": [{"name": c.name, "holds": c.holds, "why": c.why} for c in choice.checks],
            },
            "throughput": [each.to_dict() for each in self.throughput],
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        return report_text(self)


def time_report(
    scenario: Scenario,
    *,
    tokens: int | None = None,
    micro_batches: int = 8,
    chunk: int | None = None,
    profile: str | Profile = PEAK,
    hardware: str | None = None,
    moe_times: MoeTimes | None = None,
    rates: Rates | str = Rates.CALIBRATED,
    imbalance: float = 1.0,
) -> TimeReport:
    """Time a scenario: ``tokens`` new tokens per replica, ``micro_batches`` of them, a profile's rates.

    ``chunk`` sends one prompt through the pipeline in chunks of so many tokens, in place of micro-batches.
    ``hardware`` names the GPU for FLOPs and memory where the cluster names none, or one without them.
    ``moe_times`` are overlapped, halved, instead of those computed.
    ``rates`` is ``calibrated`` (measured kernels, where there are any) or ``peak`` (floors by the data
    sheet); the trip's links are timed alone either way. A profile other than ``peak`` times all that moves.
    ``imbalance`` is the picks of the busiest GPU of experts by their mean, as a census of loads gives it.

    Raises:
        ConfigError: for a number below 1, or a profile, GPU or word for ``rates`` that is unknown.
    """
    if chunk is not None and scenario.decodes:
        raise ConfigError("chunk", chunk, "divides a prompt, and decode has none", "leave it out")
    links, chosen = rates_of(profile, LinkRates.of(scenario.cluster)), rates_word(rates)
    named = None if profile == PEAK else links
    own = profile.name if isinstance(profile, Profile) else profile
    name = "the cluster's" if profile == PEAK else own
    trip = take_trip(scenario)
    missing: list[str] = []
    gpu = _hardware(scenario, hardware, missing)
    whole = overlap = pipeline = decode = choice = None
    served: tuple[Throughput, ...] = ()
    if gpu is not None:
        how = {"rates": chosen, "links": named, "rates_name": name, "imbalance": imbalance}
        whole = _pass(scenario, gpu, tokens, missing, **how)
    if gpu is not None and whole is not None:
        half = _half(scenario, gpu, whole, named, missing)
        overlap = None if half is None else _overlap(whole, half)
        batch = pass_batch(scenario, tokens)
        if scenario.phase is Phase.DECODE:
            decode = _decode(whole, micro_batches, missing)
        else:
            pipeline = _pipeline(whole, micro_batches, missing)
            if chunk is not None and pipeline is not None:
                pipeline = chunked_prompt(scenario, gpu, chunk, named, chosen)
                batch = TimedBatch.prompts(scenario.token.prompt)
        served = throughput(whole, batch, half, pipeline, decode, chunked=chunk is not None)
        choice = _choice(scenario, gpu, whole, links, missing)
    times = trip_time(trip, links, name)
    if moe_times is not None:
        overlap = overlap_two(moe_times, layers=OVERLAPPED_LAYERS)
    used = chunk if pipeline else None
    return TimeReport(trip, times, whole, overlap, pipeline, decode, choice, tuple(missing), used, served)


_FIGURE_KEYS = tuple(f"cluster.{name}" for name in GPU_FIGURES)


def _hardware(scenario: Scenario, named: str | None, missing: list[str]) -> Hardware | None:
    """The named GPU, or the cluster's; None when there is none or it has no FLOPs."""
    hardware = gpu_of(scenario, named)
    if hardware is None:
        missing.append("the cluster names no hardware: give --hardware for times of arithmetic")
        return None
    unknown = [name for name in ("bf16_flops", "hbm_bytes_per_s") if getattr(hardware, name) is None]
    if unknown:
        keys = " and ".join(f"cluster.{name}" for name in unknown)
        missing.append(
            f"no source states {' and '.join(unknown)} of {hardware.name}: state {keys}, or give --hardware, "
            "for times of arithmetic"
        )
        return None
    return hardware


def gpu_of(scenario: Scenario, named: str | None) -> Hardware | None:
    """The named GPU as it ships, else the cluster's with the figures stated there, if there is one."""
    if named is None or named == scenario.cluster.hardware:
        return scenario.cluster.gpu
    return hardware_preset(named)


def _pass(
    scenario: Scenario, gpu: Hardware, tokens: int | None, missing: list[str], **how: Any
) -> PassTime | None:
    """The pass; None where no source states a rate that the model's formats need."""
    if tokens is not None:
        whole_number("tokens", tokens)
    try:
        return pass_time(scenario, gpu, tokens=tokens, **how)
    except ConfigError as error:
        # A rate that the model's weights need and no source states; all else that is wrong is an error.
        if error.field not in _FIGURE_KEYS:
            raise
        missing.append(f"times of arithmetic: {error}, or give --hardware")
        return None


def _half(
    scenario: Scenario, hardware: Hardware, whole: PassTime, links: LinkRates | None, missing: list[str]
) -> MoeTimes | None:
    """A MoE layer of half the tokens beside the other half's communication; None where nothing overlaps."""
    if whole.moe_times is None:
        missing.append("overlap: no tokens move in a MoE layer")
        return None
    if whole.tokens < 2:
        missing.append("overlap: one token cannot be split in two")
        return None
    half = pass_time(
        scenario,
        hardware,
        tokens=whole.tokens,
        parts=2,
        rates=whole.rates,
        links=links,
        like=whole,
        imbalance=whole.imbalance,
    )
    low = whole.traffic.scenario.plan.dispatch is DispatchMode.LOW_LATENCY
    return half_beside_communication(half, low_latency=low)


def _overlap(whole: PassTime, half: MoeTimes) -> Overlap:
    """Two micro-batches of half the tokens, over four layers: long enough for the steady state to show."""
    return overlap_two(whole.moe_times or half, half, layers=OVERLAPPED_LAYERS)


def _pipeline(whole: PassTime, micro_batches: int, missing: list[str]) -> Pipeline | None:
    chunks = whole.traffic.scenario.chunks
    if len(whole.stage_seconds) < 2:
        missing.append("pipeline: one stage")
        return None
    stage_of = tuple(chunk.stage for chunk in chunks)
    # A chunk without layers passes rows on at once: it has no place in a schedule of work.
    if not all(chunk.layers for chunk in chunks):
        missing.append("pipeline: a chunk without layers is not timed")
        return None
    seconds = [[each] * micro_batches for each in whole.token_chunk_seconds]
    if len(chunks) == len(whole.stage_seconds):
        return run_pipeline(seconds, whole.send_seconds)
    return run_chunks(seconds, stage_of, whole.send_seconds)


def _decode(whole: PassTime, groups: int, missing: list[str]) -> DecodePipeline | None:
    """Sixteen tokens of each group of requests through chunks as slow as the slowest."""
    if len(whole.token_stage_seconds) < 2:
        missing.append("pipeline: one stage")
        return None
    chunks = whole.traffic.scenario.chunks
    if not all(chunk.layers for chunk in chunks):
        missing.append("pipeline: a chunk without layers is not timed")
        return None
    stage_of = tuple(chunk.stage for chunk in chunks)
    return run_decode(stage_of, groups, 16, max(whole.token_chunk_seconds), whole.send_seconds)


def _choice(
    scenario: Scenario, hardware: Hardware, whole: PassTime, rates: LinkRates, missing: list[str]
) -> Choice | None:
    """Tokens against weights in one dispatch group, attention data-parallel."""
    try:
        group = contract_group(scenario, hardware, rates)
        if group is None:
            missing.append("contract: no dispatch group")
            return None
        return choose_contract(
            group,
            Workload(_batch(scenario, whole)),
            tp=scenario.mesh.tp,
            nvlink_domains=_nvlink_domains(scenario),
            exchange_seconds=exact_sum(each.floor_seconds for each in whole.exchange.values())
            if whole.exchange
            else None,
        )
    except ConfigError as error:
        missing.append(f"contract: {error}")
        return None


def contract_group(scenario: Scenario, hardware: Hardware, rates: LinkRates) -> MoeGroup | None:
    """The token's dispatch group as the contest of contracts takes it; None where there is none.

    Raises:
        ConfigError: for a group that cannot hold every expert.
    """
    ranks = scenario.mesh.dispatch_size
    if not scenario.model.moe_layers or ranks < 2 or scenario.plan.contract is Contract.TP:
        return None
    fabric = rates.nvlink if _nvlink_domains(scenario) == 1 else rates.ib
    copies = "all" if scenario.plan.contract is Contract.AG_RS else "distinct"
    return MoeGroup(_stored(scenario), hardware, ranks, fabric, copies)


def _nvlink_domains(scenario: Scenario) -> int:
    """NVLink domains that the token's dispatch group spans."""
    members = scenario.mesh.group(scenario.home, ("etp", "ep"))
    return len({scenario.cluster.nvlink_domain_of(rank) for rank in members})


def _stored(scenario: Scenario) -> ModelSpec:
    """The model, with the scenario's weight dtype where it states no storage."""
    model = scenario.model
    return model if model.weights else replace(model, weights=WeightFormat(scenario.dtype.weights))


def _batch(scenario: Scenario, whole: PassTime) -> TimedBatch:
    """The requests of one rank when attention is data-parallel over the replica's ranks."""
    each = max(1, whole.tokens // scenario.mesh.replica_size)
    if scenario.phase is Phase.DECODE:
        return TimedBatch.decoding(each, scenario.token.prompt)
    sequences = max(1, each // scenario.token.prompt)
    return TimedBatch.prompts(max(1, each // sequences), sequences)


def timelines_of(report: TimeReport) -> list[Timeline]:
    """The trip, and where they are there the two-batch overlap and the pipeline of the phase."""
    lines = [timeline.of_trip(report.trip, report.times)]
    if report.overlap is not None:
        lines.append(timeline.of_streams(report.overlap.placed, "two-batch overlap"))
    if report.pipeline is not None:
        lines.append(timeline.of_pipeline(report.pipeline))
    if report.decode is not None:
        lines.append(timeline.of_decode(report.decode))
    return lines


def _training_lines(report: TimeReport) -> list[str]:
    """What virtual stages are for: their schedules in training, one line each."""
    whole = report.whole
    if whole is None or report.pipeline is None or whole.traffic.scenario.plan.chunks == 1:
        return []
    try:
        found = trainings(whole, report.pipeline.micro_batches)
    except ConfigError as error:
        return [f"in training: {error}"]
    lines = []
    for each in found:
        schedule = each.schedule
        share = 1 - min(schedule.busy_seconds) / schedule.makespan
        closed = "".join(f", closed form {format_seconds(spent)} a stage" for _, spent in each.idle_seconds)
        lines.append(
            f"in training, {each.title}: {schedule.micro_batches} micro-batches in "
            f"{format_seconds(schedule.makespan)}, bubble {share:.1%}{closed}"
        )
    return lines


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
        stages, batches = report.pipeline.stages, report.pipeline.micro_batches
        laps = f" of {report.pipeline.chunks} chunks" if report.pipeline.chunks > 1 else ""
        work = f"{batches} micro-batches, each such a pass"
        if report.chunk is not None:
            work = f"{batches} chunks of one prompt, {report.chunk:,} tokens each"
        closed = ""
        if report.closed_bubble is not None:
            closed = f" (closed form for even stages and free sends: {report.closed_bubble:.1%})"
        lines += [
            "",
            f"pipeline: {stages} stages{laps} x {work}, in "
            f"{format_seconds(report.pipeline.makespan)}, bubble {report.pipeline.bubble:.1%}{closed}",
        ]
        lines += _training_lines(report)
    if report.decode is not None:
        decode, steady = report.decode, report.decode.steady_bubble
        laps = f" of {len(decode.stage_of)} chunks in all" if len(decode.stage_of) > decode.stages else ""
        closed = "" if steady is None else f" (steady, free sends: {steady:.1%})"
        lines += [
            "",
            f"decode pipeline: {decode.groups} groups of requests over {decode.stages} stages{laps}, a token "
            f"every {format_seconds(decode.seconds_per_token)}, bubble {decode.bubble:.1%} over 16 tokens"
            f"{closed}",
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
    took = format_seconds(whole.seconds)
    yield f"one pass of {whole.tokens:,} tokens per replica: {took} through all stages"
    rows = list(pass_rows(whole))
    if whole.rates is Rates.PEAK:
        cells = [(each.name, format_seconds(each.seconds), each.binds) for each in rows]
        yield from text_table(_PEAK_COLUMNS, cells)
    else:
        yield f"  {known_words(whole)}"
        bases = list(dict.fromkeys(each.basis for each in rows))
        yield from text_table(
            _COLUMNS,
            [
                (
                    each.name,
                    format_seconds(each.seconds),
                    format_seconds(each.floor_seconds),
                    f"{each.binds} [{bases.index(each.basis) + 1}]",
                )
                for each in rows
            ],
        )
        yield from (f"  [{place}] {basis}" for place, basis in enumerate(bases, 1))
    yield f"  assumes {whole.assumption}"


_PEAK_COLUMNS = (left("a layer", 24), right("time", 9, gap=0), left("what binds"))
_COLUMNS = (left("a layer", 24), right("time", 9, gap=0), right("floor", 9, gap=0), left("what binds"))


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
