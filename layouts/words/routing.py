"""Words of what routing exchanges besides rows: experts' counts, and the gates' probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import gpus, plural
from layouts.scene.scene import Words
from layouts.words.plain import stop_of
from tracer.display import format_bytes

if TYPE_CHECKING:
    from layouts.words.context import Context


def counts_reduce(context: Context) -> Words:
    """Counts summed over the replica's stage, for the balancing loss."""
    others = len({transfer.src for transfer in context.hop.transfers} - {context.home})
    what = "Nothing moves: all of the sequence is here."
    if others:
        what = f"{_moved(context)} {plural(others, 'GPU')} and GPU {context.home:,} sum one number an expert."
    return Words(
        "Sum how often each expert is picked",
        stop_of(context.hop.part),
        what,
        "The balancing loss needs counts of the whole sequence, and its tokens lie on all TP and CP ranks.",
        _ONCE,
    )


def counts_gather(context: Context) -> Words:
    """Counts for the dispatch group: how many rows come from whom."""
    what = "Nothing moves: no other rank dispatches to these experts."
    if context.hop.transfers:
        what = f"{_moved(context)} Each rank learns how many rows it gets from each other."
    return Words(
        "Tell how many rows will come",
        stop_of(context.hop.part),
        what,
        "An all-to-all must know the size of what it receives, and only the senders' routers know it.",
        _ONCE,
    )


def probs_dispatch(context: Context) -> Words:
    """A probability beside each copy of the row."""
    targets = sorted({transfer.dst for transfer in context.hop.transfers})
    what = "No probability moves: the experts are at home."
    if targets:
        what = f"{_moved(context)} One probability goes beside each copy of the row, to {gpus(targets)}."
    return Words(
        "Send the gates' probabilities",
        stop_of(context.hop.part),
        what,
        "The expert's GPU weighs its output itself, before it sends it back.",
        "A few bytes, but an all-to-all of its own: it costs a latency like the rows' one.",
    )


_ONCE = "Once a layer, whatever the tokens: a batch pays it once, a trip of one token shows it whole."


def _moved(context: Context) -> str:
    return f"{format_bytes(context.hop.bytes)} in all."
