"""Replicas in lockstep: who waits for whom at each MoE layer, dummy batches, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum
from tracer.errors import ConfigError, finite_number
from tracer.mesh.axes import Axis
from tracer.mesh.grid import check_listable
from tracer.scenario.plan import Contract

if TYPE_CHECKING:
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Barrier:
    """One MoE layer: when each replica arrives, and how long it waits for the slowest it meets.

    Both in the unit of the loads, ``[dp]``; ``slowest`` names for each replica the one it waits for.
    """

    layer: int
    arrivals: tuple[float, ...]
    waits: tuple[float, ...]
    slowest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LockstepStep:
    """One forward pass of all replicas with unequal loads. ``print`` shows who waits and the price.

    ``groups`` are the replicas that meet; ``dummies`` those with no work of their own, which run a dummy
    batch so that the others' all-to-alls do not hang. ``ends`` is when each replica is done, ``[dp]``.
    """

    groups: tuple[tuple[int, ...], ...]
    dummies: tuple[int, ...]
    meetings: tuple[Barrier, ...]
    ends: tuple[float, ...]
    gpus_per_replica: int

    @property
    def length(self) -> float:
        """When the last replica is done."""
        return max(self.ends)

    @property
    def waited(self) -> tuple[float, ...]:
        """What each replica waited in all, ``[dp]``."""
        return tuple(
            exact_sum(meeting.waits[replica] for meeting in self.meetings)
            for replica in range(len(self.ends))
        )

    @property
    def lost_share(self) -> float:
        """Share of all GPUs' time, until each is done, that went into waiting."""
        spent = exact_sum(self.ends)
        return exact_sum(self.waited) / spent if spent else 0.0

    @property
    def lost_gpu_time(self) -> float:
        """Waiting of all replicas times the GPUs that wait with each."""
        return exact_sum(self.waited) * self.gpus_per_replica

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/lockstep.schema.json`` describes them."""
        return {
            "schema": 1,
            "groups": [list(group) for group in self.groups],
            "dummies": list(self.dummies),
            "length": self.length,
            "waited": list(self.waited),
            "lost_share": self.lost_share,
            "lost_gpu_time": self.lost_gpu_time,
            "meetings": [
                {
                    "layer": m.layer,
                    "arrivals": list(m.arrivals),
                    "waits": list(m.waits),
                    "slowest": list(m.slowest),
                }
                for m in self.meetings
            ],
        }

    def __str__(self) -> str:
        lines = [
            f"{len(self.ends)} replicas, {len(self.meetings)} MoE layers where they meet in "
            f"{len(self.groups)} group{'s' * (len(self.groups) > 1)}: step {self.length:.4g}, "
            f"{self.lost_share:.1%} of the time waiting ({self.lost_gpu_time:.4g} over all GPUs)"
        ]
        for replica, waited in enumerate(self.waited):
            idle = ", runs a dummy batch" if replica in self.dummies else ""
            held_up = sorted({m.slowest[replica] for m in self.meetings if m.waits[replica] > 0})
            names = ", ".join(map(str, held_up))
            whom = f" for replica{'s' * (len(held_up) > 1)} {names}" if held_up else ""
            lines.append(f"  replica {replica}: waits {waited:.4g}{whom}{idle}")
        return "\n".join(lines)


def meeting_replicas(scenario: Scenario) -> tuple[tuple[int, ...], ...]:
    """Replicas that share a set of experts, so that none passes a MoE layer before all are there.

    Contracts ``ep`` and ``ag_rs`` meet over their dispatch groups, and groups that share a replica meet
    through it. ``tp`` keeps experts inside the replica, ``dwdp`` pulls weights without waiting: nobody meets.

    Raises:
        ConfigError: for a mesh too large to list.
    """
    dp = scenario.mesh.dp
    check_listable(dp)
    lowest = list(range(dp))
    if scenario.model.moe_layers > 0 and scenario.plan.contract in (Contract.EP, Contract.AG_RS):
        for replicas in _met(scenario.mesh):
            _join(lowest, replicas)
    meeting: dict[int, list[int]] = {}
    for replica in range(dp):
        meeting.setdefault(_lowest(lowest, replica), []).append(replica)
    return tuple(tuple(replicas) for replicas in meeting.values())


def _met(mesh: Mesh) -> set[frozenset[int]]:
    """Replicas that share a dispatch group of stage 0."""
    check_listable(mesh.stage_size)
    stride, size = mesh.dense.stride_of(Axis.PP), mesh.dense.stride_of(Axis.DP)
    lap = stride * mesh.stages
    return {
        frozenset((place // stride * lap + place % stride) // size % mesh.dp for place in group)
        for group in mesh.expert.each_group((Axis.ETP, Axis.EP))
    }


def _lowest(lowest: list[int], replica: int) -> int:
    """The lowest replica that one is joined with; the way there gets shorter by each look."""
    while lowest[replica] != replica:
        lowest[replica] = lowest[lowest[replica]]
        replica = lowest[replica]
    return replica


def _join(lowest: list[int], replicas: frozenset[int]) -> None:
    roots = {_lowest(lowest, replica) for replica in replicas}
    least = min(roots)
    for root in roots:
        lowest[root] = least


def lockstep(
    scenario: Scenario, loads: Sequence[float], *, moe: float = 0.0, dummy: float = 0.0
) -> LockstepStep:
    """A step in which replica r works ``loads[r]`` a layer before its FFN, and ``moe`` in each MoE layer.

    Loads are seconds, or any unit of work that costs all alike. A replica with load 0 is idle: where it is
    met, it runs a dummy batch that costs ``dummy`` a layer. One batch passes all layers in order; pipeline
    stages that overlap several are a timeline's business.

    Raises:
        ConfigError: unless there is one finite load of 0 or more for each replica.
    """
    model = scenario.model
    checked = _check_loads(scenario, loads, moe, dummy)
    groups = meeting_replicas(scenario)
    with_others = {replica for group in groups if len(group) > 1 for replica in group}
    dummies = tuple(r for r, load in enumerate(checked) if load == 0 and r in with_others)
    own = [dummy if replica in dummies else load for replica, load in enumerate(checked)]
    clock = [0.0] * len(own)
    meetings = []
    for layer in range(1, model.layers + 1):
        clock = [now + load for now, load in zip(clock, own, strict=True)]
        if model.is_moe(layer):
            meeting = _meet(layer, clock, groups)
            meetings.append(meeting)
            clock = [at + wait + moe for at, wait in zip(meeting.arrivals, meeting.waits, strict=True)]
    mesh = scenario.mesh
    gpus = mesh.replica_size
    return LockstepStep(groups, dummies, tuple(meetings), tuple(clock), gpus)


def _meet(layer: int, clock: list[float], groups: tuple[tuple[int, ...], ...]) -> Barrier:
    waits, slowest = [0.0] * len(clock), list(range(len(clock)))
    for group in groups:
        last = max(group, key=lambda replica: clock[replica])
        for replica in group:
            waits[replica] = clock[last] - clock[replica]
            slowest[replica] = last
    return Barrier(layer, tuple(clock), tuple(waits), tuple(slowest))


def _check_loads(scenario: Scenario, loads: Sequence[float], moe: float, dummy: float) -> list[float]:
    dp = scenario.mesh.dp
    if len(loads) != dp:
        rule = f"must give one load for each of the {dp} replicas"
        raise ConfigError("loads", list(loads), rule, "mend the list")
    finite_number("moe", moe, zero=True)
    finite_number("dummy", dummy, zero=True)
    return [finite_number(f"loads[{replica}]", load, zero=True) for replica, load in enumerate(loads)]
