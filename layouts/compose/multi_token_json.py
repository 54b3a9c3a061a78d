"""What a scene of several tokens adds to the JSON of a scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from layouts.compose.player_rows import CounterRow, DotRow, LinkWords, RiderRow, TagRow, columns
from layouts.scene.labels import link_text, meeting_text, plural
from layouts.scene.token_tags import (
    Standing,
    Tag,
    carried_text,
    colours_of,
    kv_after,
    kv_tags,
    token_name,
    token_tags,
    tokens_after,
    tokens_during,
)
from layouts.svg.legend import notes
from tracer.display import format_bytes

if TYPE_CHECKING:
    from layouts.scene.scene import BusyLink, HopScene, Scene, TokenTotals

MAX_LINES = 24


def several_to_dict(scene: Scene) -> dict[str, Any]:
    """The tokens, each with its colours and its own totals; the busiest link; what the legend adds."""
    return {
        "tokens": [_token(token, scene.replicas) for token in scene.tokens],
        "busiest": _busiest(scene.busiest),
        "legend_notes": notes(scene),
    }


def _token(token: TokenTotals, replicas: int) -> dict[str, Any]:
    fill, ink = colours_of(token.index)
    totals = CounterRow(
        token.gpus_touched, token.node_crossings, token.comm_ops, token.bytes, format_bytes(token.bytes)
    )
    return {
        "index": token.index,
        "name": token_name(token, replicas=replicas),
        "replica": token.replica,
        "position": token.position,
        "home": token.home,
        "colours": {"fill": fill, "ink": ink},
        "totals": asdict(totals),
    }


def several_hops(scene: Scene) -> Iterator[dict[str, Any]]:
    """For each hop: marks by GPU, while it travels and after it; tokens of each move; who is where and meets.

    Of the marks, ``tags_after`` are all tags after the hop, ``tags_during`` those of GPUs where others stand
    while it travels than before it, ``emptied`` the GPUs where then nobody stands, ``kv_tags`` the K/V of
    GPUs where the hop changed it.
    """
    before: HopScene | None = None
    for hop, kept in zip(scene.hops, kv_after(scene), strict=True):
        standing: dict[int, Standing] = tokens_after(before) if before else {}
        going, after = tokens_during(hop, before), tokens_after(hop)
        during = {rank: going.get(rank, ()) for rank in standing if going.get(rank) != standing[rank]}
        riders = [RiderRow(carried_text(move.tokens), _only(move.tokens)) for move in hop.moves]
        yield {
            "marks": {
                "dots": columns(DotRow, []),
                "kv_owners": [],
                "kv_copies": [],
                "relays": [],
                "newly_touched": list(dict.fromkeys(hop.newly_touched)),
                "tags_after": _tags({rank: token_tags(held, numbered=True) for rank, held in after.items()}),
                "tags_during": _tags(
                    {rank: token_tags(held, numbered=True) for rank, held in during.items()}
                ),
                "emptied": [rank for rank, held in during.items() if not held],
                "kv_tags": _tags({rank: kv_tags(*held, numbered=True) for rank, held in kept.items()}),
            },
            "riders": columns(RiderRow, riders),
            "places": _lines({gpu: [token for token, _ in after[gpu]] for gpu in sorted(after)}),
            **_meetings(hop),
        }
        before = hop


def _meetings(hop: HopScene) -> dict[str, Any]:
    found = sorted(hop.meetings, key=lambda meeting: -len(meeting[1]))
    return {
        "takers": len(hop.tokens),
        "meetings": _lines(dict(found)),
        "busiest": _busiest(hop.busiest),
    }


def _lines(tokens_on: Mapping[int, Sequence[int]]) -> list[str]:
    """Which tokens are on which GPU, the first few GPUs."""
    lines = [meeting_text(gpu, tokens) for gpu, tokens in islice(tokens_on.items(), MAX_LINES)]
    more = len(tokens_on) - MAX_LINES
    return [*lines, f"and on {plural(more, 'more GPU')}"] if more > 0 else lines


def _busiest(link: BusyLink | None) -> dict[str, Any] | None:
    return None if link is None else asdict(LinkWords(link.source, link.destination, link_text(link)))


def _only(tokens: tuple[int, ...]) -> int | None:
    return tokens[0] if len(tokens) == 1 else None


def _tags(tags_of: Mapping[int, Sequence[Tag]]) -> dict[str, list[Any]]:
    rows = [
        TagRow(rank, tag.x, tag.width, tag.text, tag.look, tag.token)
        for rank, tags in tags_of.items()
        for tag in tags
    ]
    return columns(TagRow, rows)
