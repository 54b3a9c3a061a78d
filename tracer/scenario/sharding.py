"""How many ranks keep the pieces of a weight: FSDP, HSDP and ZeRO-3 cut what dp and cp would copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracer.errors import ConfigError, divisors, listed
from tracer.scenario.plan import Contract

if TYPE_CHECKING:
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan


class ShardSizes(NamedTuple):
    """Ranks of a shard group: of dense weights over (cp, dp), of routed experts over edp; 1 means whole."""

    dense: int
    experts: int

    @property
    def whole(self) -> bool:
        """Whether every rank keeps all of its weights."""
        return self.dense == self.experts == 1


def shard_sizes(plan: Plan, mesh: Mesh) -> ShardSizes:
    """The shard groups of a deployment.

    ``hsdp`` has copies of the groups, dp·cp / ``weight_shard_size`` of them, and experts as many copies.
    """
    if not plan.gathers_weights:
        return ShardSizes(1, 1)
    ranks = mesh.dp * mesh.cp
    dense = plan.weight_shard_size or ranks
    if plan.contract is Contract.TP:
        return ShardSizes(dense, dense)
    return ShardSizes(dense, max(1, mesh.edp // (ranks // dense)))


def check_sharding(plan: Plan, mesh: Mesh) -> None:
    """Refuse a shard group that does not fit the mesh.

    Raises:
        ConfigError: for a size that does not divide dp·cp, copies that do not divide edp, or pulled weights.
    """
    if not plan.gathers_weights:
        return
    ranks, size = mesh.dp * mesh.cp, plan.weight_shard_size
    if size is not None and ranks % size:
        raise ConfigError(
            "mesh.weight_shard_size",
            size,
            f"must divide dp·cp = {ranks}, the ranks that would hold copies",
            f"try {listed(divisors(ranks))}",
        )
    copies = ranks // (size or ranks)
    if plan.contract is Contract.DWDP:
        raise ConfigError(
            "mesh.weight_shard",
            str(plan.weight_shard),
            "gathers experts that contract 'dwdp' pulls",
            "drop one of the two",
        )
    if plan.contract is not Contract.TP and mesh.edp > 1 and mesh.edp % copies:
        raise ConfigError(
            "mesh.weight_shard_size",
            size,
            f"makes {copies} copies of the weights, which must divide edp = {mesh.edp}",
            f"try {ranks}, or another ep",
        )
