"""How much room a request's K/V takes on each GPU that keeps some, and how much is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.hardware import hardware_preset
from tracer.kv_layout import kv_heads_of, positions_kept
from tracer.kv_owners import kv_bytes_of_heads

if TYPE_CHECKING:
    from tracer.scenario import Scenario


@dataclass(frozen=True, slots=True)
class KvRoom:
    """One rank's share of the K/V of a replica's requests.

    ``bytes_per_position`` covers the layers of its stage; ``hbm_bytes`` is the whole memory, None when the
    scenario names no hardware. Nothing else that lives there (weights, activations) is taken off.
    """

    rank: int
    positions: int
    requests: int
    bytes_per_position: int
    hbm_bytes: int | None

    @property
    def kv_bytes(self) -> int:
        """Bytes of the K/V of all requests."""
        return self.positions * self.bytes_per_position * self.requests

    @property
    def left_bytes(self) -> int | None:
        """Memory that the K/V leaves; negative when it does not fit."""
        return None if self.hbm_bytes is None else self.hbm_bytes - self.kv_bytes

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
            "hbm_bytes": self.hbm_bytes,
            "left_bytes": self.left_bytes,
            "positions_left": self.positions_left,
        }


def kv_room(scenario: Scenario, context: int | None = None, requests: int = 1) -> tuple[KvRoom, ...]:
    """Room on every rank of the token's replica, all stages, for ``requests`` like the scenario's own.

    ``context`` positions are cached for each (None: the prompt; in decode also the new ones up to the token).
    """
    if context is None:
        context = scenario.position + 1 if scenario.decodes else scenario.token.prompt
    mesh, hbm = scenario.mesh, hbm_bytes(scenario)
    rooms = []
    for stage, layers in enumerate(scenario.stage_layers):
        for rank in mesh.group(mesh.rank(tp=0, cp=0, dp=scenario.replica, pp=stage), "replica"):
            heads = len(kv_heads_of(scenario, mesh.dense.coordinate(rank, "tp")))
            each = kv_bytes_of_heads(scenario, heads) * layers
            kept = positions_kept(scenario, rank, context)
            rooms.append(KvRoom(rank, kept, requests, each, hbm))
    return tuple(rooms)


def hbm_bytes(scenario: Scenario) -> int | None:
    """Memory of one GPU in bytes, when the scenario names hardware whose figure is known."""
    name = scenario.cluster.hardware
    return None if name is None else hardware_preset(name).hbm_bytes
