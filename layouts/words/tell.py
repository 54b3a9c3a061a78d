"""Which teller tells which hop, and what is added to every hop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from layouts.scene.scene import Words
from layouts.words import attention, decode, ends, moe, sums
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from layouts.words.context import Context

_TELLERS: dict[HopKind, Callable[[Context], Words]] = {
    HopKind.LAND: ends.land,
    HopKind.ALL_GATHER: sums.all_gather,
    HopKind.REDUCE_SCATTER: sums.reduce_scatter,
    HopKind.ALL_REDUCE: sums.all_reduce,
    HopKind.KV_EXCHANGE: attention.kv_exchange,
    HopKind.DISPATCH: moe.dispatch,
    HopKind.COMBINE: moe.combine,
    HopKind.WEIGHT_PULL: moe.weight_pull,
    HopKind.PP_SEND: ends.pp_send,
    HopKind.HEAD_COPY: ends.head_copy,
    HopKind.LOGITS_GATHER: ends.logits_gather,
    HopKind.QUERY_SEND: decode.query_send,
    HopKind.PARTIALS_RETURN: decode.partials_return,
    HopKind.KV_TRANSFER: decode.kv_transfer,
}

DEAD = (
    "Dead work: this is the last layer and the token is not the prompt's last, so nothing reads this "
    "result. Engines compute it anyway."
)


def tell(context: Context) -> Words:
    """Title, paragraph, reason and gotcha of a hop."""
    words = _TELLERS[context.hop.kind](context)
    if context.hop.dead:
        words = replace(words, gotcha=f"{DEAD} {words.gotcha}".strip())
    return words
