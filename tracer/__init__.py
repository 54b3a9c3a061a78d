"""The engine, in rooms, in the order a token travels; a room imports only rooms named before it.

``errors`` has every value check, ``display`` how results show themselves. ``mesh`` says which GPU is in
which group and where it sits; ``model`` what is computed; ``scenario`` puts one question together.
``frameworks`` reads launches into it. ``memory`` says what each GPU holds and whether it fits; ``trip``
follows a token hop by hop and counts; ``traffic`` has the closed forms of the same bytes; ``batch`` counts
a whole batch of tokens. ``timing`` puts times on all of it; ``serving`` joins passes and pools to an
answer; ``runs`` reads what really ran; ``proof`` runs the mesh on arrays and holds the figures of others
beside ours. ``data`` are the files. Names load when they are first used, so that importing the engine costs
nothing.
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
