"""K/V owners and room as lines a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.display import format_bytes
from tracer.memory.kv_owners import KvOwners, kv_owners
from tracer.memory.kv_room import KvRoom, kv_room

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def short_range(numbers: tuple[int, ...] | range) -> str:
    """Ascending numbers, runs joined.

    >>> short_range((0, 1, 2, 3)), short_range((0, 2, 3)), short_range(())
    ('0-3', '0, 2-3', '')
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def kv_text(scenario: Scenario, position: int | None = None) -> str:
    """Who keeps the K/V of a position, and the room that the whole request takes there."""
    owners = kv_owners(scenario, position)
    word = "new token" if owners.position >= scenario.token.prompt else "token"
    lines = [
        f"{scenario.name or 'scenario'}: K/V of {word} {owners.position}, prompt of {scenario.token.prompt}, "
        f"replica {scenario.replica}",
        "",
        f"{'layers':>9}  {'stage':>5}  {'GPU':>7}  {'KV heads':<12}  {'bytes a layer':>13}  {'bytes':>11}",
    ]
    for held in owners.holdings:
        heads = short_range(held.heads) or "latent"
        lines.append(
            f"{short_range(held.layers):>9}  {held.stage:>5}  {held.rank:>7}  {heads:<12}  "
            f"{held.bytes_per_layer:>13,}  {held.bytes:>11,}"
        )
    rooms = [room for room in kv_room(scenario) if room.rank in owners.ranks]
    return "\n".join([*lines, "", _total(owners), "", *_room_lines(rooms, scenario.cluster.hardware)])


def _total(owners: KvOwners) -> str:
    copies = "once" if owners.copies == 1 else f"{owners.copies} times"
    ranks = ", ".join(map(str, owners.ranks))
    return (
        f"GPUs {ranks} keep {owners.elements:,} elements {copies}: {owners.bytes:,} bytes in "
        f"{owners.scenario.dtype.kv}"
    )


def _room_lines(rooms: list[KvRoom], hardware: str | None) -> list[str]:
    lines = [
        f"{'GPU':>7}  {'positions kept':>14}  {'K/V of the request':>18}  {'left':>9}  room for positions"
    ]
    for room in rooms:
        left = "?" if room.left_bytes is None else format_bytes(max(0, room.left_bytes))
        more = "?" if room.positions_left is None else f"{room.positions_left:,}"
        lines.append(
            f"{room.rank:>7}  {room.positions:>14,}  {format_bytes(room.kv_bytes):>18}  {left:>9}  {more}"
        )
    if hardware is None:
        return [*lines, "note: name cluster.hardware to see what is left"]
    known = all(room.weights_known for room in rooms)
    weights = "after weights" if known else "with the weights, whose sizes the model does not state,"
    return [*lines, f"note: left of {hardware}'s memory {weights} and before activations"]
