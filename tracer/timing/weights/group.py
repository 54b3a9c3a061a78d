"""A group of ranks that serves one MoE model with its experts cut over it, attention whole on each rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, finite_number, one_of, whole_number
from tracer.mesh.cluster import Link
from tracer.model.parameters import expert_bytes, part_format
from tracer.model.weight_format import WeightFormat, stored_bytes
from tracer.model.weights import WeightPart
from tracer.traffic.chance import HitChance

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.model.spec import ModelSpec

COPIES = ("picks", "distinct", "all")


@dataclass(frozen=True, slots=True)
class MoeGroup:
    """``ranks`` GPUs on one fabric (a :class:`Link`, one direction, a GPU).

    ``copies`` says how a token travels: ``picks`` one copy per pick (as the sources count), ``distinct`` one
    a distinct GPU, ``all`` to every other rank (all-gather). ``local_experts`` is what a rank keeps: an
    even share unless more are kept (redundancy). ``fabric_share`` is the part of the fabric's rate that
    copies reach. ``output_weights`` is the storage of attention's output projection where it differs.
    Rows are dispatched in the experts' storage format (MXFP4: BF16) and combined in BF16.

    Raises:
        ConfigError: for a group that cannot hold every expert, or a share that is not from 0 to 1.
    """

    spec: ModelSpec
    hardware: Hardware
    ranks: int
    fabric: Link
    copies: str = "picks"
    local_experts: int | None = None
    fabric_share: float = 1.0
    output_weights: WeightFormat | None = None

    def __post_init__(self) -> None:
        whole_number("group.ranks", self.ranks, at_least=2)
        one_of("group.copies", self.copies, COPIES)
        if finite_number("group.fabric_share", self.fabric_share, zero=True, at_most=1) == 0:
            raise ConfigError("group.fabric_share", 0, "must be above 0", "try 1.0")
        if self.local_experts is not None:
            whole_number("group.local_experts", self.local_experts)
            low, high = -(-self.experts // self.ranks), self.experts
            if not low <= self.local_experts <= high:
                rule = f"must be from {low} to {high}, so that {self.ranks} ranks hold every expert"
                raise ConfigError("group.local_experts", self.local_experts, rule, f"try {low}")

    @property
    def experts(self) -> int:
        """Routed experts of a layer."""
        return self.spec.need("experts", "cut experts over a group")

    @property
    def kept(self) -> float:
        """Experts a rank keeps."""
        return self.experts / self.ranks if self.local_experts is None else self.local_experts

    @property
    def remote_bytes(self) -> float:
        """Bytes of experts a rank pulls a layer when weights move: all it does not keep."""
        return (self.experts - self.kept) * expert_bytes(self.spec)

    @property
    def prefetch_seconds(self) -> float:
        """Seconds to pull them, alone on the fabric."""
        return self.fabric.latency_s + self.remote_bytes / (self.fabric.bytes_per_s * self.fabric_share)

    def exchange_bytes(self, rows: float) -> float:
        """Bytes a rank sends to dispatch ``rows`` rows and to give their results back, when tokens move."""
        hidden = self.spec.need("hidden", "size a row")
        stored = part_format(self.spec, WeightPart.EXPERTS)
        there = stored_bytes(stored, 1, hidden) if stored != WeightFormat.MXFP4 else 2 * hidden
        return finite_number("rows", rows, zero=True) * self._copies() * (there + 2 * hidden)

    def exchange_seconds(self, rows: float) -> float:
        """Seconds of dispatch and combine."""
        return 2 * self.fabric.latency_s + self.exchange_bytes(rows) / self.fabric.bytes_per_s

    def _copies(self) -> float:
        """Copies of a row that leave its rank."""
        if self.copies == "all":
            return self.ranks - 1
        if self.copies == "picks":
            return self.spec.need("top_k", "count picks") * (1 - 1 / self.ranks)
        chance = HitChance(self.experts, self.spec.need("top_k", "count picks"))
        return (self.ranks - 1) * chance.of_count(self.experts // self.ranks)

    def on(self, fabric: Link) -> MoeGroup:
        """The same group on another fabric."""
        return replace(self, fabric=fabric)
