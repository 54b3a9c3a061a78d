"""A recorded run as link rates: its collectives' kernels, fitted for each tier that they used.

A kernel waits inside until the last member has come, so that of each kind, group size and size in bytes the
shortest counts: time = latency of a ring's steps + port bytes / rate, for all of a tier together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.mesh.cluster import Link
from tracer.runs.reading.recording import OpKind
from tracer.timing.collectives import busbw_factor, latency_steps
from tracer.timing.rates import Profile, relative_fit
from tracer.trip.clock import LinkRates

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.runs.reading.recording import Op, Recording

FITTED = (OpKind.ALL_REDUCE, OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER, OpKind.ALL_TO_ALL)
Key = tuple[bool, OpKind, int, int]


def run_profile(name: str, run: Recording, cluster: Cluster) -> Profile:
    """Link rates by a run's timed collectives: NVLink by groups in one domain, IB by those over several.

    A tier without two sizes stays the cluster's.

    Raises:
        ConfigError: when no tier has timed collectives of two sizes or more, or their times do not grow.
    """
    shortest = _shortest(run, cluster)
    links: dict[bool, Link] = {}
    for between in (False, True):
        rows = [(key, seconds) for key, seconds in shortest.items() if key[0] is between]
        if len({key[3] for key, _ in rows}) > 1:
            links[between] = _fitted(rows)
    if not links:
        rule = f"has {len(shortest)} timed collectives that differ; two sizes of a tier are the least"
        raise ConfigError("profile", name, rule, "give profiler traces with their GPU kernels")
    known = LinkRates.of(cluster)
    return Profile(
        name,
        "the user's own recorded run",
        f"{len(shortest)} kinds and sizes of collectives of {len(run.ranks)} rank(s)",
        "least squares of relative errors over the shortest kernel of each; a kernel's wait is inside",
        LinkRates(links.get(False, known.nvlink), links.get(True, known.ib)),
    )


def _shortest(run: Recording, cluster: Cluster) -> dict[Key, float]:
    """Seconds of the shortest kernel by tier, kind, group size and bytes."""
    found: dict[Key, float] = {}
    for record in run.sample:
        for op in record.ops:
            seconds = _seconds(op)
            if seconds is None or not op.bytes or op.kind not in FITTED or op.group.size < 2:
                continue
            if max(op.group.members) >= cluster.world_size:
                rule = f"is a rank of the run, and the scenario has {cluster.world_size}"
                raise ConfigError(
                    "profile", max(op.group.members), rule, "time the scenario that was recorded"
                )
            domains = {cluster.nvlink_domain_of(rank) for rank in op.group.members}
            key = (len(domains) > 1, op.kind, op.group.size, op.bytes)
            found[key] = min(seconds, found.get(key, seconds))
    return found


def _seconds(op: Op) -> float | None:
    ns = op.duration_ns
    if ns is None and op.completed_ns is not None and op.started_ns is not None:
        ns = op.completed_ns - op.started_ns
    return ns * 1e-9 if ns is not None and ns > 0 else None


def _fitted(rows: list[tuple[Key, float]]) -> Link:
    """Latency of a step and rate of a port, over kinds and sizes together."""
    steps = [float(latency_steps(str(kind), ranks)) for (_, kind, ranks, _), _ in rows]
    carried = [busbw_factor(str(kind), ranks) * size for (_, kind, ranks, size), _ in rows]
    latency, inverse = relative_fit([steps, carried], [seconds for _, seconds in rows])
    if inverse <= 0:
        raise ConfigError(
            "profile", f"{len(rows)} sizes", "do not take longer as they grow", "give more steps"
        )
    return Link(1 / inverse, latency)
