"""K/V transfer: from the prefill pool to the decode pool, over InfiniBand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracer.cluster import Tier
from tracer.hop import Hop, HopKind, Role, Transfer, Where
from tracer.hops.moves import make_hop

if TYPE_CHECKING:
    from tracer.kv_pieces import KvPiece
    from tracer.pools import Pools


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
