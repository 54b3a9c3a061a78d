"""A hop of several tokens, told: who moves what, who meets, and which link carries most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layouts.scene.labels import gpus, plural, tokens
from layouts.scene.scene import Words
from layouts.words.context import Context
from layouts.words.tell import DEAD, tell
from tracer.display import format_bytes
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from layouts.scene.scene import BusyLink, Move, Together
    from tracer.trip.several import Step, Trips

TITLES = {
    HopKind.LAND: "Land",
    HopKind.ALL_GATHER: "All-gather",
    HopKind.KV_EXCHANGE: "Exchange K/V",
    HopKind.REDUCE_SCATTER: "Reduce-scatter",
    HopKind.ALL_REDUCE: "All-reduce",
    HopKind.DISPATCH: "Dispatch to experts",
    HopKind.COMBINE: "Combine experts' outputs",
    HopKind.PP_SEND: "Send to the next stage",
    HopKind.HEAD_COPY: "Copy rows to the LM head",
    HopKind.LOGITS_GATHER: "Gather logits",
    HopKind.QUERY_SEND: "Send queries",
    HopKind.PARTIALS_RETURN: "Return partial outputs",
    HopKind.KV_TRANSFER: "Move K/V between pools",
    HopKind.WEIGHT_PULL: "Pull experts' weights",
}
ROLES = {
    "row": "rows",
    "partial": "partial sums",
    "kv": "K/V",
    "dispatch": "rows for experts",
    "forward": "rows a relay passes on",
    "result": "experts' outputs",
    "sum": "sums from a relay",
    "logits": "logits",
    "query": "query heads",
    "output": "outputs, max, sum",
    "weights": "expert weights",
}
LINKS = {"nvlink": "NVLink", "ib": "InfiniBand"}


def tell_together(
    trips: Trips, step: Step, together: Together, moves: Sequence[Move], picks: tuple[int, ...]
) -> Words:
    """What is said of the hop for any token, with all the tokens' moves in the place of one's.

    ``picks`` are the first token's experts.
    """
    first, hop = step.hops[0]
    said = tell(Context(trips.trips[first].scenario, hop, picks))
    what = f"{_taken(trips, together, moves, hop.kind)} {_met(together)}".rstrip()
    gotcha = " ".join(text for text in (_dead(step), _pulled(hop.kind, moves)) if text)
    return Words(TITLES[hop.kind], said.stop, what, said.why, gotcha, said.shapes)


def link_text(link: BusyLink) -> str:
    """A link, what it carries, and whose that is."""
    ends = f"{link.source:,} → {link.destination:,} over {LINKS[link.tier]}"
    return f"{ends}, {format_bytes(link.payload_bytes)} of {tokens(link.tokens)}"


def meeting_text(gpu: int, met: Sequence[int]) -> str:
    """Who meets on a GPU."""
    return f"GPU {gpu:,}: {tokens(met)}"


def _taken(trips: Trips, together: Together, moves: Sequence[Move], kind: HopKind) -> str:
    who = tokens(together.tokens)
    if kind is HopKind.LAND:
        homes = sorted({trips.trips[token].scenario.home for token in together.tokens})
        return f"{who.capitalize()} {_verb(together, 'land')} on {gpus(homes)}."
    others = len(trips.trips) - len(together.tokens)
    rest = f"; {plural(others, 'other')} {'does' if others == 1 else 'do'} not come here" if others else ""
    if not moves:
        return f"{who.capitalize()} {_verb(together, 'take')} this hop; nothing of theirs moves{rest}."
    links = {(move.source, move.destination) for move in moves}
    total = format_bytes(sum(move.payload_bytes for move in moves))
    over = f"{total} over {plural(len(links), 'link')}{rest}"
    return f"{who.capitalize()} {_verb(together, 'take')} this hop: {over}."


def _verb(together: Together, plain: str) -> str:
    return f"{plain}s" if len(together.tokens) == 1 else plain


def _met(together: Together) -> str:
    """On how many GPUs tokens meet, and where most of them do."""
    if not together.meetings:
        return "No two of them meet." if len(together.tokens) > 1 else ""
    gpu, met = max(together.meetings, key=lambda meeting: len(meeting[1]))
    if len(together.meetings) == 1:
        return f"On GPU {gpu:,} meet {tokens(met)}."
    return f"They meet on {plural(len(together.meetings), 'GPU')}; on GPU {gpu:,} are {tokens(met)}."


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
