"""The engine, in the order a token travels.

``errors`` and ``axes`` fix the words; ``rank_grid`` and ``mesh`` say which rank is in which group;
``cluster`` says where a rank sits and which link joins two; ``model_spec``, ``expert_placement`` and
``routing`` say what is computed and which experts a token picks; ``plan``, ``landing`` and ``scenario``
put one question together; ``hop`` and ``hops`` move the token, ``itinerary`` orders the hops, and
``trip`` counts them. Names load when they are first used, so that importing the engine costs nothing.
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
    from tracer.hop import Hop, HopKind, Role, Transfer
    from tracer.mesh import Mesh
    from tracer.model_spec import ModelSpec
    from tracer.plan import Contract, Plan, Sp
    from tracer.presets import load_scenario, preset_names
    from tracer.rank_grid import RankGrid
    from tracer.scenario import Scenario, Token
    from tracer.trip import Trip, TripLog, take_trip

_HOMES = {
    "Axis": "axes",
    "Cluster": "cluster",
    "ConfigError": "errors",
    "Contract": "plan",
    "Dtypes": "dtype",
    "Hop": "hop",
    "HopKind": "hop",
    "Link": "cluster",
    "Mesh": "mesh",
    "ModelSpec": "model_spec",
    "Placement": "expert_placement",
    "Plan": "plan",
    "RankGrid": "rank_grid",
    "Role": "hop",
    "Scenario": "scenario",
    "Sp": "plan",
    "Tier": "cluster",
    "Token": "scenario",
    "Transfer": "hop",
    "Trip": "trip",
    "TripLog": "trip",
    "load_scenario": "presets",
    "preset_names": "presets",
    "take_trip": "trip",
}

__all__ = [
    "Axis",
    "Cluster",
    "ConfigError",
    "Contract",
    "Dtypes",
    "Hop",
    "HopKind",
    "Link",
    "Mesh",
    "ModelSpec",
    "Placement",
    "Plan",
    "RankGrid",
    "Role",
    "Scenario",
    "Sp",
    "Tier",
    "Token",
    "Transfer",
    "Trip",
    "TripLog",
    "load_scenario",
    "preset_names",
    "take_trip",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"tracer.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
