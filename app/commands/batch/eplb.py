"""``tokentrip eplb``: replicate and pack experts by load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json, print_table
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.eplb_scenario import Rebalanced
    from tracer.scenario.scenario import Scenario


@click.command("eplb")
@scenario_argument
@click.option("--slots", type=int, help="Expert slots in all; one more a GPU than experts need by default.")
@click.option("--groups", type=int, help="Expert groups; the model's when left out.")
@click.option("--tokens", type=int, default=20_000, show_default=True, help="Tokens to draw.")
@click.option("--picks", type=click.Path(exists=True, path_type=Path), help="Recorded picks instead.")
@click.option(
    "--counts",
    type=click.Path(exists=True, path_type=Path),
    help="Expert counts [layers, experts] instead: .npy .npz .json .csv .pt, or TensorRT-LLM's folder.",
)
@click.option(
    "--popularity", type=click.Choice(["uniform", "zipf", "hot"]), default="zipf", show_default=True
)
@click.option("--skew", type=float, default=0.5, show_default=True, help="Of zipf, or of the hot expert.")
@json_option("Slot tables (a scenario's placement) and loads as JSON.")
def eplb_command(scenario: Scenario, as_json: bool, **options: Any) -> None:
    """Balance a scenario's experts (DeepSeek's EPLB): loads and IB bytes before and after.

    \b
    Example:
      tokentrip eplb deepseek-v3-prefill-ep32 --slots 288 --tokens 4096
      tokentrip eplb deepseek-v3-prefill-ep32 --counts logical_count.npy
    """
    from tracer.batch.eplb import one_more_slots
    from tracer.batch.eplb_scenario import rebalanced

    experts = scenario.model.need("experts", "balance experts")
    slots = options["slots"] or one_more_slots(experts, scenario.mesh.ep)
    if options["counts"] is not None:
        _by_counts(scenario, options, slots, as_json=as_json)
        return
    found = rebalanced(scenario, _picks(scenario, options), slots=slots, groups=options["groups"])
    if as_json:
        print_json(found.to_dict())
        return
    _print(found, slots)


def _by_counts(scenario: Scenario, options: dict[str, Any], slots: int, *, as_json: bool) -> None:
    from tracer.batch.counts.files import read_counts
    from tracer.batch.counts.load_census import rebalanced_counts

    if options["picks"] is not None:
        raise ConfigError("--picks", str(options["picks"]), "goes not with --counts", "drop one of the two")
    counts = read_counts(options["counts"], scenario)
    found = rebalanced_counts(scenario, counts, slots=slots, groups=options["groups"])
    if as_json:
        print_json(found.to_dict())
        return
    rows = [
        (name, f"{census.imbalance.mean():.4f}", f"{census.imbalance.max():.4f}")
        for name, census in (("before", found.before), ("after", found.after))
    ]
    click.echo(
        f"{found.replication.policy} policy, {slots} slots, loads of {counts.picks:,.0f} recorded picks"
    )
    print_table(("", "GPU max/mean", "worst layer"), rows)
    click.echo("max/mean is the mean over layers; an expert's load is shared evenly by its replicas.")
    for note in found.after.notes:
        click.echo(f"note: {note}")


def _picks(scenario: Scenario, options: dict[str, Any]) -> Any:
    from tracer.batch.picks.draws import DrawnPicks, popularity_of

    model = scenario.model
    if options["picks"] is not None:
        from tracer.batch.picks.files import read_picks

        return read_picks(options["picks"], model)
    weights = popularity_of(options["popularity"], model.need("experts", "draw picks"), skew=options["skew"])
    return DrawnPicks.of_model(model, options["tokens"], popularity=weights, seed=scenario.seed)


def _print(found: Rebalanced, slots: int) -> None:
    from tracer.display import format_bytes

    report = found.to_dict()
    rows = []
    for name in ("before", "after"):
        part = report[name]
        bytes_by_tier = {
            t: part["bytes_by_tier"][t] + part["combine_bytes_by_tier"][t] for t in ("nvlink", "ib")
        }
        rows.append(
            (
                name,
                f"{part['gpu_imbalance']:.4f}",
                f"{part['worst_layer']:.4f}",
                format_bytes(bytes_by_tier["nvlink"]),
                format_bytes(bytes_by_tier["ib"]),
            )
        )
    planned = report["planned"]
    rows.append(("plan", f"{planned['gpu_imbalance']:.4f}", f"{planned['worst_layer']:.4f}", "", ""))
    click.echo(f"{found.replication.policy} policy, {slots} slots, loads of {found.before.tokens:,} tokens")
    print_table(("", "GPU max/mean", "worst layer", "NVLink", "IB"), rows)
    click.echo(
        "Bytes of dispatch and combine, all ranks and layers; max/mean is the mean over layers. "
        "The plan shares loads evenly over replicas; tokens go to the nearest one."
    )
