"""How much room a request's K/V takes on each GPU that keeps some, and how much is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.kv_layout import kv_heads_of, positions_kept
from tracer.kv_owners import check_replica_listable, kv_bytes_of_heads
from tracer.residency import hbm_bytes, residency_of

if TYPE_CHECKING:
    from tracer.scenario import Scenario


@dataclass(frozen=True, slots=True)
class KvRoom:
    """One rank's share of the K/V of a replica's requests.

    ``bytes_per_position`` covers the layers of its stage; ``free_bytes`` is the memory that weights leave
    (``tracer.residency``), or all of it when the model does not state what they take; None when the
    scenario names no hardware. Activations and the framework's own memory are not taken off.
    """

    rank: int
    positions: int
    requests: int
    bytes_per_position: int
    free_bytes: int | None
    weights_known: bool = True

    @property
    def kv_bytes(self) -> int:
        """Bytes of the K/V of all requests."""
        return self.positions * self.bytes_per_position * self.requests

    @property
    def left_bytes(self) -> int | None:
        """Memory that the K/V leaves; negative when it does not fit."""
        return None if self.free_bytes is None else self.free_bytes - self.kv_bytes

    @property
    def positions_left(self) -> int | None:
        """Further positions whose share of K/V would fit."""
        return None if self.left_bytes is None else max(0, self.left_bytes) // self.bytes_per_position

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
    if context is None:
        context = scenario.position + 1 if scenario.decodes else scenario.token.prompt
    check_replica_listable(scenario)
    mesh = scenario.mesh
    rooms = []
    for stage, layers in enumerate(scenario.stage_layers):
        for rank in mesh.group(mesh.rank(tp=0, cp=0, dp=scenario.replica, pp=stage), "replica"):
            heads = len(kv_heads_of(scenario, mesh.dense.coordinate(rank, "tp")))
            each = kv_bytes_of_heads(scenario, heads) * layers
            kept = positions_kept(scenario, rank, context)
            rooms.append(KvRoom(rank, kept, requests, each, *_free(scenario, rank)))
    return tuple(rooms)


def _free(scenario: Scenario, rank: int) -> tuple[int | None, bool]:
    """(memory that a rank's weights leave, whether the weights are known)."""
    whole = hbm_bytes(scenario)
    if whole is None:
        return None, True
    try:
        return residency_of(scenario, rank).free_bytes, True
    except ConfigError:
        return whole, False
