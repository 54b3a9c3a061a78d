"""Tokens on a GPU: which stand where after a hop and while it travels, and whose K/V is kept.

The token of a trip of one has a plain mark; several are numbered, and counted where their marks do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.scene.palette import TOKENS

if TYPE_CHECKING:
    from layouts.scene.scene import HopScene, Marks, Scene, TokenTotals

Standing = tuple[tuple[int, str], ...]
"""(token, state) pairs of one GPU, in the order of tokens."""

ROOM, LEFT = 68.0, 4.0
DOT_TOP, DOT_HEIGHT, DOT_GAP = 28.0, 16.0, 1.0
KV_TOP, KV_HEIGHT = 48.0, 16.0


def tokens_after(hop: HopScene) -> dict[int, Standing]:
    """Tokens on each GPU after a hop."""
    return _by_gpu(list(marks.dots) for marks in hop.marks_of)


def landed(scene: Scene) -> dict[int, Standing]:
    """Tokens at their homes, where each landed."""
    after = tokens_after(scene.hops[0])
    home = {rank: tuple(each for each in held if each[1] == "home") for rank, held in after.items()}
    return {rank: held for rank, held in home.items() if held}


def tokens_during(hop: HopScene, before: HopScene | None) -> dict[int, Standing]:
    """Tokens that stand on each GPU while a hop travels: those before it, without those that leave."""
    if before is None:
        return {}
    sources: list[set[int]] = [set() for _ in hop.marks_of]
    for move in hop.moves:
        for token in move.tokens:
            sources[token].add(move.source)
    return _by_gpu(
        _staying(old, new, leaving)
        for old, new, leaving in zip(before.marks_of, hop.marks_of, sources, strict=True)
    )


def _staying(old: Marks, new: Marks, sources: set[int]) -> list[tuple[int, str]]:
    leaving = sources - {rank for rank, _ in new.dots}
    return [dot for dot in old.dots if dot[0] not in leaving]


def _by_gpu(dots_of: Iterator[list[tuple[int, str]]]) -> dict[int, Standing]:
    found: dict[int, list[tuple[int, str]]] = {}
    for token, dots in enumerate(dots_of):
        for rank, state in dots:
            found.setdefault(rank, []).append((token, state))
    return {rank: tuple(standing) for rank, standing in found.items()}


def kv_after(scene: Scene) -> Iterator[dict[int, tuple[tuple[int, ...], tuple[int, ...]]]]:
    """After each hop, GPUs whose K/V changed: (tokens whose K/V stays there, tokens whose copy was lent)."""
    owned: dict[int, set[int]] = {}
    lent: dict[int, set[int]] = {}
    for hop in scene.hops:
        changed = set()
        for token, marks in enumerate(hop.marks_of):
            for ranks, held in ((marks.kv_owners, owned), (marks.kv_copies, lent)):
                for rank in ranks:
                    if token not in held.setdefault(rank, set()):
                        held[rank].add(token)
                        changed.add(rank)
        yield {rank: _kept(owned.get(rank, set()), lent.get(rank, set())) for rank in sorted(changed)}


def _kept(owned: set[int], lent: set[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(sorted(owned)), tuple(sorted(lent - owned))


def kv_at(scene: Scene, hop: int) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """K/V of every GPU after a hop, as :func:`kv_after` tells it."""
    found: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for changes, _ in zip(kv_after(scene), range(hop + 1), strict=False):
        found |= changes
    return found


@dataclass(frozen=True, slots=True)
class Tag:
    """A mark in a GPU's box: its left edge within the box, its width, its words, and how it looks.

    Looks: a dot's state, ``count`` for many tokens, ``kept`` and ``lent`` for K/V. ``token`` is whose colour
    it has. Without words it is the mark of a trip's only token, which has a place of its own.
    """

    x: float
    width: float
    text: str
    look: str
    token: int | None = None

    @property
    def is_kv(self) -> bool:
        """Whether it stands for K/V."""
        return self.look in ("kept", "lent")


def token_tags(standing: Standing, *, numbered: bool) -> list[Tag]:
    """One dot per token, as long as they fit into the GPU's box; else how many there are."""
    if not numbered:
        return [Tag(0, 0, "", state, token) for token, state in standing]
    tags: list[Tag] = []
    x = LEFT
    for token, state in standing:
        width = dot_width(f"{token}")
        tags.append(Tag(x, width, f"{token}", state, token))
        x += width + DOT_GAP
    if x - DOT_GAP > LEFT + ROOM:
        return [Tag(LEFT, ROOM, f"×{len(standing)}", "count")]
    return tags


def dot_width(text: str) -> float:
    """A circle's diameter for one digit, more for longer words."""
    return DOT_HEIGHT if len(text) == 1 else 7.0 * len(text) + 6


def kv_tags(owned: tuple[int, ...], lent: tuple[int, ...], *, numbered: bool) -> list[Tag]:
    """K/V of a GPU as one tag for what stays and one for lent copies: a token's number, or how many."""
    tags: list[Tag] = []
    x = LEFT + 3
    for tokens, look in ((owned, "kept"), (lent, "lent")):
        if tokens and not numbered:
            tags.append(Tag(0, 0, "", look))
        elif tokens:
            text = carried_text(tokens)
            tags.append(Tag(x, 7.0 * len(text) + 9, text, look))
            x += tags[-1].width + 4
    return tags


def carried_text(tokens: tuple[int, ...]) -> str:
    """What stands in the mark of a move: the number of its token, or how many it carries.

    >>> carried_text((7,)), carried_text((0, 3, 9))
    ('7', '×3')
    """
    return f"{tokens[0]}" if len(tokens) == 1 else f"×{len(tokens)}"


def colours_of(token: int) -> tuple[str, str]:
    """Fill of a token's dot, and the colour of the number in it; colours repeat after the last."""
    return TOKENS[token % len(TOKENS)]


def token_name(token: TokenTotals, *, replicas: int) -> str:
    """The name of one of several tokens: its replica and position."""
    replica = f"replica {token.replica:,}, " if replicas > 1 else ""
    return f"{replica}position {token.position:,}"
