"""What the mesh says of one rank, and of all groups: as JSON values and as lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from tracer.display import left, text_table
from tracer.errors import ConfigError, nearest
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES
from tracer.mesh.grid import MAX_LISTED_RANKS, check_listable
from tracer.mesh.mesh import GROUP_NAMES
from tracer.scenario.scenario import with_model

if TYPE_CHECKING:
    from tracer.memory.residency import Residency
    from tracer.scenario.scenario import BareScenario

SCHEMA = 1
MAX_MEMBERS = 1 << 16
SHOWN_MEMBERS = 8


def rank_report(scenario: BareScenario, rank: int) -> dict[str, Any]:
    """One GPU: where it sits, its coordinates, its groups, and what it holds.

    A group of more than ``MAX_MEMBERS`` ranks is given as its count and first members. ``holds`` is null
    where the scenario lacks what it takes to say it, and ``holds_missing`` then names that.
    ``tracer/data/schemas/rank.schema.json`` describes the report.

    Raises:
        ConfigError: when the rank is outside the mesh.
    """
    mesh, cluster = scenario.mesh, scenario.cluster
    coordinates = mesh.coordinates(rank)
    held, missing = _held(scenario, rank)
    return {
        "schema": SCHEMA,
        "rank": rank,
        "node": cluster.node_of(rank),
        "local_index": cluster.local_index(rank),
        "island": cluster.nvlink_domain_of(rank),
        "coordinates": coordinates,
        "groups": {name: _members(mesh.group(rank, name)) for name in GROUP_NAMES},
        "holds": None if held is None else held.to_dict(),
        "holds_missing": missing,
    }


def _held(scenario: BareScenario, rank: int) -> tuple[Residency | None, str | None]:
    """What the GPU holds, or the reason why that cannot be said."""
    from tracer.memory.residency import residency_of

    try:
        return residency_of(with_model(scenario), rank), None
    except ConfigError as error:
        return None, str(error)


def _members(group: Sequence[int]) -> list[int] | dict[str, Any]:
    if len(group) <= MAX_MEMBERS:
        return list(group)
    return {"count": len(group), "first": list(islice(iter(group), SHOWN_MEMBERS))}


def groups_report(scenario: BareScenario, axis: str | None = None) -> dict[str, Any]:
    """Every group of every axis and every replica, or of one of them.

    Raises:
        ConfigError: for an unknown axis, or a mesh too large to list.
    """
    if axis is not None and axis not in GROUP_NAMES:
        raise ConfigError("axis", axis, "has no groups", nearest(axis, list(GROUP_NAMES)))
    names = GROUP_NAMES if axis is None else (axis,)
    check_listable(scenario.mesh.world_size)
    if axis is None and scenario.mesh.world_size > MAX_LISTED_RANKS >> 4:
        rule = f"of {scenario.mesh.world_size:,} ranks is more than all axes at once can be listed of"
        raise ConfigError("world_size", scenario.mesh.world_size, rule, "ask for one axis: --axis ep")
    return {
        "schema": SCHEMA,
        "world_size": scenario.mesh.world_size,
        "groups": {name: scenario.mesh.groups(name).tolist() for name in names},
    }


def rank_text(scenario: BareScenario, rank: int) -> str:
    """:func:`rank_report` as lines a person reads."""
    report = rank_report(scenario, rank)
    found = report["coordinates"]
    dense = " ".join(f"{axis}={found[axis]}" for axis in DENSE_AXES)
    expert = " ".join(f"{axis}={found[axis]}" for axis in EXPERT_AXES)
    lines = [
        f"GPU {rank}: node {report['node']}, local index {report['local_index']}",
        f"  dense view   {dense}",
        f"  expert view  {expert}",
        "  groups",
    ]
    rows = [(name, _short(members)) for name, members in report["groups"].items()]
    lines += text_table((left(width=8, gap=4), left(gap=0)), rows, headings=False)
    held, missing = _held(scenario, rank)
    lines.append("  holds")
    lines += [f"    {line}" for line in (f"not known: {missing}" if held is None else str(held)).splitlines()]
    return "\n".join(lines)


def _short(members: list[int] | dict[str, Any]) -> str:
    if isinstance(members, dict):
        return " ".join(map(str, members["first"])) + f" … ({members['count']:,} ranks)"
    shown = " ".join(map(str, members[:24]))
    return shown + (f" … ({len(members):,} ranks)" if len(members) > 24 else "")
