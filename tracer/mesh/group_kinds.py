"""Groups of a stage that sit alike on the cluster: one of each kind, and how many there are.

Two groups are alike when one is the other moved along by whole NVLink domains. A place p of a stage holds
rank r(p) = p//S·S·P + s·S + p%S (S the stride of pp, P its size, s the stage), so moving p by
M = S·(g/gcd(g, S·P)) moves the rank by whole domains of g GPUs; where pp is the slowest axis, M = g. So a
group is known by its smallest place modulo M, and a walk over all ranks becomes one over M remainders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from tracer.mesh.axes import EXPERT_AXES, Axis
from tracer.mesh.grid import RankGrid, RankGroup, check_listable

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.mesh.mesh import Mesh


@dataclass(frozen=True, slots=True)
class GroupKind:
    """One group of a kind as ranks in the order of its axes, and how many groups are like it."""

    ranks: tuple[int, ...]
    count: int


def group_kinds(mesh: Mesh, cluster: Cluster, axes: tuple[Axis, ...], stage: int) -> Iterator[GroupKind]:
    """The kinds of groups along ``axes`` (dense ones without pp, or expert ones) in a stage.

    Raises:
        ConfigError: for a mesh of more ranks than can be listed.
    """
    check_listable(mesh.world_size)
    grid = mesh.expert if set(axes) & set(EXPERT_AXES) else _dense_places(mesh)
    own = [(grid.size_of(name), grid.stride_of(name)) for name in grid.names if name in axes]
    rest = [(grid.size_of(name), grid.stride_of(name)) for name in grid.names if name not in axes]
    steps = tuple(step for step in own if step[0] > 1)
    for base, count in _bases(tuple(rest), _lap(mesh, cluster)).items():
        places = RankGroup(base, steps)
        yield GroupKind(tuple(mesh.rank_in_stage(stage, place) for place in places), count)


def place_kinds(mesh: Mesh, cluster: Cluster) -> dict[int, int]:
    """One place of a stage for each remainder, with how many places are like it, in every stage.

    Raises:
        ConfigError: for a mesh of more ranks than can be listed.
    """
    check_listable(mesh.world_size)
    return _bases(((mesh.stage_size, 1),), _lap(mesh, cluster))


def _dense_places(mesh: Mesh) -> RankGrid:
    """The dense axes of one stage, over its places."""
    names = tuple(name for name in mesh.dense.names if name != Axis.PP)
    return RankGrid(names, tuple(mesh.dense.size_of(name) for name in names))


def _lap(mesh: Mesh, cluster: Cluster) -> int | None:
    """M, or None where ranks lie on the cluster as a table says."""
    if cluster.placement is not None:
        return None
    domain, stride = cluster.gpus_per_nvlink_domain, mesh.dense.stride_of(Axis.PP)
    if mesh.stages == 1 or stride == mesh.stage_size:
        return domain
    return stride * (domain // gcd(domain, stride * mesh.stages))


def _bases(axes: tuple[tuple[int, int], ...], lap: int | None) -> dict[int, int]:
    """The smallest place of each kind with how many there are, for all places that some axes reach."""
    found = {0: (0, 1)}
    for size, stride in axes:
        period = size if lap is None else min(size, lap // gcd(lap, stride))
        laps, left = divmod(size, period)
        after: dict[int, tuple[int, int]] = {}
        for base, count in found.values():
            for step in range(period):
                place = base + step * stride
                key = place if lap is None else place % lap
                first, before = after.get(key, (place, 0))
                after[key] = (min(first, place), before + count * (laps + (step < left)))
        found = after
    return dict(found.values())
