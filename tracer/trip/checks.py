"""What a test asks of a trip, and at which hop the trip and the expectation part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, nearest
from tracer.mesh.mesh import GROUP_NAMES
from tracer.trip.hop import WEIGHT_KINDS
from tracer.trip.trip import LOG_AXES

if TYPE_CHECKING:
    from tracer.trip.hop import Hop
    from tracer.trip.trip import Trip

SHOWN = 6
Crossings = int | Mapping[str, int]


def log_problems(
    trip: Trip, *, gpus: int | None = None, crossings: Crossings | None = None, ops: int | None = None
) -> list[str]:
    """A few lines for each count that is not as expected; empty when all are.

    ``crossings`` is a number, or a number per axis (an axis that is not named is not asked about).

    Raises:
        ConfigError: for an axis that makes no crossings.
    """
    word = trip.scenario.cluster.domain_word
    found: list[str] = []
    if gpus is not None:
        found += _problem(trip, "GPUs touched", gpus, [tally.gpus_touched for tally in trip.tallies])
    if isinstance(crossings, Mapping):
        for axis, wanted in crossings.items():
            _check_axis(axis, LOG_AXES)
            counts = _running(trip, lambda hop, axis=axis: hop.crossings if hop.axis == axis else 0)  # type: ignore[misc]
            found += _problem(trip, f"{word} crossings by {axis}", wanted, counts)
    elif crossings is not None:
        counts = [tally.node_crossings for tally in trip.tallies]
        found += _problem(trip, f"{word} crossings", crossings, counts)
    if ops is not None:
        found += _problem(trip, "comm ops", ops, [tally.comm_ops for tally in trip.tallies])
    return found


def axis_problem(trip: Trip, axis: str) -> str | None:
    """Where an axis leaves a node: a hop of the trip, else a group of a GPU that the trip touches.

    Node means NVLink domain where those are larger than nodes. None when it stays
    inside.

    Raises:
        ConfigError: for an unknown axis.
    """
    _check_axis(axis, GROUP_NAMES)
    scenario = trip.scenario
    word = scenario.cluster.domain_word
    for index, hop in enumerate(trip.hops):
        if hop.axis == axis and hop.crossings:
            return f"{axis} leaves its {word} at {hop_line(trip, index)}"
    nvlink_domain_of = scenario.cluster.nvlink_domain_of
    for rank in trip.touched:
        group = scenario.mesh.group(rank, axis)
        nvlink_domains = sorted({nvlink_domain_of(member) for member in group})
        if len(nvlink_domains) > 1:
            shown = " ".join(map(str, list(group)[:SHOWN])) + (" …" if len(group) > SHOWN else "")
            where = ", ".join(map(str, nvlink_domains[:SHOWN])) + (
                ", …" if len(nvlink_domains) > SHOWN else ""
            )
            return f"the {axis} group of GPU {rank} ({shown}) spans {word}s {where}"
    return None


def hop_line(trip: Trip, index: int) -> str:
    """One hop in a line: its number, layer, kind and transfers (``⇒`` over InfiniBand)."""
    hop = trip.hops[index]
    place = f"layer {hop.layer}, " if hop.layer else ""
    moves = [f"{t.src}{'⇒' if t.tier == 'ib' else '→'}{t.dst}" for t in hop.transfers]
    # What crosses comes first: it is what the reader looks for.
    moves.sort(key=lambda move: "⇒" not in move)
    more = f" and {len(moves) - SHOWN} more" if len(moves) > SHOWN else ""
    return f"hop {index} ({place}{hop.kind}): {' '.join(moves[:SHOWN]) or 'nothing moves'}{more}"


def _check_axis(axis: str, known: tuple[str, ...]) -> None:
    if axis not in known:
        raise ConfigError("axis", axis, "is not asked about", nearest(axis, list(known)))


def _running(trip: Trip, count: Callable[[Hop], int]) -> list[int]:
    total, found = 0, []
    for hop in trip.hops:
        total += count(hop) if hop.kind not in WEIGHT_KINDS else 0
        found.append(total)
    return found


def _problem(trip: Trip, name: str, wanted: int, counts: list[int]) -> Iterator[str]:
    """The two numbers, and the hop that takes the count past what was wanted, or the last that adds to it."""
    got = counts[-1]
    if got == wanted:
        return
    yield f"{name}: expected {wanted:,}, the trip has {got:,}"
    if got > wanted:
        index = next(i for i, count in enumerate(counts) if count > wanted)
        before = counts[index - 1] if index else 0
        step = f"from {before:,} to {counts[index]:,}"
        yield f"  they part at {hop_line(trip, index)}, which takes the count {step}"
        return
    last = next(i for i, count in enumerate(counts) if count == got)
    if got:
        yield f"  the trip stops counting at {hop_line(trip, last)}"
    else:
        yield "  no hop of the trip adds to it"
