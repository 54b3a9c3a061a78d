"""What is said of a hop: one teller per kind, and how the hop is told of several tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from layouts.scene.labels import gpus, plural, tokens
from layouts.scene.scene import Words
from layouts.words import attention, decode, ends, kinds, moe, plain, routing, sums
from tracer.display import format_bytes
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from layouts.scene.scene import Move
    from layouts.words.context import Context
    from tracer.trip.trips import Step, Trips

Meetings = tuple[tuple[int, tuple[int, ...]], ...]
_TELLERS: dict[HopKind, Callable[[Context], Words]] = {
    HopKind.LAND: ends.land,
    HopKind.ALL_GATHER: sums.all_gather,
    HopKind.REDUCE_SCATTER: sums.reduce_scatter,
    HopKind.ALL_REDUCE: sums.all_reduce,
    HopKind.KV_EXCHANGE: attention.kv_exchange,
    HopKind.HEADS_SCATTER: attention.heads_scatter,
    HopKind.HEADS_GATHER: attention.heads_gather,
    HopKind.STATE_PASS: kinds.state_pass,
    HopKind.COUNTS_REDUCE: routing.counts_reduce,
    HopKind.COUNTS_GATHER: routing.counts_gather,
    HopKind.PROBS_DISPATCH: routing.probs_dispatch,
    HopKind.DISPATCH: moe.dispatch,
    HopKind.COMBINE: moe.combine,
    HopKind.WEIGHT_PULL: moe.weight_pull,
    HopKind.WEIGHT_GATHER: moe.weight_gather,
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
    """Title, paragraph, reason and gotcha of one token's hop."""
    words = _TELLERS.get(context.hop.kind, plain.plain_hop)(context)
    if context.hop.dead:
        words = replace(words, gotcha=f"{DEAD} {words.gotcha}".strip())
    return words


def tell_step(trips: Trips, step: Step, meetings: Meetings, moves: Sequence[Move], first: Context) -> Words:
    """The words of a hop for all tokens that take it; ``first`` is the context of the first of them.

    One token's hop is told by its teller. For several tokens, title, paragraph and gotcha speak of all of
    them; the reason and the shapes are the first one's.
    """
    said = tell(first)
    if not trips.multi_token:
        return said
    what = f"{_taken(trips, step, moves)} {_met(step, meetings)}".rstrip()
    gotcha = " ".join(text for text in (_dead(step), _pulled(step.hop.kind, moves)) if text)
    return Words(step.hop.kind.label, said.stop, what, said.why, gotcha, said.shapes)


def _taken(trips: Trips, step: Step, moves: Sequence[Move]) -> str:
    """Which tokens take the hop, and what of theirs moves."""
    kind, who = step.hop.kind, tokens(step.tokens)
    if kind is HopKind.LAND:
        homes = sorted({trips.trips[token].scenario.home for token in step.tokens})
        return f"{who.capitalize()} {_verb(step, 'land')} on {gpus(homes)}."
    others = len(trips.trips) - len(step.tokens)
    rest = f"; {plural(others, 'other')} {'does' if others == 1 else 'do'} not come here" if others else ""
    if not moves:
        return f"{who.capitalize()} {_verb(step, 'take')} this hop; nothing of theirs moves{rest}."
    links = {(move.source, move.destination) for move in moves}
    total = format_bytes(sum(move.payload_bytes for move in moves))
    over = f"{total} over {plural(len(links), 'link')}{rest}"
    return f"{who.capitalize()} {_verb(step, 'take')} this hop: {over}."


def _verb(step: Step, plain: str) -> str:
    return f"{plain}s" if len(step.tokens) == 1 else plain


def _met(step: Step, meetings: Meetings) -> str:
    """On how many GPUs tokens meet, and where most of them do."""
    if not meetings:
        return "No two of them meet." if len(step.tokens) > 1 else ""
    gpu, met = max(meetings, key=lambda meeting: len(meeting[1]))
    if len(meetings) == 1:
        return f"On GPU {gpu:,} meet {tokens(met)}."
    return f"They meet on {plural(len(meetings), 'GPU')}; on GPU {gpu:,} are {tokens(met)}."


def _pulled(kind: HopKind, moves: Sequence[Move]) -> str:
    """Weights are pulled for a GPU, whoever is on it; totals add up what each token's own trip pulls."""
    if kind is not HopKind.WEIGHT_PULL or all(len(move.tokens) == 1 for move in moves):
        return ""
    return "Bytes of each token's own trip are added up here; tokens on one GPU share one pull a layer."


def _dead(step: Step) -> str:
    dead = [token for token, hop in step.hops if hop.dead]
    if not dead:
        return ""
    if len(dead) == len(step.hops):
        return DEAD
    return f"Dead work for {tokens(dead)}: nothing reads this result. Engines compute it anyway."
