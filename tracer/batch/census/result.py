"""The census: copies, bytes, loads and imbalance of a batch, over all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tracer.batch.census.counts import StageTraffic
from tracer.display import Shown, Writers, writer
from tracer.errors import ConfigError
from tracer.mesh.cluster import nvlink_domains_of
from tracer.model.dtype import BYTES
from tracer.scenario.plan import Contract
from tracer.traffic.moe import RowBytes
from tracer.trip.hop import Part
from tracer.trip.hops.moves import gathered_row_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.scenario.scenario import Scenario

    Int64s = NDArray[np.int64]

MAX_MATRIX_RANKS = 4096


@dataclass(frozen=True, slots=True)
class CensusPart:
    """Traffic of the layers that were counted together (one stage, one placement; or one layer)."""

    layers: tuple[int, ...]
    stage: int
    traffic: StageTraffic


@dataclass(frozen=True)
class Census(Shown):
    """A whole batch counted. ``layers`` are the model's layer numbers; ``tokens`` those of the batch.

    Matrices are over all ranks, dispatch direction, summed over layers; ``print`` shows a summary.
    """

    WRITERS: ClassVar[Writers] = Writers(
        text="tracer.batch.census.report:census_text",
        values="tracer.batch.census.report:census_report",
        table="tracer.batch.census.report:census_table",
        picture="census",
    )

    scenario: Scenario
    tokens: int
    top_k: int
    layers: tuple[int, ...]
    parts: tuple[CensusPart, ...]
    notes: tuple[str, ...] = ()

    def only(self, layer: int) -> Census:
        """The census of one layer, when layers were counted apart.

        Raises:
            ConfigError: when they were not.
        """
        parts = tuple(part for part in self.parts if part.layers == (layer,))
        if not parts:
            raise ConfigError("layer", layer, "was not counted apart", "run the census with by_layer=True")
        return Census(self.scenario, self.tokens, self.top_k, (layer,), parts, self.notes)

    @cached_property
    def _ranks(self) -> Int64s:
        return self.scenario.mesh.stage_lists().astype(np.int64)

    def _matrix(self, name: str) -> Int64s:
        world = self.scenario.mesh.world_size
        if world > MAX_MATRIX_RANKS:
            raise ConfigError(
                "world_size", world, f"is too many ranks for a matrix of at most {MAX_MATRIX_RANKS}",
                "use the sums by rank instead",
            )  # fmt: skip
        total = np.zeros((world, world), np.int64)
        for part in self.parts:
            ranks = self._ranks[part.stage]
            total[np.ix_(ranks, ranks)] += getattr(part.traffic, name)
        return total

    def _by_rank(self, name: str) -> Int64s:
        total = np.zeros(self.scenario.mesh.world_size, np.int64)
        for part in self.parts:
            total[self._ranks[part.stage]] += getattr(part.traffic, name)
        return total

    @property
    def copies(self) -> Int64s:
        """Tokens by home and GPU of an expert, one a distinct GPU ``[rank, rank]``; the diagonal stays."""
        return self._matrix("copies")

    @property
    def sent(self) -> Int64s:
        """Messages of dispatch by sender and receiver, through relays ``[rank, rank]``."""
        return self._matrix("sent")

    @property
    def returned(self) -> Int64s:
        """Messages of combine by sender and receiver ``[rank, rank]``."""
        return self._matrix("back")

    @property
    def pulled_bytes(self) -> Int64s:
        """Bytes of weights by owner and puller ``[rank, rank]``, once a layer."""
        return self._matrix("pulled")

    @property
    def ib_copies(self) -> Int64s:
        """Messages of dispatch that leave a home for another NVLink domain ``[rank, nvlink_domain]``."""
        total = np.zeros((self.scenario.mesh.world_size, self.scenario.cluster.nvlink_domains), np.int64)
        for part in self.parts:
            total[self._ranks[part.stage]] += part.traffic.ib_copies
        return total

    @property
    def relayed(self) -> Int64s:
        """Messages a rank forwards for others ``[rank]``."""
        return self._by_rank("relayed")

    @property
    def gpu_load(self) -> Int64s:
        """Picks a rank works on ``[rank]``; each etp rank works on a slice of its experts' picks."""
        return self._by_rank("gpu_load")

    @property
    def load_by_expert(self) -> Int64s:
        """Picks ``[expert]``."""
        total: Int64s = np.sum([part.traffic.load for part in self.parts], axis=0)
        return total

    @property
    def picks(self) -> int:
        """Picks counted: shared experts that are routed, and without SP each TP rank's copy, included."""
        return int(self.load_by_expert.sum())

    @property
    def straight(self) -> int:
        """Messages that went straight to another NVLink domain for want of a relay."""
        return sum(part.traffic.straight for part in self.parts)

    @cached_property
    def row_bytes(self) -> RowBytes:
        """Bytes of a dispatched and of a combined row."""
        if self.scenario.plan.contract is Contract.TP:
            size = self.scenario.model.expert_row * BYTES[self.scenario.dtype.activations]
            return RowBytes(gathered_row_bytes(self.scenario, Part.MOE), size)
        return RowBytes.of(self.scenario)

    def messages_by_tier(self, name: str = "sent") -> dict[str, int]:
        """Messages inside NVLink domains and between them; ``name`` is ``sent``, ``back`` or ``pulled``."""
        totals = {"nvlink": 0, "ib": 0}
        for part in self.parts:
            nvlink_domains = nvlink_domains_of(self.scenario.cluster, self._ranks[part.stage])
            matrix: Int64s = getattr(part.traffic, name)
            crossing = int(matrix[nvlink_domains[:, None] != nvlink_domains[None, :]].sum())
            totals["ib"] += crossing
            totals["nvlink"] += int(matrix.sum()) - crossing
        return totals

    def bytes_by_tier(self, direction: str = "dispatch") -> dict[str, int]:
        """Bytes of ``dispatch`` or of ``combine`` by tier."""
        out = direction == "dispatch"
        size = self.row_bytes.dispatch if out else self.row_bytes.combine
        return {
            tier: count * size for tier, count in self.messages_by_tier("sent" if out else "back").items()
        }

    def to_dict(self, *, by_layer: bool = False) -> dict[str, Any]:
        """JSON values; ``by_layer`` adds one such table for each layer.

        Raises:
            ConfigError: for a mesh too large to write as a matrix.
        """
        values: dict[str, Any] = writer(self.WRITERS.values)(self, by_layer=by_layer)
        return values
