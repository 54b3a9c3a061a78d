"""The K/V hand-over on the decode page: drawn, listed, and streamed behind prefill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.reports.blocks import Block, chart, counts, heading, note, picture, table
from layouts.charts.gantt import gantt_figure
from layouts.pictures.pool_map import build_pool_map
from layouts.pictures.pool_svg import render_pool_svg
from tracer.display import format_bytes, format_seconds, short_range
from tracer.serving.kv_handover import kv_handover
from tracer.serving.kv_stream import KvStream, stream_or_why
from tracer.serving.pools import Pools
from tracer.timing.timeline import of_streams

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SHOWN = 200
MAX_STREAMED = 1 << 16
LARGE = f"here up to {MAX_STREAMED:,} GPUs are; `tokentrip kv --to` times larger meshes"
FILES = [("SVG", "/export/last-trip.svg"), ("PNG", "/export/last-trip.png")]


def handover_blocks(prefill: Scenario, decode: Scenario) -> list[Block]:
    """The whole prompt's K/V on its way from a prefill pool to a decode pool."""
    moved = kv_handover(Pools.join(prefill, decode))
    streamed, missing = stream_or_why(moved) if prefill.mesh.world_size <= MAX_STREAMED else (None, LARGE)
    rows = [
        [
            f"GPU {piece.src} → {piece.dst}",
            short_range(piece.layers),
            short_range(piece.heads) or "latent",
            f"{piece.positions:,}",
            format_bytes(piece.bytes),
        ]
        for piece in moved.pieces[:SHOWN]
    ]
    sums = [
        ("moved", format_bytes(moved.bytes)),
        ("pieces", f"{len(moved.pieces):,}"),
        ("crossings", f"{moved.crossings:,}"),
        ("at link rate, after prefill", format_seconds(moved.seconds)),
        *([("exposed, layer by layer", format_seconds(streamed.exposed_seconds))] if streamed else []),
    ]
    heads = ["prefill GPU → decode GPU", "layers", "KV heads", "positions", "bytes"]
    return [
        heading("The K/V's last trip, when prefill and decode are pools of their own"),
        counts("The last trip in all", sums),
        picture("The K/V on its way", render_pool_svg(build_pool_map(moved), "page"), FILES),
        table("The last trip", heads, rows),
        note(f"Assumes that {moved.assumption}." + more_text(len(moved.pieces))),
        *(
            _streamed(streamed)
            if streamed
            else [note(f"Not timed layer by layer behind prefill: {missing}.")]
        ),
    ]


def _streamed(streamed: KvStream) -> list[Block]:
    """Each layer's K/V behind the next layer's work, on the link that ends last."""
    figure = gantt_figure(of_streams(streamed.placed, ""), colours=("var(--soft)", "var(--ib)"))
    rows = [
        ["prefill of the prompt", format_seconds(streamed.prefill_seconds)],
        ["K/V all after it", format_seconds(streamed.after_seconds)],
        ["exposed when streamed, simulated", format_seconds(streamed.exposed_seconds)],
        ["exposed, closed form", format_seconds(streamed.closed_form_seconds)],
        ["hidden behind prefill", format_seconds(streamed.hidden_seconds)],
    ]
    where = f"{streamed.pool} GPU {streamed.rank}"
    return [
        heading("Streamed layer by layer"),
        chart(f"Prefill's layers, and their K/V on the link of {where}, which ends last", figure, height=180),
        table("Streamed", ["", "time"], rows),
        note(
            f"Of all links that of {where} ends last. Closed form: the most, over layers k, of the transfers "
            f"from k on less the work after k. Assumes {streamed.assumption}."
        ),
    ]


def more_text(count: int) -> str:
    """How many rows a table leaves out, if any."""
    return f" The first {SHOWN} of {count:,} are listed." if count > SHOWN else ""
