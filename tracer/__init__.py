"""The engine, in the order a token travels.

``errors`` and ``axes`` fix the words; ``rank_grid`` and ``mesh`` say which rank is in which group;
``cluster`` says where a rank sits and which link joins two; ``model_spec``, ``expert_placement`` and
``routing`` say what is computed and which experts a token picks; ``plan``, ``landing`` and ``scenario``
put one question together; ``hop`` and ``hops`` move the token, ``itinerary`` orders the hops, and
``trip`` counts them; ``several`` puts many on one map. ``residency`` says what each GPU holds, and
``fits`` whether it fits. After prefill: ``kv_layout`` and ``kv_owners`` say where K/V stays, ``pools`` and
``last_trip`` how it moves to a decode pool, ``decode_attention`` how a new token's query reaches it;
``generation`` joins the legs, ``phases`` puts both side by side, ``lockstep`` lets replicas wait.
Names load when they are first used, so that importing the engine costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.axes import Axis
    from tracer.cluster import Cluster, Link, Tier
    from tracer.dtype import Dtypes
    from tracer.errors import ConfigError
    from tracer.expert_placement import Placement
    from tracer.fits import Fits, check_fits
    from tracer.generation import Generation, generate
    from tracer.hop import Hop, HopKind, Role, Transfer
    from tracer.kv_owners import KvOwners
    from tracer.last_trip import LastTrip
    from tracer.mesh import Mesh
    from tracer.model_spec import ModelSpec
    from tracer.phases import phase_table
    from tracer.plan import Contract, Plan, Sp
    from tracer.pools import Pools
    from tracer.presets import load_scenario, preset_names
    from tracer.rank_grid import RankGrid
    from tracer.residency import Residency, residency_of
    from tracer.scenario import Scenario, Token
    from tracer.several import Trips, take_trips
    from tracer.trip import Trip, TripLog, take_trip

_HOMES = {
    "Axis": "axes",
    "Cluster": "cluster",
    "ConfigError": "errors",
    "Contract": "plan",
    "Dtypes": "dtype",
    "Fits": "fits",
    "Generation": "generation",
    "Hop": "hop",
    "HopKind": "hop",
    "KvOwners": "kv_owners",
    "LastTrip": "last_trip",
    "Link": "cluster",
    "Mesh": "mesh",
    "ModelSpec": "model_spec",
    "Placement": "expert_placement",
    "Plan": "plan",
    "Pools": "pools",
    "RankGrid": "rank_grid",
    "Residency": "residency",
    "Role": "hop",
    "Scenario": "scenario",
    "Sp": "plan",
    "Tier": "cluster",
    "Token": "scenario",
    "Transfer": "hop",
    "Trip": "trip",
    "TripLog": "trip",
    "Trips": "several",
    "check_fits": "fits",
    "generate": "generation",
    "load_scenario": "presets",
    "phase_table": "phases",
    "preset_names": "presets",
    "residency_of": "residency",
    "take_trip": "trip",
    "take_trips": "several",
}

__all__ = [
    "Axis",
    "Cluster",
    "ConfigError",
    "Contract",
    "Dtypes",
    "Fits",
    "Generation",
    "Hop",
    "HopKind",
    "KvOwners",
    "LastTrip",
    "Link",
    "Mesh",
    "ModelSpec",
    "Placement",
    "Plan",
    "Pools",
    "RankGrid",
    "Residency",
    "Role",
    "Scenario",
    "Sp",
    "Tier",
    "Token",
    "Transfer",
    "Trip",
    "TripLog",
    "Trips",
    "check_fits",
    "generate",
    "load_scenario",
    "phase_table",
    "preset_names",
    "residency_of",
    "take_trip",
    "take_trips",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"tracer.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
