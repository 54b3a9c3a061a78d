"""What sizes and times of a recording say: imbalance of experts, bandwidth, overlap, steps side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tracer.runs.phases import ForwardLayer
from tracer.runs.reading.intervals import Intervals
from tracer.runs.reading.recording import Group, Op, OpKind, RankRecord
from tracer.runs.shapes import Families, rows_of
from tracer.timing.collectives import busbw_factor

MAX_BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Rows that ranks receive in one exchange of a group, by rank; ``sequence`` orders the layers."""

    group: Group
    sequence: int
    rows: dict[int, int]

    @property
    def worst(self) -> float:
        """The most loaded rank's rows over the mean."""
        return max(self.rows.values()) * len(self.rows) / max(1, sum(self.rows.values()))


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Collectives of one kind, group size and number of bytes: times, and bus bandwidth of the median.

    ``bytes`` is nccl-tests' S, so that the rate compares with a link's and with ``tokentrip time``.
    ``members`` are those of one of the groups.
    """

    kind: OpKind
    family: str
    ranks: int
    bytes: int
    count: int
    median_ns: int
    least_ns: int
    members: tuple[int, ...] = ()

    @property
    def bytes_per_s(self) -> float:
        """Bus bandwidth of the median."""
        kind = "send_recv" if self.kind.is_p2p else str(self.kind)
        return busbw_factor(kind, self.ranks) * self.bytes / (self.median_ns * 1e-9)


@dataclass(frozen=True, slots=True)
class Step:
    """One profiler step, or a whole trace (number None): nanoseconds of each kind of work on one rank."""

    rank: int
    number: int | None
    length_ns: int
    compute_ns: int
    communication_ns: int
    exposed_ns: int

    @property
    def overlap(self) -> float:
        """Share of communication that runs beside compute."""
        return 1 - self.exposed_ns / self.communication_ns if self.communication_ns else 0.0


@dataclass(frozen=True, slots=True)
class LayerTime:
    """One recorded forward layer of one rank: how long its operations ran, and how long nothing else did."""

    rank: int
    number: int
    communication_ns: int
    exposed_ns: int


def imbalances(
    records: Iterable[RankRecord], hidden: int | None, top: int | None, rows: int | None
) -> list[Imbalance]:
    """Rows received by each rank, for exchanges that send the same number from every rank.

    With split sizes (Kineto) every all-to-all of a group counts; its elements stand for rows.
    """
    found: dict[tuple[Group, int], dict[int, int]] = defaultdict(dict)
    sent = (top or 1) * rows if rows else None
    for record in records:
        for op in record.ops:
            if op.kind is not OpKind.ALL_TO_ALL or op.sequence is None or op.group.size < 2:
                continue
            got = _received(op, hidden, sent)
            if got is not None:
                found[op.group, op.sequence][record.rank] = got
    whole = [Imbalance(group, number, by) for (group, number), by in found.items() if len(by) == group.size]
    return sorted(whole, key=lambda each: (each.group.members, each.sequence))


def _received(op: Op, hidden: int | None, sent: int | None) -> int | None:
    if op.out_split:
        return sum(op.out_split)
    if hidden is None or sent is None or not op.in_shapes or not op.out_shapes:
        return None
    return rows_of(op.out_shapes[0], hidden) if rows_of(op.in_shapes[0], hidden) == sent else None


def bandwidths(records: Iterable[RankRecord], families: Families) -> list[Bandwidth]:
    """Rates by kind, group and bytes, where kernels were timed; the most bytes first."""
    times: dict[tuple[OpKind, str, int, int], list[int]] = defaultdict(list)
    members: dict[tuple[OpKind, str, int, int], tuple[int, ...]] = {}
    for record in records:
        for op in record.ops:
            ns = op.duration_ns or (
                op.completed_ns - op.started_ns if op.completed_ns and op.started_ns else None
            )
            ranks = 2 if op.kind.is_p2p else op.group.size
            if (
                ns is None
                or ns <= 0
                or ranks < 2
                or op.kind in (OpKind.OTHER, OpKind.BARRIER)
                or not op.bytes
            ):
                continue
            key = (op.kind, families.of(op.group) or op.group.description, ranks, op.bytes)
            if key in times or len(times) < MAX_BUCKETS:
                times[key].append(ns)
                members.setdefault(key, op.group.members)
    rates = [
        Bandwidth(*key, len(each), round(median(each)), min(each), members[key])
        for key, each in times.items()
    ]
    return sorted(rates, key=lambda rate: -rate.bytes)


def steps(records: Iterable[RankRecord]) -> list[Step]:
    """Compute, communication and exposed communication of each profiler step, or of each whole trace."""
    found: list[Step] = []
    for record in records:
        timed = (op for op in record.ops if op.duration_ns)
        comms = Intervals.joined(
            (op.started_ns, op.completed_ns) for op in timed if op.started_ns is not None and op.completed_ns
        )
        compute = record.timeline.compute
        if not len(comms) and not len(compute):
            continue
        spans: list[tuple[int | None, int, int]] = list(record.timeline.steps)
        both = [each for each in (comms, compute) if len(each)]
        if not spans:
            spans = [(None, min(each.starts[0] for each in both), max(each.ends[-1] for each in both))]
        for number, start, end in spans:
            communication, busy = comms.length(start, end), compute.length(start, end)
            exposed = communication - comms.shared(compute, start, end)
            found.append(Step(record.rank, number, end - start, busy, communication, exposed))
    return found


def layer_times(
    records: Iterable[RankRecord], layers: Mapping[int, Sequence[ForwardLayer]]
) -> list[LayerTime]:
    """Communication of each forward layer whose kernels were timed, and what of it no compute hides.

    Layers of a rank are numbered from 0 as they were recorded; micro-batches follow one another in them.
    """
    found: list[LayerTime] = []
    for record in records:
        for number, layer in enumerate(layers.get(record.rank, ())):
            busy = Intervals.joined(
                (op.started_ns, op.completed_ns)
                for op in layer.ops
                if op.started_ns is not None and op.completed_ns
            )
            if len(busy):
                start, end = busy.starts[0], busy.ends[-1]
                length = busy.length(start, end)
                hidden = busy.shared(record.timeline.compute, start, end)
                found.append(LayerTime(record.rank, number, length, length - hidden))
    return found
