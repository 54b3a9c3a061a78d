"""The K/V's last trip as one answer: pieces, totals, time at link rate, and what a picture of it needs.

K/V transfer: from the prefill pool to the decode pool, over InfiniBand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, format_seconds
from tracer.memory.kv_text import short_range
from tracer.mesh.cluster import Tier
from tracer.serving.kv_pieces import KvPiece, kv_pieces
from tracer.trip.hop import Hop, HopKind, Part, Role, Transfer, Where
from tracer.trip.hops.moves import make_hop

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.serving.pools import Pools


def kv_transfer(pools: Pools, where: Where, pieces: Iterable[KvPiece]) -> Hop:
    """One transfer for each pair of ranks, all layers together.

    Destinations are shown after the prefill pool's ranks; pools stand on separate nodes, so each transfer
    crosses islands.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    for piece in pieces:
        sizes[piece.src, pools.offset + piece.dst] += piece.bytes
    transfers = [Transfer(src, dst, size, Tier.IB, Role.KV) for (src, dst), size in sorted(sizes.items())]
    return make_hop(HopKind.KV_TRANSFER, where, transfers)


_MANY = 40


@dataclass(frozen=True, slots=True)
class KvHandover:
    """K/V of a prompt, or of one position of it, on its way between pools. ``print`` shows the table."""

    pools: Pools
    position: int | None
    pieces: tuple[KvPiece, ...]

    @property
    def hop(self) -> Hop:
        """The same as a hop of the trip."""
        prefill = self.pools.prefill
        position = prefill.position if self.position is None else self.position
        stage = prefill.mesh.stages - 1
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

    def to_dict(self) -> dict[str, Any]:
        """JSON values: both pools' GPUs with their places, pieces, totals.

        ``tracer/data/schemas/last-trip.schema.json`` describes them.
        """
        from tracer.serving.kv_stream import stream_or_why

        pools = self.pools
        streamed, missing = stream_or_why(self)
        return {
            "schema": 1,
            "position": self.position,
            "pools": [
                _pool("prefill", pools.prefill, sorted({p.src for p in self.pieces}), 0),
                _pool("decode", pools.decode, sorted({p.dst for p in self.pieces}), pools.offset),
            ],
            "pieces": [piece.to_dict() for piece in self.pieces],
            "bytes": self.bytes,
            "crossings": self.crossings,
            "seconds": self.seconds,
            "seconds_assume": self.assumption,
            "streamed": streamed and streamed.to_dict(),
            "streamed_missing": missing,
        }

    def __str__(self) -> str:
        from tracer.serving.kv_stream import stream_or_why

        prefill, decode = self.pools.prefill, self.pools.decode
        what = "the prompt" if self.position is None else f"position {self.position}"
        lines = [
            f"K/V of {what}: {prefill.name or 'prefill'} replica {prefill.replica} → "
            f"{decode.name or 'decode'} replica {decode.replica}",
            _row("from GPU", "to GPU", "layers", "KV heads", "positions", "bytes"),
        ]
        for piece in self.pieces[:_MANY]:
            layers, heads = short_range(piece.layers), short_range(piece.heads) or "latent"
            size = format_bytes(piece.bytes)
            lines.append(_row(str(piece.src), str(piece.dst), layers, heads, f"{piece.positions:,}", size))
        if len(self.pieces) > _MANY:
            lines.append(f"{'…':>8}  {len(self.pieces) - _MANY:,} more pieces")
        lines.append(f"{self.totals} ({self.assumption})")
        streamed, missing = stream_or_why(self)
        lines.append(str(streamed) if streamed else f"not streamed behind prefill: {missing}")
        return "\n".join(lines)


def _row(src: str, dst: str, layers: str, heads: str, positions: str, size: str) -> str:
    return f"{src:>8}  {dst:>6}  {layers:>9}  {heads:<10}  {positions:>9}  {size:>10}"


def kv_handover(pools: Pools, position: int | None = None) -> KvHandover:
    """The transfer of the whole prompt's K/V, or of one position's."""
    return KvHandover(pools, position, kv_pieces(pools, position))


def kv_handover_of(prefill: Scenario, decode: Scenario, *, whole: bool) -> KvHandover:
    """The transfer between two scenarios in any phase: the whole prompt's, or the prefill token's.

    Raises:
        ConfigError: as :class:`~tracer.serving.pools.Pools` does.
    """
    from tracer.serving.pools import Pools

    pools = Pools.join(prefill, decode)
    return kv_handover(pools, None if whole else pools.prefill.position)


def _pool(name: str, scenario: Scenario, ranks: list[int], offset: int) -> dict[str, Any]:
    cluster, grid = scenario.cluster, scenario.mesh.dense
    return {
        "pool": name,
        "name": scenario.name,
        "world_size": scenario.mesh.world_size,
        "replica": scenario.replica,
        "gpus": [
            {
                "rank": rank,
                "shown": rank + offset,
                "node": cluster.node_of(rank),
                "local_index": cluster.local_index(rank),
                "coordinates": grid.coordinates(rank),
            }
            for rank in ranks
        ],
    }
