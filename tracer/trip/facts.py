"""Single figures of a trip by name, for sentences that must stay true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError, nearest
from tracer.mesh.axes import Axis
from tracer.trip.hop import Hop, HopKind, Part, Role, Where
from tracer.trip.hops.routes import expert_messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracer.trip.trip import Trip

WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
COUNTED_RANKS, NAMED_STAGES = 1 << 16, 64


def trip_fact(trip: Trip, name: str) -> str:
    """One fact; a name that ends in ``~`` spells a number up to twelve.

    >>> from tracer import load_scenario, take_trip
    >>> trip = take_trip(load_scenario("six-cuts"))
    >>> trip_fact(trip, "home"), trip_fact(trip, "nodes~"), trip_fact(trip, "expert_view")
    ('11', 'four', 'ep16 × pp2')

    Raises:
        ConfigError: when the trip has no such fact.
    """
    facts = trip_facts(trip)
    plain = name.removesuffix("~")
    if plain not in facts:
        raise ConfigError("fact", name, "is not one of this trip", nearest(plain, list(facts)))
    value = facts[plain]
    if isinstance(value, str):
        return value
    return WORDS[value] if name.endswith("~") and value < len(WORDS) else f"{value:,}"


def trip_facts(trip: Trip) -> dict[str, int | str]:
    """Facts by name; one of several has its number (from 0) after a dot.

    ``home.1`` is home in stage 1; ``picks.0``, ``expert_gpus.0`` belong to the first pick of the first MoE
    layer; ``relays.0`` is the first relay of its dispatch.
    """
    scenario = trip.scenario
    mesh, cluster = scenario.mesh, scenario.cluster
    named = range(min(mesh.stages, NAMED_STAGES))
    facts: dict[str, int | str] = {
        "gpus": mesh.world_size,
        "nodes": cluster.nvlink_domains,
        "gpus_per_node": cluster.gpus_per_nvlink_domain,
        "dense_view": _view(trip, ("tp", "cp", "dp", "pp")),
        "expert_view": _view(trip, ("etp", "ep", "edp", "pp")),
        "replicas": mesh.dp,
        "cp_chunks": 2 * mesh.cp,
        "stages": mesh.stages,
        "stage_gpus": mesh.stage_size,
        "stage_nodes": len({cluster.nvlink_domain_of(rank) for rank in _first_stage(trip)}),
        "home": scenario.home,
        **_numbered(
            "home",
            (mesh.moved(scenario.home, Axis.PP, stage) for stage in named),
        ),
        **{name: value for name, value in trip.log.to_dict().items() if isinstance(value, int)},
    }
    model = scenario.model
    facts["first_stage_layers"] = scenario.stage_layers[0]
    if model.moe_layers and model.experts and model.top_k:
        facts |= {"experts": model.experts, "top_k": model.top_k}
        facts["experts_per_gpu"] = scenario.placement_of(model.layers).slots_on(0)
    return facts | _experts(trip)


def _numbered(name: str, values: Iterable[int]) -> dict[str, int]:
    return {f"{name}.{place}": value for place, value in enumerate(values)}


def _view(trip: Trip, axes: tuple[str, ...]) -> str:
    sizes = [(axis, trip.scenario.mesh.size_of(axis)) for axis in axes]
    return " × ".join(f"{axis}{size}" for axis, size in sizes if size > 1)


def _first_stage(trip: Trip) -> Iterable[int]:
    """Ranks of the first stage, as many as are counted."""
    mesh = trip.scenario.mesh
    return (mesh.rank_in_stage(0, position) for position in range(min(mesh.stage_size, COUNTED_RANKS)))


def _experts(trip: Trip) -> dict[str, int]:
    """Picks of the first MoE layer, the GPUs of their experts, and the relays."""
    hop = next((hop for hop in trip.hops if hop.kind is HopKind.DISPATCH), None)
    if hop is None:
        return {}
    scenario = trip.scenario
    home = scenario.mesh.moved(scenario.home, Axis.PP, hop.stage)
    picks = scenario.layer_picks()[hop.layer]
    where = Where(hop.layer, hop.stage, scenario.position, home, Part.MOE, picks)
    messages = expert_messages(scenario, where, home)
    return (
        _numbered("picks", picks)
        | _numbered("expert_gpus", (rank for _, rank in messages))
        | _numbered("relays", _relays(hop))
    )


def _relays(hop: Hop) -> Iterable[int]:
    return dict.fromkeys(transfer.src for transfer in hop.transfers if transfer.role is Role.FORWARD)
