"""``tokentrip time``: how long a scenario takes, and how well that agrees with what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json
from app.commands.cost.calculator import TimeCommand

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.serving.kv_stream import KvStream
    from tracer.timing.rates import Profile
    from tracer.timing.report import TimeReport
    from tracer.timing.schedules.overlap import MoeTimes
    from tracer.trip.clock import LinkRates


@click.command("time", cls=TimeCommand)
@scenario_argument
@click.option("--tokens", type=int, help="New tokens of each replica; decode: requests.")
@click.option("--micro-batches", default=8, show_default=True, help="Micro-batches in the pipeline.")
@click.option("--chunk", type=int, help="Send one prompt through the pipeline in chunks of so many tokens.")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    default=("peak",),
    show_default="peak",
    help="Link rates: peak, a fitted profile, or a file: nccl-tests or DeepEP output or a profiler's trace, "
    "which is fitted, or a saved profile. Several files: one for each tier.",
)
@click.option(
    "--save-profile",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the profile that was fitted as JSON, for --profile.",
)
@click.option(
    "--rates",
    default="calibrated",
    show_default=True,
    help="calibrated: measured kernels where there are any; peak: the data sheet's floors.",
)
@click.option("--hardware", help="Hardware for FLOPs and memory, when the cluster's states none.")
@click.option(
    "--loads",
    default="balanced",
    show_default=True,
    help="Experts' loads: balanced, power_law_x with its exponent, or a file of counts [layers, experts].",
)
@click.option(
    "--moe-times",
    metavar="ATTENTION,DISPATCH,SHARED,EXPERTS,COMBINE",
    help="Overlap these times of a MoE layer, in µs, instead of those computed.",
)
@click.option("--decode", metavar="SCENARIO", help="A decode pool: time the prompt's K/V on its way there.")
@click.option("--published", is_flag=True, help="Add every prediction beside its published measurement.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    help="Write the timelines as Chrome trace JSON (Perfetto, chrome://tracing).",
)
@json_option()
def time_command(
    scenario: Scenario,
    tokens: int | None,
    micro_batches: int,
    chunk: int | None,
    profiles: tuple[str, ...],
    save_profile: Path | None,
    rates: str,
    hardware: str | None,
    loads: str,
    moe_times: str | None,
    decode: str | None,
    published: bool,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Time a scenario: a token's trip, a pass, tok/s, overlap, pipeline, tokens against weights.

    A pass is timed by fits of measured kernels, each with its basis and expected error; --rates peak gives
    the physical floors. The trip is the links alone either way.

    One call alone, from fits of measurements: tokentrip time collective, gemm, attention, mla, dsa,
    linear-attention, quantize, moe, dispatch or combine; each has its own --help. A scenario file of such
    a name is reached as ./NAME.

    \b
    Example:
      tokentrip time six-cuts --tokens 4096
      tokentrip time deepseek-v3-prefill-ep32 --hardware h100 --tokens 16384 --published
      tokentrip time sglang-prefill-ep32 --decode sglang-decode-ep72
    """
    from tracer.timing.report import time_report

    chosen = _profile(scenario, profiles)
    if save_profile is not None:
        _save(chosen, save_profile)
    report = time_report(
        scenario,
        tokens=tokens,
        micro_batches=micro_batches,
        chunk=chunk,
        profile=chosen,
        hardware=hardware,
        moe_times=None if moe_times is None else _moe_times(moe_times),
        rates=rates,
        imbalance=_imbalance(scenario, loads, tokens),
    )
    stream = None if decode is None else _stream(scenario, decode, hardware)
    if trace is not None:
        from app.exports.files import write_whole

        write_whole(trace, trace_text(report))
    if as_json:
        _print_json(report, published, stream)
    else:
        _print_text(report, published, stream)


def _profile(scenario: Scenario, named: tuple[str, ...]) -> str | Profile:
    """A profile by name, or fitted to files: each later one keeps the tiers that it did not measure."""
    from dataclasses import replace

    from tracer.errors import ConfigError
    from tracer.trip.clock import LinkRates as Links

    if len(named) == 1 and not Path(named[0]).is_file():
        return named[0]
    links, found = Links.of(scenario.cluster), []
    for each in named:
        if not Path(each).is_file():
            raise ConfigError(
                "--profile", each, "is no file; several profiles are files", "give one name alone"
            )
        found.append(_profile_of_file(scenario, Path(each), links))
        links = found[-1].rates or links
    last, *before = reversed(found)
    collectives = tuple(fit for each in found for fit in each.collectives)
    name = "+".join(dict.fromkeys(each.name for each in found))
    setting = "; ".join(dict.fromkeys(each.setting for each in found))
    return replace(last, name=name, setting=setting, collectives=collectives) if before else last


def _save(profile: str | Profile, path: Path) -> None:
    """Write a profile as JSON."""
    import json

    from app.exports.files import write_whole
    from tracer.errors import ConfigError
    from tracer.timing import rates

    if profile == rates.PEAK:
        rule = "is what the data sheet says, and no measurement"
        raise ConfigError("--profile", profile, rule, "give --profile a file or a fitted profile to save")
    found = rates.profile(profile) if isinstance(profile, str) else profile
    write_whole(path, json.dumps(found.to_dict(), indent=2) + "\n")


def _profile_of_file(scenario: Scenario, path: Path, links: LinkRates) -> Profile:
    """A saved profile, or one fitted to nccl-tests or DeepEP output, or to a profiler's trace."""
    from tracer.runs.links import run_profile
    from tracer.runs.reading.files import read_run
    from tracer.scenario.files import read_text
    from tracer.timing.own_exchange import deepep_profile, is_deepep_output
    from tracer.timing.own_measurements import nccl_profile
    from tracer.timing.rates import read_profile

    if path.suffix in (".gz", ".pickle", ".pkl") or (path.suffix == ".json" and _is_trace(path)):
        return run_profile(path.name.split(".")[0], read_run([path]), scenario.cluster)
    text = read_text(path, "--profile")
    if path.suffix == ".json":
        return read_profile(text, str(path))
    fit = deepep_profile if is_deepep_output(text) else nccl_profile
    return fit(path.stem, text, links)


def _is_trace(path: Path) -> bool:
    """Whether a JSON file is a profiler's trace and not a saved profile, by its first bytes."""
    with path.open("rb") as file:
        return b'"method"' not in file.read(1 << 16)


def _imbalance(scenario: Scenario, loads: str, tokens: int | None) -> float:
    """Picks of the busiest GPU by their mean: of a named distribution, or of counts, layer by layer."""
    from tracer.timing.calibration.experts import BALANCED, expected_busiest_gpu, exponent_of
    from tracer.timing.pass_time import pass_batch

    if loads == BALANCED:
        return 1.0
    if Path(loads).exists():
        from tracer.batch.counts.files import read_counts
        from tracer.batch.counts.load_census import load_census

        return float(load_census(scenario, read_counts(Path(loads), scenario)).imbalance.mean())
    exponent_of(loads, "--loads")
    model, ep = scenario.model, scenario.mesh.ep
    group = pass_batch(scenario, tokens).tokens * ep / (scenario.mesh.tp * scenario.mesh.cp)
    experts, picks = model.need("experts", "spread loads"), model.need("top_k", "spread loads")
    busiest = expected_busiest_gpu(group, picks, experts - experts % ep, ep, loads)
    return max(1.0, busiest.rows * ep / (group * picks))


def _moe_times(text: str) -> MoeTimes:
    """Five times in µs, joined by commas."""
    from tracer.errors import ConfigError
    from tracer.timing.schedules.overlap import MoeTimes

    try:
        values = [float(value) * 1e-6 for value in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 5:
        raise ConfigError(
            "--moe-times", text, "must be five times in µs", "write --moe-times 400,200,50,300,200"
        )
    return MoeTimes(*values)


def _stream(scenario: Scenario, decode: str, hardware: str | None) -> KvStream:
    """The prompt's K/V streamed layer by layer behind prefill on the hardware that is timed."""
    from tracer.scenario.files import load_scenario
    from tracer.serving.kv_handover import kv_handover_of
    from tracer.serving.kv_stream import kv_stream

    return kv_stream(kv_handover_of(scenario, load_scenario(decode), whole=True), hardware)


def _print_text(report: TimeReport, published: bool, stream: KvStream | None) -> None:
    """The report, then what was asked beside it."""
    click.echo(str(report))
    if stream is not None:
        click.echo(f"K/V to the decode pool: {stream}")
    if published:
        from tracer.proof.published.all import all_comparisons, summary
        from tracer.proof.published.weights_text import weights_text

        tables = all_comparisons()
        click.echo("\n" + "\n\n".join(str(each) for each in tables))
        click.echo("\n" + summary(tables))
        click.echo("\n" + weights_text())


def _print_json(report: TimeReport, published: bool, stream: KvStream | None) -> None:
    from tracer.proof.published.all import all_comparisons

    tables = {"published": [each.to_dict() for each in all_comparisons()]} if published else {}
    moved = {} if stream is None else {"kv_stream": stream.to_dict()}
    print_json(report.to_dict() | moved | tables)


def trace_text(report: TimeReport) -> str:
    """The report's timelines as Chrome trace JSON."""
    from tracer.timing.report import timelines_of
    from tracer.timing.trace import to_perfetto

    return to_perfetto(*timelines_of(report))
