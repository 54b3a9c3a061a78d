"""Where the token is after each hop: its row, its parts, its copies, and the K/V it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.scene.scene import Marks
from tracer.memory.kv import heads_peers, kv_tps
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Sp
from tracer.trip.hop import METADATA_KINDS, WEIGHT_KINDS, HopKind, Part, Role

if TYPE_CHECKING:
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hop import Hop
    from tracer.trip.trip import Trip

Dots = dict[int, str]
_QUERIES = frozenset(
    {HopKind.QUERY_SEND, HopKind.PARTIALS_RETURN, HopKind.HEADS_SCATTER, HopKind.HEADS_GATHER}
)
_SPLIT = frozenset({HopKind.ALL_GATHER, HopKind.HEAD_COPY})


def trip_marks(trip: Trip) -> Iterator[Marks]:
    """Marks after each hop, in order: they follow the trip's own home, stage by stage."""
    places = _Places.of(trip.scenario)
    dots: Dots = {}
    seen: set[int] = set()
    last = len(trip.hops) - 1
    for index, hop in enumerate(trip.hops):
        dots = places.after(hop, dots)
        owners = places.kv_owners(hop, final=index == last)
        copies = _kv_copies(hop, owners)
        new = hop.touched - seen
        seen |= new
        yield Marks(tuple(sorted(dots.items())), owners, copies, relays_of(hop), tuple(sorted(new)))


def relays_of(hop: Hop) -> tuple[int, ...]:
    """Ranks that pass a copy on, or sum results for others."""
    found = [t.src for t in hop.transfers if t.role in (Role.FORWARD, Role.SUM)]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Places:
    """By stage: the token's home, its TP group, the ranks that keep its K/V, and the first layer there."""

    whole_at_home: bool
    homes: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    owners: tuple[tuple[int, ...], ...]
    firsts: tuple[int, ...]
    mesh: Mesh
    head_stage: int

    @classmethod
    def of(cls, scenario: Scenario) -> _Places:
        """The places of a scenario's token, stage by stage."""
        mesh, keepers = scenario.mesh, kv_tps(scenario, scenario.position)
        homes = tuple(mesh.moved(scenario.home, Axis.PP, stage) for stage in range(mesh.stages))
        groups = tuple(tuple(mesh.dense.group(home, Axis.TP)) for home in homes)
        runs = scenario.stage_runs
        owners = tuple(
            tuple(peer for tp in keepers for peer in sorted((group[tp], *heads_peers(scenario, group[tp]))))
            if runs[stage]
            else ()
            for stage, group in enumerate(groups)
        )
        firsts = tuple(run[0].start if run else 0 for run in runs)
        return cls(scenario.plan.sp is Sp.MEGATRON, homes, groups, owners, firsts, mesh, scenario.head_stage)

    def rest(self, stage: int) -> Dots:
        """The row between blocks: whole at home, or on every TP rank without SP."""
        home = self.homes[stage]
        if self.whole_at_home:
            return {home: "home"}
        return {rank: "home" if rank == home else "part" for rank in self.groups[stage]}

    def after(self, hop: Hop, dots: Dots) -> Dots:
        """Dots after a hop, from those before it."""
        if hop.kind in _SPLIT and hop.part is not Part.MOE:
            return dict.fromkeys(self.groups[hop.stage], "part")
        if hop.kind is HopKind.DISPATCH:
            return _after_dispatch(hop, dots)
        if hop.kind in _QUERIES:
            return self._while_queried(hop)
        if hop.kind is HopKind.PP_SEND:
            return self.rest(self.mesh.stage_of(hop.transfers[0].dst))
        if hop.kind in (HopKind.KV_EXCHANGE, HopKind.STATE_PASS) or hop.kind in WEIGHT_KINDS | METADATA_KINDS:
            return dots
        return self.rest(hop.stage)

    def _while_queried(self, hop: Hop) -> Dots:
        """The query's heads on the TP ranks; copies at the CP partners until their outputs come back."""
        found: Dots = dict.fromkeys(self.groups[hop.stage], "part")
        if hop.kind in (HopKind.QUERY_SEND, HopKind.HEADS_SCATTER):
            found |= {transfer.dst: "copy" for transfer in hop.transfers}
        return found

    def kv_owners(self, hop: Hop, *, final: bool) -> tuple[int, ...]:
        """Keepers in the stage, from its first hop in a layer on (K/V is written before attention).

        A last stage in which nothing travels has no hop of its own: the trip's last one stands for it.
        """
        found = self.owners[hop.stage] if hop.layer and hop.layer >= self.firsts[hop.stage] else ()
        return tuple(dict.fromkeys((*found, *self.owners[self.head_stage]))) if final else found


def _after_dispatch(hop: Hop, dots: Dots) -> Dots:
    """Copies stand at every GPU that received one; a relay that only forwards keeps none."""
    found = dict(dots)
    for transfer in hop.transfers:
        found.setdefault(transfer.dst, "copy")
    for relay in relays_of(hop):
        if found.get(relay) == "copy":
            found[relay] = "relay"
    return found


def _kv_copies(hop: Hop, owners: tuple[int, ...]) -> tuple[int, ...]:
    if hop.kind is not HopKind.KV_EXCHANGE:
        return ()
    found = {transfer.dst for transfer in hop.transfers}
    return tuple(sorted(found - set(owners)))
