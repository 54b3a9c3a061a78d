"""What a scene of several tokens adds to the JSON of a scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from layouts.scene.crowds import (
    Crowd,
    Tag,
    colours_of,
    crowd_tags,
    crowds_after,
    crowds_while,
    kept_after,
    kept_tags,
    riders_text,
    token_name,
)
from layouts.scene.labels import plural
from layouts.svg.legend import notes
from layouts.words.together import link_text, meeting_text
from tracer.display import format_bytes

if TYPE_CHECKING:
    from layouts.scene.scene import BusyLink, HopScene, Scene, Together

MAX_LINES = 24


def several_to_dict(scene: Scene) -> dict[str, Any]:
    """The tokens, each with its colours and its own totals; the busiest link; what the legend adds."""
    return {
        "tokens": [
            {
                "index": token.index,
                "name": token_name(token, replicas=scene.replicas),
                "replica": token.replica,
                "position": token.position,
                "home": token.home,
                "colours": list(colours_of(token.index)),
                "totals": [
                    token.gpus_touched,
                    token.node_crossings,
                    token.comm_ops,
                    token.bytes,
                    format_bytes(token.bytes),
                ],
            }
            for token in scene.tokens
        ],
        "busiest": _busiest(scene.busiest),
        "legend_notes": notes(scene),
    }


def several_hops(scene: Scene) -> Iterator[dict[str, Any]]:
    """For each hop: marks by GPU, while it travels and after it; its moves' riders; who is where; who meets.

    ``marks.crowds`` are all of ``[rank, tags]`` after the hop, ``marks.leave`` those that differ, while it
    travels, from the hop before, ``marks.kept`` K/V tags that the hop changes. A tag is
    ``[left edge, width, words, look, token or None]``.
    """
    before: HopScene | None = None
    for hop, kept in zip(scene.hops, kept_after(scene), strict=True):
        standing: dict[int, Crowd] = crowds_after(before) if before else {}
        going, after = crowds_while(hop, before), crowds_after(hop)
        leave = {rank: going.get(rank, ()) for rank in standing if going.get(rank) != standing[rank]}
        yield {
            "marks": {
                "dots": [],
                "kv": [],
                "copies": [],
                "relays": [],
                "new": list(dict.fromkeys(hop.newly_touched)),
                "crowds": _crowds(after),
                "leave": _crowds(leave),
                "kept": [[rank, _tags(kept_tags(*held))] for rank, held in kept.items()],
            },
            "riders": [[riders_text(move.tokens), _only(move.tokens)] for move in hop.moves],
            "places": _lines({gpu: [token for token, _ in after[gpu]] for gpu in sorted(after)}),
            **_together(hop.together),
        }
        before = hop


def _together(together: Together | None) -> dict[str, Any]:
    if together is None:
        return {}
    found = sorted(together.meetings, key=lambda meeting: -len(meeting[1]))
    return {
        "takers": len(together.tokens),
        "meetings": _lines(dict(found)),
        "busiest": _busiest(together.busiest),
    }


def _lines(tokens_on: Mapping[int, Sequence[int]]) -> list[str]:
    """Which tokens are on which GPU, the first few GPUs."""
    lines = [meeting_text(gpu, tokens) for gpu, tokens in islice(tokens_on.items(), MAX_LINES)]
    more = len(tokens_on) - MAX_LINES
    return [*lines, f"and on {plural(more, 'more GPU')}"] if more > 0 else lines


def _busiest(link: BusyLink | None) -> list[Any] | None:
    """``[from, to, words]``."""
    return None if link is None else [link.source, link.destination, link_text(link)]


def _only(tokens: tuple[int, ...]) -> int | None:
    return tokens[0] if len(tokens) == 1 else None


def _crowds(crowds: dict[int, Crowd]) -> list[Any]:
    return [[rank, _tags(crowd_tags(crowd))] for rank, crowd in crowds.items()]


def _tags(tags: list[Tag]) -> list[list[Any]]:
    return [[tag.x, tag.width, tag.text, tag.look, tag.token] for tag in tags]
