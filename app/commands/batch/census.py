"""``tokentrip census``: the whole batch."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.census.result import Census
    from tracer.batch.census.run import Progress
    from tracer.batch.picks.source import PickSource
    from tracer.scenario.scenario import Scenario

FORMATS = ["auto", "plain", "vllm", "sglang", "megatron", "logits"]
QUIET_SECONDS = 1.0
INTERRUPTED = 130


@click.command("census")
@scenario_argument
@click.option("--tokens", type=int, help="Draw picks for this many tokens; one prompt a replica by default.")
@click.option(
    "--picks",
    type=click.Path(exists=True, path_type=Path),
    help=".npy .npz .parquet .json .pt .pth, or a folder.",
)
@click.option(
    "--counts",
    type=click.Path(exists=True, path_type=Path),
    help="Expert counts [layers, experts], no picks: .npy .npz .json .csv .pt, or TensorRT-LLM's folder.",
)
@click.option("--format", "layout", type=click.Choice(FORMATS), default="auto", help="What the file holds.")
@click.option("--column", help="Column of a Parquet file that lists the picks.")
@click.option("--sources", type=click.Path(exists=True, path_type=Path), help=".npy with each token's rank.")
@click.option("--popularity", type=click.Choice(["uniform", "zipf", "hot"]), default="uniform")
@click.option("--skew", type=float, default=1.0, help="Exponent of zipf, or weight of the hot expert.")
@click.option("--sticky", type=float, default=0.0, help="Chance that a token repeats the last one's picks.")
@click.option("--by-layer", is_flag=True, help="Each layer apart, too.")
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--scheduler", metavar="ADDRESS", help="Count on a Dask cluster; workers read the same path.")
@json_option("Matrices, loads and all else as JSON.")
def census_command(scenario: Scenario, as_json: bool, **options: Any) -> None:
    """Count every pick of a batch: copies, bytes, loads, imbalance, what de-duplication saves.

    Picks are [layers, tokens, k]; tokens are split evenly and in order over stage 0's ranks. Ctrl+C ends the
    count early: what is counted is printed, named as partial, with exit code 130. Counts [layers, experts],
    or [window, layers, experts], give loads and imbalance alone.

    \b
    Example:
      tokentrip census six-cuts --tokens 100000
      tokentrip census six-cuts --picks picks.npy --by-layer --json
      tokentrip census six-cuts --counts expert_distribution_recorder.pt
    """
    if options["counts"] is not None:
        _print_loads(scenario, options, as_json=as_json)
        return
    census = _take(scenario, options)
    _print(census, as_json, by_layer=options["by_layer"])
    if any(note.startswith("PARTIAL") for note in census.notes):
        sys.exit(INTERRUPTED)


def _print(census: Census, as_json: bool, *, by_layer: bool) -> None:
    if as_json:
        print_json(census.to_dict(by_layer=by_layer))
        return
    click.echo(str(census))
    if by_layer:
        for layer in census.layers:
            click.echo(f"\nlayer {layer}")
            click.echo(str(census.only(layer)).split("\n", 1)[1])


def _print_loads(scenario: Scenario, options: dict[str, Any], *, as_json: bool) -> None:
    from tracer.batch.counts.files import read_counts
    from tracer.batch.counts.load_census import load_census

    defaults: dict[str, object] = {
        "picks": None, "tokens": None, "sources": None, "popularity": "uniform", "sticky": 0.0,
        "scheduler": None, "column": None, "layout": "auto",
    }  # fmt: skip
    for name, default in defaults.items():
        if options[name] != default:
            flag = "--format" if name == "layout" else f"--{name}"
            raise ConfigError(flag, str(options[name]), "has no effect with --counts", "drop one of the two")
    found = load_census(scenario, read_counts(options["counts"], scenario))
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(found.text(by_layer=options["by_layer"]))


def _take(scenario: Scenario, options: dict[str, Any]) -> Census:
    from tracer.batch.census.homes import GivenHomes
    from tracer.batch.census.take import landed_census, need_numba, take_census

    need_numba()
    if options["picks"] is None and options["tokens"] is None:
        _only_with_a_batch(options)
        return landed_census(scenario, by_layer=options["by_layer"], threads=options["threads"])
    picks = _picks(scenario, options)
    homes = None
    if options["sources"] is not None:
        from tracer.batch.picks.files import read_sources

        homes = GivenHomes.of_ranks(scenario, read_sources(options["sources"]))
    how: dict[str, Any] = {
        "homes": homes,
        "by_layer": options["by_layer"],
        "check_repeats": options["picks"] is not None,
        "progress": _progress(),
        "partial": True,
    }
    if options["scheduler"] is not None:
        from tracer.batch.census.cluster import cluster_census

        return cluster_census(scenario, picks, options["scheduler"], **how)
    return take_census(scenario, picks, threads=options["threads"], **how)


def _only_with_a_batch(options: dict[str, Any]) -> None:
    """Refuse options that have no effect without --tokens or --picks."""
    defaults: dict[str, object] = {"sources": None, "popularity": "uniform", "sticky": 0.0, "scheduler": None}
    for name, default in defaults.items():
        if options[name] != default:
            raise ConfigError(
                f"--{name}", str(options[name]), "needs a batch", "add --tokens N or --picks FILE"
            )


def _picks(scenario: Scenario, options: dict[str, Any]) -> PickSource:
    model = scenario.model
    if options["picks"] is not None:
        if options["tokens"] is not None:
            raise ConfigError(
                "--tokens", options["tokens"], "is said by the file of picks", "drop one of the two"
            )
        from tracer.batch.picks.files import read_picks

        return read_picks(options["picks"], model, layout=options["layout"], column=options["column"])
    from tracer.batch.picks.draws import DrawnPicks, popularity_of

    weights = popularity_of(options["popularity"], model.need("experts", "draw picks"), skew=options["skew"])
    return DrawnPicks.of_model(
        model, options["tokens"], popularity=weights, sticky=options["sticky"], seed=scenario.seed
    )


def _progress() -> Progress | None:
    """Progress in blocks, on a terminal's standard error, from the second second on."""
    if not sys.stderr.isatty():
        return None
    started = last = time.monotonic()

    def show(done: int, blocks: int) -> None:
        """Print a progress line from time to time, once the count takes long."""
        nonlocal last
        now = time.monotonic()
        if now - started > QUIET_SECONDS and now - last > QUIET_SECONDS / 4:
            last = now
            click.echo(f"\r{done:,} of {blocks:,} blocks counted", nl=False, err=True)

    return show
