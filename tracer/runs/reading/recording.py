"""One model for every kind of recording: groups, operations, progress, ranks, and what was not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import prod

from tracer.runs.reading.dtypes import bytes_of
from tracer.runs.reading.intervals import Intervals

MAX_RANKS = 1 << 20
"""More ranks than this are refused: no job is that large, and tables by rank must fit in memory."""
SMALL_RUN = 64
SAMPLED_RANKS = 24
"""Of a run with more ranks than a small one, as many are read operation by operation."""


class Source(StrEnum):
    """What kind of file a rank's recording is."""

    FLIGHT_RECORDER = "flight_recorder"
    KINETO = "kineto"
    NCCL_LOG = "nccl_log"


class OpKind(StrEnum):
    """What a recorded operation does, whatever the library calls it."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    BARRIER = "barrier"
    SEND = "send"
    RECV = "recv"
    OTHER = "other"

    @property
    def is_p2p(self) -> bool:
        """Whether it joins two ranks, not a group."""
        return self in (OpKind.SEND, OpKind.RECV)

    @property
    def needs_all(self) -> bool:
        """Whether no member can finish before every member has taken part.

        A root may finish a broadcast early, and an all-to-all is done where all pieces have come in.
        """
        return self in (OpKind.ALL_REDUCE, OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER, OpKind.BARRIER)


class OpState(StrEnum):
    """How far an operation came, as far as the recording says."""

    SCHEDULED = "scheduled"
    STARTED = "started"
    COMPLETED = "completed"
    UNKNOWN = "unknown"


Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as one or more ranks recorded it.

    ``members`` are global ranks in the group's order, empty where the recording does not list them.
    ``listed`` is False where they are taken from the ranks that recorded the group.
    """

    name: str
    description: str
    members: tuple[int, ...]
    listed: bool = True

    def __hash__(self) -> int:
        # Members may be thousands, and groups are keys everywhere; name and size tell them apart well enough.
        return hash((self.name, self.description, len(self.members)))

    @property
    def size(self) -> int:
        """Number of members, 0 where they are not known."""
        return len(self.members)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.members[:8])) + (", ..." if self.size > 8 else "")
        return f"{self.description or 'group ' + self.name} [{shown}]"


@dataclass(frozen=True, slots=True)
class Op:
    """One recorded operation of one rank.

    ``sequence`` counts the group's collectives (None for a send or receive, whose order only the pair
    shares). ``peer`` is a global rank where the group's members are known. Times are nanoseconds of the
    recording's own clock; ``duration_ns`` is of the kernel. ``in_split`` and ``out_split`` are elements of
    an all-to-all sent to and received from each member.
    """

    index: int
    group: Group
    kind: OpKind
    name: str
    sequence: int | None
    peer: int | None
    in_shapes: tuple[Shape, ...]
    out_shapes: tuple[Shape, ...]
    dtype: str
    state: OpState
    retired: bool = False
    created_ns: int | None = None
    started_ns: int | None = None
    completed_ns: int | None = None
    duration_ns: int | None = None
    in_split: tuple[int, ...] = ()
    out_split: tuple[int, ...] = ()

    @property
    def is_pending(self) -> bool:
        """Whether the recording shows it issued and not finished."""
        return not self.retired and self.state in (OpState.SCHEDULED, OpState.STARTED)

    @property
    def in_elements(self) -> int:
        """Elements the rank gives."""
        return sum(prod(shape) for shape in self.in_shapes)

    @property
    def out_elements(self) -> int:
        """Elements the rank gets."""
        return sum(prod(shape) for shape in self.out_shapes)

    @property
    def bytes(self) -> int | None:
        """The larger of what goes in and comes out, in bytes; None for a dtype of unknown width."""
        width = bytes_of(self.dtype)
        return None if width is None else width * max(self.in_elements, self.out_elements)

    @property
    def shapes_text(self) -> str:
        """``4096×5120 → 8192×5120``, or one shape where nothing changes."""
        sides = [
            "+".join("×".join(map(str, shape)) or "scalar" for shape in side[:4])
            for side in (self.in_shapes, self.out_shapes)
        ]
        return sides[0] if sides[0] == sides[1] else " → ".join(sides)

    def __str__(self) -> str:
        where = f" {self.sequence}" if self.sequence is not None else ""
        to = (
            f" {'to' if self.kind is OpKind.SEND else 'from'} rank {self.peer}"
            if self.peer is not None
            else ""
        )
        return f"{self.kind}{where}{to} of {self.group}"


@dataclass(frozen=True, slots=True)
class Progress:
    """Sequence numbers of a group on one rank; None where the recording does not say."""

    enqueued: int | None
    completed: int | None


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of an NCCL channel, by global ranks, and the transport in NCCL's words."""

    src: int
    dst: int
    transport: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Kernel intervals of one rank's trace in nanoseconds, and its profiler steps."""

    compute: Intervals = field(default_factory=Intervals)
    steps: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class RankRecord:
    """What one rank recorded.

    ``load`` gives its operations in order of issue; they are decoded when they are first asked for.
    ``recorded_nothing`` is known without them.
    """

    rank: int
    file: str
    source: Source
    groups: tuple[Group, ...]
    progress: dict[Group, Progress]
    load: Callable[[], tuple[Op, ...]]
    recorded_nothing: bool = False
    host: str | None = None
    version: str = ""
    timeline: Timeline = field(default_factory=Timeline)

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The rank's operations, oldest first."""
        return self.load()

    @property
    def decoded(self) -> bool:
        """Whether the operations are in memory."""
        return "ops" in self.__dict__

    def pending(self) -> Iterator[Op]:
        """Operations issued and not finished."""
        return (op for op in self.ops if op.is_pending)


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that was not read, and why."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


@dataclass(frozen=True, eq=False)
class Recording:
    """A run as recorded: its ranks, what links NCCL chose, and the files that were refused.

    ``refused`` grows when a rank's operations are first decoded and turn out to be corrupt.
    """

    ranks: dict[int, RankRecord]
    world_size: int
    refused: list[Refused] = field(default_factory=list)
    links: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every group that a rank recorded, once, in order of first mention."""
        return tuple(dict.fromkeys(group for record in self.ranks.values() for group in record.groups))

    @cached_property
    def sample(self) -> tuple[RankRecord, ...]:
        """Records whose operations tell shapes and what groups are for: all, or a spread of a large run."""
        records = tuple(self.ranks.values())
        if len(records) <= SMALL_RUN:
            return records
        # One from each of as many equal stretches, and not always the same place of a group.
        return tuple(records[i * len(records) // SAMPLED_RANKS + i % 7] for i in range(SAMPLED_RANKS - 1))

    @property
    def missing(self) -> tuple[int, ...]:
        """Ranks of the world that gave no recording."""
        return tuple(rank for rank in range(self.world_size) if rank not in self.ranks)

    @property
    def hosts(self) -> dict[int, str]:
        """Host name by rank, where the recording names it."""
        return {rank: record.host for rank, record in self.ranks.items() if record.host is not None}

    @property
    def sources(self) -> tuple[Source, ...]:
        """Kinds of files that were read."""
        return tuple(sorted({record.source for record in self.ranks.values()}))
