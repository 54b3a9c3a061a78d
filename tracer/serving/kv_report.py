"""What a K/V hand-over tells: its pieces, its totals, and what streaming behind prefill leaves exposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, left, right, short_range, text_table
from tracer.serving.kv_stream import stream_or_why

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.serving.kv_handover import KvHandover

_SHOWN_PIECES = 40
_COLUMNS = (
    right("from GPU", 8, gap=0),
    right("to GPU", 6),
    right("layers", 9),
    left("KV heads", 10),
    right("positions", 9),
    right("bytes", 10),
)


def handover_text(moved: KvHandover) -> str:
    """A line per piece, the totals, and the stream or why there is none."""
    prefill, decode = moved.pools.prefill, moved.pools.decode
    what = "the prompt" if moved.position is None else f"position {moved.position}"
    rows = [
        (
            piece.src,
            piece.dst,
            short_range(piece.layers),
            short_range(piece.heads) or "latent",
            f"{piece.positions:,}",
            format_bytes(piece.bytes),
        )
        for piece in moved.pieces[:_SHOWN_PIECES]
    ]
    lines = [
        f"K/V of {what}: {prefill.name or 'prefill'} replica {prefill.replica} → "
        f"{decode.name or 'decode'} replica {decode.replica}",
        *text_table(_COLUMNS, rows),
    ]
    if len(moved.pieces) > _SHOWN_PIECES:
        more = f"{len(moved.pieces) - _SHOWN_PIECES:,} more pieces"
        lines += text_table((_COLUMNS[0], left()), [("…", more)], headings=False)
    lines.append(f"{moved.totals} ({moved.assumption})")
    streamed, missing = stream_or_why(moved)
    lines.append(str(streamed) if streamed else f"not streamed behind prefill: {missing}")
    return "\n".join(lines)


def handover_to_dict(moved: KvHandover) -> dict[str, Any]:
    """JSON values: both pools' GPUs with their places, pieces, totals.

    ``tracer/data/schemas/last-trip.schema.json`` describes them.
    """
    pools = moved.pools
    streamed, missing = stream_or_why(moved)
    return {
        "schema": 1,
        "position": moved.position,
        "pools": [
            _pool("prefill", pools.prefill, sorted({p.src for p in moved.pieces}), 0),
            _pool("decode", pools.decode, sorted({p.dst for p in moved.pieces}), pools.offset),
        ],
        "pieces": [piece.to_dict() for piece in moved.pieces],
        "bytes": moved.bytes,
        "crossings": moved.crossings,
        "seconds": moved.seconds,
        "seconds_assume": moved.assumption,
        "streamed": streamed and streamed.to_dict(),
        "streamed_missing": missing,
    }


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
