"""One GPU's part of a request's K/V, as ``kv``, ``rank`` and ``fits`` say it: heads, positions, bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.kv_layout import kv_heads_of, positions_kept
from tracer.kv_owners import kv_bytes_of_heads

if TYPE_CHECKING:
    from tracer.scenario import Scenario


@dataclass(frozen=True, slots=True)
class KvShare:
    """K/V that a rank keeps of one request: ``positions`` of it, each ``bytes_per_position``.

    ``heads`` are its KV heads (none listed: the MLA latent), ``layers`` those of its stage. With decode
    context parallelism the ranks of a DCP group keep the same heads and share the positions.
    """

    rank: int
    heads: tuple[int, ...]
    layers: int
    positions: int
    bytes_per_position: int

    @property
    def bytes(self) -> int:
        """Bytes of one request."""
        return self.positions * self.bytes_per_position


def kv_share(scenario: Scenario, rank: int, context: int | None = None) -> KvShare:
    """A rank's share of a request of its replica with ``context`` positions (None: what is cached by now).

    Raises:
        ConfigError: for a rank outside the mesh, or a size that the model does not state.
    """
    context = cached_positions(scenario) if context is None else context
    mesh = scenario.mesh
    heads = tuple(kv_heads_of(scenario, mesh.dense.coordinate(rank, "tp")))
    layers = scenario.stage_layers[mesh.stage_of(rank)]
    each = kv_bytes_of_heads(scenario, len(heads)) * layers
    return KvShare(rank, heads, layers, positions_kept(scenario, rank, context), each)


def cached_positions(scenario: Scenario) -> int:
    """Positions of a request that are cached: the prompt, in decode also the new ones up to the token."""
    return scenario.position + 1 if scenario.decodes else scenario.token.prompt
