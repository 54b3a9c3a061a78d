"""Groups without a description: what each is for, by its members' spacing and the operations in it.

What is said here is a guess. A group is a lattice: its members step by a stride along one axis, or along
several. Sends and receives mark the pipeline, rows exchanged all to all mark the experts, row gathers and
sums among neighbours mark tensor parallelism; what the sizes leave over is data parallelism.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tracer.runs.reading.dtypes import is_integer
from tracer.runs.reading.recording import Group, Op, OpKind, Shape

_WAY = re.compile(r"(send|recv)\s+(\d{1,7})\s*(?:->|<-)\s*(\d{1,7})")
DEFAULT = "0"
"""The name of the group of all ranks that PyTorch makes first."""
Steps = tuple[tuple[int, int], ...]
"""Size and stride of each axis of a lattice, smallest stride first."""


def steps_of(members: tuple[int, ...]) -> Steps | None:
    """The axes that a group's members step along, or None where they are no lattice.

    >>> steps_of((0, 4, 8, 12)), steps_of((0, 1, 4, 5)), steps_of((0, 1, 3))
    (((4, 4),), ((2, 1), (2, 4)), None)
    """
    ranks = sorted(members)
    steps: list[tuple[int, int]] = []
    while len(ranks) > 1:
        stride = ranks[1] - ranks[0]
        size = 1
        while size < len(ranks) and ranks[size] - ranks[size - 1] == stride:
            size += 1
        if stride <= 0 or len(ranks) % size:
            return None
        blocks = [ranks[start : start + size] for start in range(0, len(ranks), size)]
        if any([rank - block[0] for rank in block] != [i * stride for i in range(size)] for block in blocks):
            return None
        steps.append((size, stride))
        ranks = [block[0] for block in blocks]
    return tuple(steps)


@dataclass(slots=True)
class _Bucket:
    """All groups of one spacing, and what runs in them."""

    groups: list[Group] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    ways: set[int] = field(default_factory=set)
    pair_shapes: set[Shape] = field(default_factory=set)
    row_widths: set[int] = field(default_factory=set)
    exchange_widths: set[int] = field(default_factory=set)
    is_uneven: bool = False

    def has(self, *words: str) -> int:
        """How many operations of these kinds run here."""
        return sum(self.kinds[word] for word in words)

    @property
    def is_ring(self) -> bool:
        """Whether its sends all go one place on, from the last to the first too: K/V around a ring."""
        return self.ways == {1} and self.kinds["wrap"] > 0


def guessed_families(groups: Iterable[Group], ops: Iterable[Op], world_size: int) -> dict[Group, str]:
    """A family for each group that can be told from its spacing and its operations."""
    buckets: dict[Steps, _Bucket] = defaultdict(_Bucket)
    place: dict[Group, Steps] = {}
    for group in groups:
        # A group of all ranks may be an axis of its own, beside the one that every job has.
        steps = steps_of(group.members) if 1 < group.size <= world_size and group.name != DEFAULT else None
        if steps is not None:
            buckets[steps].groups.append(group)
            place[group] = steps
    for op in ops:
        steps = place.get(op.group)
        if steps is not None:
            _count(buckets[steps], op)
    single = {steps[0]: bucket for steps, bucket in buckets.items() if len(steps) == 1}
    axes = _axes(single, world_size)
    return {group: axis for axis, step in axes.items() for group in single[step].groups}


def _word(op: Op) -> str:
    """Kinds as the guess needs them: rows apart from flat buffers and from counts."""
    if op.kind.is_p2p:
        return "p2p"
    if is_integer(op.dtype):
        return "counts"
    flat = all(len(shape) < 2 for shape in (*op.in_shapes, *op.out_shapes))
    return f"{op.kind}{' flat' if flat else ''}"


def _count(bucket: _Bucket, op: Op) -> None:
    """Add an operation to what runs in groups of a spacing."""
    bucket.kinds[_word(op)] += 1
    widths = {shape[-1] for shape in (*op.in_shapes, *op.out_shapes) if len(shape) > 1}
    if op.kind is OpKind.ALL_TO_ALL:
        bucket.exchange_widths |= widths
        bucket.is_uneven |= op.in_elements != op.out_elements or not widths
    else:
        bucket.row_widths |= widths
    way = _WAY.search(op.name)
    if not op.kind.is_p2p or way is None:
        return
    bucket.pair_shapes.update(op.in_shapes[:1])
    here, there = int(way[2]), int(way[3])
    src, dst = (here, there) if op.kind is OpKind.SEND else (there, here)
    bucket.ways.add((dst - src) % op.group.size if op.group.size > 2 else 1)
    bucket.kinds["wrap"] += src == op.group.size - 1 and dst == 0


def _is_context(step: tuple[int, int], bucket: _Bucket, world_size: int) -> bool:
    """Whether groups that send and receive are rings of context parallelism and no pipelines."""
    if step[0] > 2:
        return bucket.is_ring
    # Of two members, both look alike; a pipeline's stages stand farthest apart, its rows have two or three
    # dimensions, K/V has heads besides.
    if any(len(shape) > 3 for shape in bucket.pair_shapes):
        return True
    return step[0] * step[1] < world_size and not bucket.pair_shapes


def _axes(single: dict[tuple[int, int], _Bucket], world_size: int) -> dict[str, tuple[int, int]]:
    """An axis for each spacing (size, stride) that one can be guessed for."""
    left = {step: bucket for step, bucket in single.items() if world_size % (step[0] * step[1]) == 0}
    axes: dict[str, tuple[int, int]] = {}

    def take(axis: str, score: dict[tuple[int, int], tuple[int, ...]]) -> None:
        if score:
            axes[axis] = max(score, key=lambda step: score[step])
            del left[axes[axis]]

    rows = (OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER, OpKind.ALL_REDUCE)
    paired = {step: each for step, each in left.items() if each.has("p2p")}
    rings = {step for step, each in paired.items() if _is_context(step, each, world_size)}
    if len(rings) == len(paired) > 1:
        rings.discard(max(paired, key=lambda step: step[1]))
    take("pp", {step: (step[1], each.has("p2p")) for step, each in paired.items() if step not in rings})
    # A ring of its own beside the pipeline's carries K/V.
    take("cp", {step: (each.has("p2p"),) for step, each in paired.items() if step in left})
    experts = (OpKind.ALL_TO_ALL, f"{OpKind.ALL_TO_ALL} flat")
    if "cp" not in axes:  # heads all to all: as many come as go, and none is as wide as a row
        widths = {width for each in single.values() for width in each.row_widths}
        heads = {
            step: each
            for step, each in left.items()
            if each.has(*experts) and widths and not each.is_uneven and not each.exchange_widths & widths
        }
        take("cp", {step: (each.has(*experts),) for step, each in heads.items()})
    take("ep", {step: (each.has(*experts),) for step, each in left.items() if each.has(*experts)})
    near = {step: each for step, each in left.items() if step[1] == 1}
    flat = tuple(f"{kind} flat" for kind in rows)
    gradients = {step for step, each in near.items() if each.has(*flat) > each.has(*rows)}
    if "ep" in axes and axes["ep"][1] > 1:  # what lies between an expert group's members slices an expert
        inner = (axes["ep"][1], 1)
        wider = any(step != inner and each.has(*rows) for step, each in near.items())
        take("etp", {inner: (1,)} if wider and near.get(inner) and near[inner].has(*rows) else {})
        near.pop(axes.get("etp", (0, 0)), None)
    take("tp", {step: (each.has(*rows), -step[0]) for step, each in near.items() if step not in gradients})
    used = 1
    for axis in ("tp", "cp", "pp"):
        used *= axes[axis][0] if axis in axes else 1
    take("dp", {step: (each.has(*flat),) for step, each in left.items() if step[0] * used == world_size})
    return axes
