"""What a sentence about a hop may need, looked up once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.scene.labels import gpus
from tracer.display import format_bytes
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Sp
from tracer.trip.hop import Where
from tracer.trip.hops.moves import moe_sources, tp_ranks
from tracer.trip.hops.routes import expert_messages

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hop import Hop


@dataclass(frozen=True, slots=True)
class Context:
    """A hop and its scenario, with the questions that sentences ask."""

    scenario: Scenario
    hop: Hop
    picks: tuple[int, ...] = ()

    def size(self, axis: str) -> int:
        """Ranks along an axis."""
        return self.scenario.mesh.size_of(axis)

    @property
    def model(self) -> ModelSpec:
        """The model."""
        return self.scenario.model

    @property
    def home(self) -> int:
        """The rank that is home in the hop's stage."""
        return self.scenario.mesh.moved(self.scenario.home, Axis.PP, self.hop.stage)

    @property
    def tp_group(self) -> list[int]:
        """The TP group of home."""
        return tp_ranks(self.scenario, self.home)

    @property
    def peers(self) -> list[int]:
        """The TP group without home."""
        return [rank for rank in self.tp_group if rank != self.home]

    @property
    def splits_tokens(self) -> bool:
        """Whether SP keeps each token on one TP rank outside attention."""
        return self.scenario.plan.sp is Sp.MEGATRON

    @property
    def sources(self) -> list[int]:
        """Ranks that run the token's MoE block."""
        return moe_sources(self.scenario, self.home)

    @property
    def domain_word(self) -> str:
        """What an NVLink domain is called in this cluster."""
        return self.scenario.cluster.domain_word

    def nvlink_domain(self, rank: int) -> int:
        """NVLink domain of a rank."""
        return self.scenario.cluster.nvlink_domain_of(rank)

    def place(self, rank: int) -> str:
        """A GPU and its NVLink domain.

        ``GPU 2 on node 0``.
        """
        return f"{gpus([rank])} on {self.domain_word} {self.nvlink_domain(rank):,}"

    @property
    def each_bytes(self) -> str:
        """Bytes of one transfer of the hop, with unit."""
        return format_bytes(self.hop.transfers[0].bytes if self.hop.transfers else 0)

    @property
    def row(self) -> str:
        """The row's shape."""
        return f"[{self.model.need('hidden', 'size a row'):,}]"

    @property
    def where(self) -> Where:
        """The hop's place, as route planning takes it."""
        hop = self.hop
        return Where(hop.layer, hop.stage, self.scenario.position, self.home, hop.part, self.picks)

    def experts_by_rank(self, source: int) -> dict[int, list[int]]:
        """Picked experts by the GPU that serves them for ``source``, in the order of the picks."""
        found: dict[int, list[int]] = {}
        for expert, rank in expert_messages(self.scenario, self.where, source):
            found.setdefault(rank, []).append(expert)
        return found
