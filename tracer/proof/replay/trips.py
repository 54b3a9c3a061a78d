"""What was sent against what the trip of every row says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.proof.replay.sent import Move, Moves, Place
from tracer.trip.hop import ONCE_A_LAYER, WEIGHT_KINDS, Hop, HopKind, Part
from tracer.trip.itinerary import Rider, itinerary
from tracer.trip.trip import iterate_hops

if TYPE_CHECKING:
    from tracer.proof.replay.run import Run
    from tracer.scenario.scenario import Scenario

PART_ORDER, KIND_ORDER = tuple(Part), tuple(HopKind)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first hop of a row whose sends are not its trip's: what is missing, and what is too much."""

    place: Place
    replica: int
    position: int
    missing: tuple[Move, ...]
    extra: tuple[Move, ...]

    def __str__(self) -> str:
        layer, part, kind = self.place
        both = (("never sent:", self.missing), ("not in the trip:", self.extra))
        told = "; ".join(f"{word} {_told(moves)}" for word, moves in both if moves)
        return f"layer {layer} {kind} ({part}), replica {self.replica}, position {self.position}: {told}"


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """All rows' trips beside the ledger; bytes of pulled weights are tallied apart, as in a trip."""

    bytes_logged: int
    pulled_bytes_logged: int
    mismatches: tuple[Mismatch, ...]


def compare_with_trips(run: Run) -> ReplayComparison:
    """The trip of every prompt token, and the same hops for padding and dummies, against what was sent."""
    sent = run.machine.ledger.moves_by_token()
    total = pulled = 0
    mismatches = []
    for row, token in enumerate(run.batch.ids.tolist()):
        said: Moves = {}
        for hop in _hops(run, row):
            size = hop.bytes
            if hop.kind in WEIGHT_KINDS:
                pulled += size
            elif hop.kind not in ONCE_A_LAYER:
                total += size
            if hop.transfers:
                moves = [(src, dst, bytes_, role) for src, dst, bytes_, _, role in hop.transfers]
                said.setdefault(Place(hop.layer, hop.part, hop.kind), []).extend(moves)
        mismatch = _first_mismatch(run, row, said, sent.get(token, {}))
        if mismatch is not None:
            mismatches.append(mismatch)
    return ReplayComparison(total, pulled, tuple(mismatches))


def place_order(layer: int, part: Part) -> tuple[int, int]:
    """Sorts places as a token meets them."""
    return layer, PART_ORDER.index(part)


def token_scenario(run: Run, row: int) -> Scenario:
    """The scenario that follows a row's token, with the experts that replay's routers picked for it."""
    batch, scenario = run.batch, run.scenario
    replica = int(batch.replica[row])
    token = replace(
        scenario.token,
        prompt=batch.prompts[replica],
        replica=replica,
        position=int(batch.position[row]),
        gpu=None,
    )
    return scenario.with_(token=token, picks=tuple(sorted(_picks(run, row).items())))


def _picks(run: Run, row: int) -> dict[int, tuple[int, ...]]:
    return {layer: by_row[row] for layer, by_row in run.picks.items() if row in by_row}


def _hops(run: Run, row: int) -> Iterator[Hop]:
    """Hops of a row; no scenario follows padding, so its hops come from the itinerary."""
    batch = run.batch
    if batch.ids[row] >= 0:
        yield from iterate_hops(token_scenario(run, row))
        return
    always = run.scenario.always_picked
    picks = {layer: (*experts, *always) for layer, experts in _picks(run, row).items()}
    rider = Rider(int(batch.position[row]), int(batch.home[row]), False, picks)
    for build, where in itinerary(run.scenario, rider):
        yield build(run.scenario, where)


def _first_mismatch(run: Run, row: int, said: Moves, sent: Moves) -> Mismatch | None:
    if said.keys() == sent.keys() and all(sorted(said[place]) == sorted(sent[place]) for place in said):
        return None
    places = sorted(
        said.keys() | sent.keys(), key=lambda p: (*place_order(p.layer, p.part), KIND_ORDER.index(p.kind))
    )
    for place in places:
        expected, moved = Counter(said.get(place, [])), Counter(sent.get(place, []))
        if expected != moved:
            missing, extra = tuple((expected - moved).elements()), tuple((moved - expected).elements())
            replica, position = int(run.batch.replica[row]), int(run.batch.position[row])
            return Mismatch(place, replica, position, missing, extra)
    return None


def _told(moves: tuple[Move, ...]) -> str:
    """A few moves as a person writes them."""
    shown = [f"{src} → {dst} ({role}, {size:,} B)" for src, dst, size, role in moves[:3]]
    more = f" and {len(moves) - 3} more" if len(moves) > 3 else ""
    return ", ".join(shown) + more
