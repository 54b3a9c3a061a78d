"""The hand-over of K/V from a prefill pool to a decode pool: its pieces, totals, and time at link rate.

All pieces between two ranks are one transfer of the trip, over InfiniBand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tracer.display import Shown, Writers, format_bytes, format_seconds
from tracer.mesh.cluster import Tier
from tracer.serving.kv_pieces import KvPiece, kv_pieces
from tracer.serving.pools import Pools
from tracer.trip.hop import Hop, HopKind, Part, Role, Transfer, Where
from tracer.trip.hops.moves import make_hop

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def kv_transfer(pools: Pools, where: Where, pieces: Iterable[KvPiece]) -> Hop:
    """One transfer for each pair of ranks, all layers together.

    Destinations are shown after the prefill pool's ranks; pools stand on separate nodes, so each transfer
    crosses NVLink domains.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    for piece in pieces:
        sizes[piece.src, pools.offset + piece.dst] += piece.bytes
    transfers = [Transfer(src, dst, size, Tier.IB, Role.KV) for (src, dst), size in sorted(sizes.items())]
    return make_hop(HopKind.KV_TRANSFER, where, transfers)


@dataclass(frozen=True, slots=True)
class KvHandover(Shown):
    """K/V of a prompt, or of one position of it, on its way between pools. ``print`` shows the table.

    ``tracer/data/schemas/last-trip.schema.json`` describes the JSON values.
    """

    WRITERS: ClassVar[Writers] = Writers(
        text="tracer.serving.kv_report:handover_text", values="tracer.serving.kv_report:handover_to_dict"
    )

    pools: Pools
    position: int | None
    pieces: tuple[KvPiece, ...]

    @property
    def hop(self) -> Hop:
        """The same as a hop of the trip."""
        prefill = self.pools.prefill
        position = prefill.position if self.position is None else self.position
        stage = prefill.head_stage
        where = Where(prefill.model.layers, stage, position, prefill.home, Part.TRANSFER)
        return kv_transfer(self.pools, where, self.pieces)

    @property
    def bytes(self) -> int:
        """Bytes in all."""
        return sum(piece.bytes for piece in self.pieces)

    @property
    def crossings(self) -> int:
        """Node crossings: one for each pair of ranks that talk."""
        return self.hop.crossings

    @property
    def seconds(self) -> float:
        """The busiest GPU's bytes, out or in, over its link, and one latency; all GPUs at once."""
        out: Counter[int] = Counter()
        into: Counter[int] = Counter()
        for piece in self.pieces:
            out[piece.src] += piece.bytes
            into[piece.dst] += piece.bytes
        busiest = max((*out.values(), *into.values()), default=0)
        link = self.pools.link
        return link.latency_s + busiest / link.bytes_per_s if busiest else 0.0

    @property
    def assumption(self) -> str:
        """What the time assumes."""
        link = self.pools.link
        latency = f" + {link.latency_s * 1e6:g} µs" if link.latency_s else ""
        return (
            f"all GPUs send at once, each over its own link at {link.bytes_per_s / 1e9:g} GB/s{latency}; "
            "all of it after prefill"
        )

    @property
    def totals(self) -> str:
        """Bytes, pieces, crossings and time in one line."""
        pieces, crossings = len(self.pieces), self.crossings
        return (
            f"{format_bytes(self.bytes)} in {pieces:,} piece{'s' * (pieces != 1)} · "
            f"{crossings:,} crossing{'s' * (crossings != 1)} · {format_seconds(self.seconds)}"
        )


def kv_handover(pools: Pools, position: int | None = None) -> KvHandover:
    """The transfer of the whole prompt's K/V, or of one position's."""
    return KvHandover(pools, position, kv_pieces(pools, position))


def kv_handover_of(prefill: Scenario, decode: Scenario, *, whole: bool) -> KvHandover:
    """The transfer between two scenarios in any phase: the whole prompt's, or the prefill token's.

    Raises:
        ConfigError: as :class:`~tracer.serving.pools.Pools` does.
    """
    pools = Pools.join(prefill, decode)
    return kv_handover(pools, None if whole else pools.prefill.position)
