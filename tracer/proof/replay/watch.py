"""One token watched through a replay: its rows on every GPU around each hop, and what was computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tracer.proof.replay.layer.maths import FloatArray, IntArray, Partial
    from tracer.proof.replay.layer.rows import Gates
    from tracer.proof.replay.machine import Machine
    from tracer.proof.replay.sent import Place

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """The token's rows of one tensor on one GPU: ``values`` ``[copies, width]``, nearly always one copy.

    ``shape`` is the whole tensor's on that GPU, all tokens together.
    """

    rank: int
    values: FloatArray
    shape: Shape


@dataclass(frozen=True, slots=True)
class HopArrays:
    """A tensor around one hop. ``states`` are what each GPU held before, and after each step of it."""

    place: Place
    tensor: str
    states: tuple[tuple[Held, ...], ...]


@dataclass(frozen=True, slots=True)
class PartialNumbers:
    """One partial attention of the token's query: K/V of CP rank ``source_cp``.

    ``top`` (m), ``total`` (ℓ) and ``weight`` (its share in the merge, they sum to 1) are ``[heads]``,
    ``out`` ``[heads, value width]``.
    """

    source_cp: int
    top: FloatArray
    total: FloatArray
    weight: FloatArray
    out: FloatArray


@dataclass(frozen=True, slots=True)
class AttentionNumbers:
    """Attention of the token on one TP rank: its partials, and ``merged`` ``[heads, value width]``.

    ``output_shape`` is that of all rows on the rank, ``[rows, heads, value width]``.
    """

    layer: int
    rank: int
    partials: tuple[PartialNumbers, ...]
    merged: FloatArray
    output_shape: Shape

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        names = ("top", "total", "weight", "out")
        parts = [
            {"source_cp": part.source_cp} | {name: getattr(part, name).tolist() for name in names}
            for part in self.partials
        ]
        told = {"layer": self.layer, "rank": self.rank, "output_shape": list(self.output_shape)}
        return told | {"partials": parts, "merged": self.merged.tolist()}


@dataclass(frozen=True, slots=True)
class RouterNumbers:
    """Routing of the token on one GPU: ``logits`` and ``scores`` (what experts are ranked by) ``[experts]``,
    ``experts`` ``[top_k]`` int64 best first, and their ``weights`` ``[top_k]``.
    """

    layer: int
    rank: int
    logits: FloatArray
    scores: FloatArray
    experts: IntArray
    weights: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        names = ("logits", "scores", "experts", "weights")
        told = {"layer": self.layer, "rank": self.rank}
        return told | {name: getattr(self, name).tolist() for name in names}


@dataclass(slots=True)
class Watch:
    """Records what a replay does to the token of an id; give it to ``start``."""

    token: int
    scenes: dict[Place, HopArrays] = field(default_factory=dict)
    attentions: list[AttentionNumbers] = field(default_factory=list)
    routers: list[RouterNumbers] = field(default_factory=list)

    def look(
        self, machine: Machine, place: Place, tensor: str, token_of: Callable[[IntArray], IntArray]
    ) -> None:
        """Remember the token's rows as they are now: one more state of the hop."""
        held = []
        for gpu in machine.gpus:
            rows = gpu.rows.get(tensor)
            if rows is None:
                continue
            mine = token_of(rows.keys) == self.token
            if mine.any():
                held.append(Held(gpu.rank, rows.values[mine], rows.values.shape))
        earlier = self.scenes[place].states if place in self.scenes else ()
        self.scenes[place] = HopArrays(place, tensor, (*earlier, tuple(held)))

    def attention(
        self,
        layer: int,
        rank: int,
        keys: IntArray,
        partials: Sequence[tuple[int, Partial]],
        merged: Partial,
    ) -> None:
        """Remember the token's partial attentions on a rank that holds its query."""
        row = np.flatnonzero(keys == self.token)
        if not len(row):
            return
        at = int(row[0])
        told = tuple(
            PartialNumbers(cp, part.top[at], part.total[at], _share(part, merged, at), part.out[at])
            for cp, part in partials
        )
        self.attentions.append(AttentionNumbers(layer, rank, told, merged.out[at], merged.out.shape))

    def router(self, layer: int, rank: int, logits: FloatArray, scores: FloatArray, gates: Gates) -> None:
        """Remember the token's routing on a GPU that routes it."""
        for at in np.flatnonzero(gates.keys == self.token).tolist():
            self.routers.append(
                RouterNumbers(layer, rank, logits[at], scores[at], gates.experts[at], gates.weights[at])
            )


def _share(part: Partial, merged: Partial, at: int) -> FloatArray:
    """``w / Σ w`` of a partial, ``[heads]``: its softmax sum, on the merged scale."""
    share: FloatArray = np.exp(part.top[at] - merged.top[at]) * part.total[at] / merged.total[at]
    return share
