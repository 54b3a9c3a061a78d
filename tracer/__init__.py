"""The engine, in the order a token travels.

``errors`` and ``axes`` fix the words; ``rank_grid`` and ``mesh`` say which rank is in which group;
``cluster`` says where a rank sits and which link joins two; ``model_spec``, ``expert_placement`` and
``routing`` say what is computed and which experts a token picks; ``plan``, ``landing`` and ``scenario``
put one question together; ``hop`` and ``hops`` move the token, ``itinerary`` orders the hops, and
``trip`` counts them; ``trips`` puts several tokens on one map. ``residency`` says what each GPU holds, and
``fits`` whether it fits. After prefill: ``kv_layout`` and ``kv_owners`` say where K/V stays, ``pools`` and
``kv_handover`` how it moves to a decode pool, ``decode_attention`` how a new token's query reaches it;
``generation`` joins the legs, ``phases`` puts both side by side, ``lockstep`` lets replicas wait.
Names load when they are first used, so that importing the engine costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.errors import ConfigError
    from tracer.memory.fits import Fits, check_fits
    from tracer.memory.kv_owners import KvOwners
    from tracer.memory.residency import Residency, residency_of
    from tracer.mesh.axes import Axis
    from tracer.mesh.cluster import Cluster, Link, Tier
    from tracer.mesh.grid import RankGrid
    from tracer.mesh.mesh import Mesh
    from tracer.model.dtype import Dtypes
    from tracer.model.spec import ModelSpec
    from tracer.scenario.deployment import Deployment
    from tracer.scenario.files import load_scenario, preset_names
    from tracer.scenario.placement import Placement
    from tracer.scenario.plan import Contract, Plan, Sp
    from tracer.scenario.scenario import BareScenario, Scenario
    from tracer.scenario.token import Phase, Token
    from tracer.serving.generation import Generation, generate
    from tracer.serving.kv_handover import KvHandover
    from tracer.serving.phases import phase_table
    from tracer.serving.pools import Pools
    from tracer.trip.hop import Hop, HopKind, Role, Transfer
    from tracer.trip.trip import Trip, TripLog, take_trip
    from tracer.trip.trips import Trips, take_trips

_HOMES = {
    "Axis": "mesh.axes",
    "BareScenario": "scenario.scenario",
    "Cluster": "mesh.cluster",
    "ConfigError": "errors",
    "Contract": "scenario.plan",
    "Deployment": "scenario.deployment",
    "Dtypes": "model.dtype",
    "Fits": "memory.fits",
    "Generation": "serving.generation",
    "Hop": "trip.hop",
    "HopKind": "trip.hop",
    "KvOwners": "memory.kv_owners",
    "KvHandover": "serving.kv_handover",
    "Link": "mesh.cluster",
    "Mesh": "mesh.mesh",
    "ModelSpec": "model.spec",
    "Phase": "scenario.token",
    "Placement": "scenario.placement",
    "Plan": "scenario.plan",
    "Pools": "serving.pools",
    "RankGrid": "mesh.grid",
    "Residency": "memory.residency",
    "Role": "trip.hop",
    "Scenario": "scenario.scenario",
    "Sp": "scenario.plan",
    "Tier": "mesh.cluster",
    "Token": "scenario.token",
    "Transfer": "trip.hop",
    "Trip": "trip.trip",
    "TripLog": "trip.trip",
    "Trips": "trip.trips",
    "check_fits": "memory.fits",
    "generate": "serving.generation",
    "load_scenario": "scenario.files",
    "phase_table": "serving.phases",
    "preset_names": "scenario.files",
    "residency_of": "memory.residency",
    "take_trip": "trip.trip",
    "take_trips": "trip.trips",
}

__all__ = [
    "Axis",
    "BareScenario",
    "Cluster",
    "ConfigError",
    "Contract",
    "Deployment",
    "Dtypes",
    "Fits",
    "Generation",
    "Hop",
    "HopKind",
    "KvHandover",
    "KvOwners",
    "Link",
    "Mesh",
    "ModelSpec",
    "Phase",
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
