"""How much room a request's K/V takes on each GPU that keeps some, and how much is left.

:func:`kv_text` prints it below the owners of one position's K/V.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, left, right, short_range, text_table
from tracer.errors import ConfigError
from tracer.memory.kv_owners import KvOwners, KvShare, check_replica_listable, kv_owners, kv_share, tokens_in
from tracer.memory.residency import hbm_bytes, residency_of

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class KvRoom:
    """One rank's share of the K/V of a replica's requests.

    ``share`` is what it keeps of one request; ``free_bytes`` is the memory that weights leave
    (``tracer.memory.residency``), or all of it when the model does not state what they take; None when the
    scenario names no hardware. Activations and the framework's own memory are not taken off.
    """

    share: KvShare
    requests: int
    free_bytes: int | None
    weights_known: bool = True

    @property
    def rank(self) -> int:
        """The GPU."""
        return self.share.rank

    @property
    def positions(self) -> int:
        """Positions that it keeps of a request."""
        return self.share.positions

    @property
    def bytes_per_position(self) -> int:
        """Bytes of one position in the layers of its stage."""
        return self.share.bytes_per_position

    @property
    def kv_bytes(self) -> int:
        """Bytes of the K/V of all requests."""
        return self.share.bytes * self.requests

    @property
    def left_bytes(self) -> int | None:
        """Memory that the K/V leaves; negative when it does not fit."""
        return None if self.free_bytes is None else self.free_bytes - self.kv_bytes

    @property
    def positions_left(self) -> int | None:
        """Further positions whose share of K/V would fit."""
        if self.left_bytes is None or not self.share.keeps_any:
            return None
        return tokens_in(max(0, self.left_bytes), self.share)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "rank": self.rank,
            "positions": self.positions,
            "requests": self.requests,
            "bytes_per_position": self.bytes_per_position,
            "kv_bytes": self.kv_bytes,
            "free_bytes": self.free_bytes,
            "weights_known": self.weights_known,
            "left_bytes": self.left_bytes,
            "positions_left": self.positions_left,
        }


def kv_room(scenario: Scenario, context: int | None = None, requests: int = 1) -> tuple[KvRoom, ...]:
    """Room on every rank of the token's replica, all stages, for ``requests`` like the scenario's own.

    ``context`` positions are cached for each (None: the prompt; in decode also the new ones up to the token).

    Raises:
        ConfigError: for a replica of too many ranks to list.
    """
    check_replica_listable(scenario)
    mesh = scenario.mesh
    firsts = [mesh.rank(tp=0, cp=0, dp=scenario.replica, pp=stage) for stage in range(mesh.stages)]
    return tuple(
        KvRoom(kv_share(scenario, rank, context), requests, *_free(scenario, rank))
        for first in firsts
        for rank in mesh.group(first, "replica")
    )


def _free(scenario: Scenario, rank: int) -> tuple[int | None, bool]:
    """(memory that a rank's weights leave, whether the weights are known)."""
    whole = hbm_bytes(scenario)
    if whole is None:
        return None, True
    try:
        return residency_of(scenario, rank).free_bytes, True
    except ConfigError:
        return whole, False


def kv_text(scenario: Scenario, position: int | None = None) -> str:
    """Who keeps the K/V of a position, and the room that the whole request takes there."""
    owners = kv_owners(scenario, position)
    word = "new token" if owners.position >= scenario.token.prompt else "token"
    title = (
        f"{scenario.name or 'scenario'}: K/V of {word} {owners.position}, prompt of {scenario.token.prompt}, "
        f"replica {scenario.replica}"
    )
    columns = (
        right("layers", 9 if owners.holdings[0].sizes is None else 12, gap=0),
        right("stage", 5),
        right("GPU", 7),
        left("KV heads", 12),
        right("bytes per layer", 13),
        right("bytes", 11),
    )
    rows = [
        (
            short_range(held.layers)
            if held.sizes is None
            else f"{len(held.sizes)} of {short_range(held.layers)}",
            held.stage,
            held.rank,
            short_range(held.heads) or "latent",
            f"{held.bytes_per_layer:,}",
            f"{held.bytes:,}",
        )
        for held in owners.holdings
    ]
    rooms = _room_lines(
        [room for room in kv_room(scenario) if room.rank in owners.ranks], scenario.cluster.hardware
    )
    return "\n".join([title, "", *text_table(columns, rows), "", _total(owners), "", *rooms])


def _total(owners: KvOwners) -> str:
    copies = "once" if owners.copies == 1 else f"{owners.copies} times"
    ranks = ", ".join(map(str, owners.ranks))
    return (
        f"GPUs {ranks} keep {owners.elements:,} elements {copies}: {owners.bytes:,} bytes in "
        f"{owners.scenario.dtype.kv}"
    )


def _room_lines(rooms: list[KvRoom], hardware: str | None) -> list[str]:
    columns = (
        right("GPU", 7, gap=0),
        right("positions kept", 14),
        right("K/V of the request", 18),
        right("left", 9),
        left("room for positions"),
    )
    rows = [
        (
            room.rank,
            f"{room.positions:,}",
            format_bytes(room.kv_bytes),
            "?" if room.left_bytes is None else format_bytes(max(0, room.left_bytes)),
            "?" if room.positions_left is None else f"{room.positions_left:,}",
        )
        for room in rooms
    ]
    lines = text_table(columns, rows)
    if hardware is None:
        return [*lines, "note: name cluster.hardware to see what is left"]
    known = all(room.weights_known for room in rooms)
    weights = "after weights" if known else "with the weights, whose sizes the model does not state,"
    return [*lines, f"note: left of {hardware}'s memory {weights} and before activations"]
