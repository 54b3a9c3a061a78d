"""Where the token is after each hop: its row, its parts, its copies, and the K/V it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layouts.scene import Marks
from tracer.hop import HopKind, Part, Role
from tracer.plan import Sp

if TYPE_CHECKING:
    from tracer.hop import Hop
    from tracer.scenario import Scenario
    from tracer.trip import Trip

Dots = dict[int, str]
_SPLIT = frozenset({HopKind.ALL_GATHER, HopKind.HEAD_COPY})


def trip_marks(trip: Trip) -> Iterator[Marks]:
    """Marks after each hop, in order."""
    scenario = trip.scenario
    dots: Dots = {}
    seen: set[int] = set()
    last = len(trip.hops) - 1
    for index, hop in enumerate(trip.hops):
        dots = _after(scenario, hop, dots)
        owners = _kv_owners(scenario, hop, final=index == last)
        copies = _kv_copies(hop, owners)
        new = hop.touched - seen
        seen |= new
        yield Marks(tuple(sorted(dots.items())), owners, copies, relays_of(hop), tuple(sorted(new)))


def home_at(scenario: Scenario, stage: int) -> int:
    """The rank that is home in a stage."""
    return scenario.mesh.moved(scenario.home, "pp", stage)


def tp_ranks_at(scenario: Scenario, stage: int) -> tuple[int, ...]:
    """The TP group of home in a stage."""
    return tuple(scenario.mesh.dense.group(home_at(scenario, stage), "tp"))


def relays_of(hop: Hop) -> tuple[int, ...]:
    """Ranks that pass a copy on, or sum results for others."""
    found = [t.src for t in hop.transfers if t.role in (Role.FORWARD, Role.SUM)]
    return tuple(dict.fromkeys(found))


def _rest(scenario: Scenario, stage: int) -> Dots:
    """The row between blocks: whole at home, or on every TP rank without SP."""
    if scenario.plan.sp == Sp.MEGATRON:
        return {home_at(scenario, stage): "home"}
    home = home_at(scenario, stage)
    return {rank: "home" if rank == home else "part" for rank in tp_ranks_at(scenario, stage)}


def _after(scenario: Scenario, hop: Hop, dots: Dots) -> Dots:
    if hop.kind in _SPLIT and hop.part is not Part.MOE:
        return dict.fromkeys(tp_ranks_at(scenario, hop.stage), "part")
    if hop.kind is HopKind.DISPATCH:
        return _after_dispatch(hop, dots)
    if hop.kind in (HopKind.QUERY_SEND, HopKind.PARTIALS_RETURN):
        return _while_decoding(scenario, hop)
    if hop.kind is HopKind.PP_SEND:
        return _rest(scenario, hop.stage + 1)
    if hop.kind in (HopKind.KV_EXCHANGE, HopKind.WEIGHT_PULL):
        return dots
    return _rest(scenario, hop.stage)


def _while_decoding(scenario: Scenario, hop: Hop) -> Dots:
    """The query's heads on the TP ranks; copies at the CP partners until their outputs come back."""
    found: Dots = dict.fromkeys(tp_ranks_at(scenario, hop.stage), "part")
    if hop.kind is HopKind.QUERY_SEND:
        found |= {transfer.dst: "copy" for transfer in hop.transfers}
    return found


def _after_dispatch(hop: Hop, dots: Dots) -> Dots:
    """Copies stand at every GPU that received one; a relay that only forwards keeps none."""
    found = dict(dots)
    for transfer in hop.transfers:
        found.setdefault(transfer.dst, "copy")
    for relay in relays_of(hop):
        if found.get(relay) == "copy":
            found[relay] = "relay"
    return found


def _kv_owners(scenario: Scenario, hop: Hop, *, final: bool) -> tuple[int, ...]:
    """TP ranks of the stage, from its first hop in a layer on (K/V is written before attention)."""
    if hop.layer == 0 and not final:
        return ()
    return tp_ranks_at(scenario, hop.stage if hop.layer else 0)


def _kv_copies(hop: Hop, owners: tuple[int, ...]) -> tuple[int, ...]:
    if hop.kind is not HopKind.KV_EXCHANGE:
        return ()
    found = {transfer.dst for transfer in hop.transfers}
    return tuple(sorted(found - set(owners)))
