"""Who keeps a token's K/V, layer by layer, and one GPU's part of a whole request's K/V.

:class:`KvOwners` follows one position; :class:`KvShare` is what ``kv``, ``rank`` and ``fits`` say of one GPU:
its heads, positions and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError, whole_number
from tracer.memory.kv import kv_cps, kv_tps, positions_kept, stored_heads
from tracer.model.dtype import BYTES

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


MAX_REPLICA_RANKS = 1 << 11


@dataclass(frozen=True, slots=True)
class KvHolding:
    """One rank's K/V of one position: the KV ``heads`` it keeps (none listed: the MLA latent), in ``layers``.

    ``bytes_per_layer`` is K and V of those heads in the K/V dtype.
    """

    rank: int
    stage: int
    layers: range
    heads: tuple[int, ...]
    bytes_per_layer: int

    @property
    def bytes(self) -> int:
        """Bytes over all layers of the stage."""
        return self.bytes_per_layer * len(self.layers)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; layers from 1, both ends included."""
        return {
            "rank": self.rank,
            "stage": self.stage,
            "layers": [self.layers.start, self.layers.stop - 1],
            "heads": list(self.heads),
            "bytes_per_layer": self.bytes_per_layer,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class KvOwners:
    """Who keeps the K/V of one position of a replica's request.

    ``elements`` is one copy: layers x K and V of every KV head (MLA: the latent); ``bytes`` is all that is
    stored, replicas of KV heads included.
    """

    scenario: Scenario
    position: int
    holdings: tuple[KvHolding, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that keep some of it, ascending."""
        return tuple(sorted(weight_shard.rank for weight_shard in self.holdings))

    @property
    def elements(self) -> int:
        """Elements of one copy over all layers."""
        scenario = self.scenario
        whole = scenario.model.kv_values_per_token
        if scenario.model.mla and scenario.plan.head_parts(scenario.mesh.cp) > 1:
            heads = scenario.model.need("heads", "size K/V")
            whole = kv_bytes_of_heads(scenario, heads) // BYTES[scenario.dtype.kv]
        return scenario.model.layers * whole

    @property
    def bytes(self) -> int:
        """Bytes in store."""
        return sum(weight_shard.bytes for weight_shard in self.holdings)

    @property
    def copies(self) -> int:
        """How many times each element is stored."""
        return self.bytes // (self.elements * BYTES[self.scenario.dtype.kv])

    def of_layer(self, layer: int) -> tuple[KvHolding, ...]:
        """Holdings of one layer, numbered from 1."""
        return tuple(weight_shard for weight_shard in self.holdings if layer in weight_shard.layers)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "replica": self.scenario.replica,
            "position": self.position,
            "ranks": list(self.ranks),
            "elements": self.elements,
            "copies": self.copies,
            "bytes": self.bytes,
            "holdings": [weight_shard.to_dict() for weight_shard in self.holdings],
        }


def kv_owners(scenario: Scenario, position: int | None = None) -> KvOwners:
    """Who keeps a position's K/V (None: the scenario's token's), of the prompt or after it.

    Copies that the exchange of prefill brings to other CP ranks serve its queries and are dropped.

    Raises:
        ConfigError: for a negative position, or a size that the model does not state.
    """
    position = scenario.position if position is None else position
    whole_number("position", position, at_least=0)
    check_replica_listable(scenario)
    cps, tps = kv_cps(scenario, position), kv_tps(scenario, position)
    holdings, done = [], 0
    for stage, count in enumerate(scenario.stage_layers):
        layers = range(done + 1, done + count + 1)
        done += count
        for tp, cp in product(tps, cps):
            rank = scenario.mesh.rank(tp=tp, cp=cp, dp=scenario.replica, pp=stage)
            heads = tuple(stored_heads(scenario, rank))
            size = kv_bytes_of_heads(scenario, len(heads))
            holdings.append(KvHolding(rank, stage, layers, heads, size))
    return KvOwners(scenario, position, tuple(holdings))


def check_replica_listable(scenario: Scenario) -> None:
    """Refuse a replica of too many ranks to list what each one keeps.

    Raises:
        ConfigError: above ``MAX_REPLICA_RANKS``.
    """
    mesh = scenario.mesh
    ranks = mesh.replica_size * mesh.stages
    if ranks > MAX_REPLICA_RANKS:
        raise ConfigError(
            "mesh",
            f"tp·cp·pp = {ranks:,}",
            f"is more than the {MAX_REPLICA_RANKS:,} ranks of a replica whose K/V can be listed",
            "ask for one rank: tokentrip rank SCENARIO RANK",
        )


def kv_bytes_of_heads(scenario: Scenario, heads: int) -> int:
    """Bytes of one token's K and V of so many KV heads in one layer; MLA: of the whole latent with none.

    MLA's heads, where it keeps some, are those after the up-projection.
    """
    model, each = scenario.model, BYTES[scenario.dtype.kv]
    if model.mla and heads:
        return heads * (model.qk_head_dim + model.need("v_head_dim", "size K/V")) * each
    if model.mla:
        return model.kv_values_per_token * each
    return model.kv_values_per_token // model.need("kv_heads", "size K/V") * heads * each


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
    heads = tuple(stored_heads(scenario, rank))
    layers = scenario.stage_layers[mesh.stage_of(rank)]
    each = kv_bytes_of_heads(scenario, len(heads)) * layers
    return KvShare(rank, heads, layers, positions_kept(scenario, rank, context), each)


def cached_positions(scenario: Scenario) -> int:
    """Positions of a request that are cached: the prompt, in decode also the new ones up to the token."""
    return scenario.position + 1 if scenario.decodes else scenario.token.prompt
