"""What a scene of several tokens adds to the JSON of a scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

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
    from layouts.scene.scene import BusyLink, HopScene, Scene

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
    """For each hop: marks by GPU, while it travels and after it; tokens of each move; who is where and meets.

    ``marks.crowds`` are all of ``[rank, tags]`` after the hop, ``marks.leave`` those that differ, while it
    travels, from the hop before, ``marks.kept`` K/V tags that the hop changes. A tag is
    ``[left edge, width, words, look, token or None]``.
    """
    before: HopScene | None = None
    for hop, kept in zip(scene.hops, kv_after(scene), strict=True):
        standing: dict[int, Standing] = tokens_after(before) if before else {}
        going, after = tokens_during(hop, before), tokens_after(hop)
        leave = {rank: going.get(rank, ()) for rank in standing if going.get(rank) != standing[rank]}
        yield {
            "marks": {
                "dots": [],
                "kv": [],
                "copies": [],
                "relays": [],
                "new": list(dict.fromkeys(hop.newly_touched)),
                "crowds": _standing(after),
                "leave": _standing(leave),
                "kept": [[rank, _tags(kv_tags(*held, numbered=True))] for rank, held in kept.items()],
            },
            "riders": [[carried_text(move.tokens), _only(move.tokens)] for move in hop.moves],
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


def _busiest(link: BusyLink | None) -> list[Any] | None:
    """A link as ``[from, to, words]``."""
    return None if link is None else [link.source, link.destination, link_text(link)]


def _only(tokens: tuple[int, ...]) -> int | None:
    return tokens[0] if len(tokens) == 1 else None


def _standing(standing_on: dict[int, Standing]) -> list[Any]:
    return [[rank, _tags(token_tags(standing, numbered=True))] for rank, standing in standing_on.items()]


def _tags(tags: list[Tag]) -> list[list[Any]]:
    return [[tag.x, tag.width, tag.text, tag.look, tag.token] for tag in tags]
