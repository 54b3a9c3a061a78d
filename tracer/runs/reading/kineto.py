"""Traces of the PyTorch profiler (Kineto): communication events, kernels and steps, streamed.

An operation is a ``record_param_comms`` event of the CPU; its kernel on the GPU, which shares the
``External id``, gives the time. A trace cut to its kernels still tells the operations, because newer
versions write the same arguments there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from tracer.runs.reading.intervals import Intervals
from tracer.runs.reading.op_names import kind_of
from tracer.runs.reading.recording import MAX_RANKS, Group, Op, OpKind, OpState, Shape, Timeline

EVENTS = "traceEvents"
KEYS = frozenset({EVENTS, "distributedInfo", "deviceProperties"})
MAX_OPS = 2_000_000
MAX_KERNELS = 20_000_000
_MEMBERS = re.compile(r"\d+")
_STEP = re.compile(r"ProfilerStep#(\d{1,9})$")
_COMM = "record_param_comms"
_ARGUMENTS = frozenset({
    "Collective name", "Process Group Name", "Process Group Description", "Process Group Ranks", "Group size",
    "Global rank start", "Global rank stride", "External id", "Dst Rank", "Src Rank", "In msg nelems",
    "Out msg nelems", "dtype", "In split size", "Out split size",
})  # fmt: skip
_MARKS = ("init", "wait", "barrier_wait")


class RefusedTrace(ValueError):
    """A trace with more than is read here, or parts of the wrong form."""


@dataclass(slots=True)
class TraceReader:
    """Collects one trace's events as they stream by."""

    rank: int | None = None
    groups: dict[str, Group] = field(default_factory=dict)
    world_size: int | None = None
    version: str = ""
    _comms: list[tuple[float, float, Mapping[str, Any]]] = field(default_factory=list)
    _by_external: dict[int, tuple[float, float]] = field(default_factory=dict)
    _kernel_only: list[tuple[float, float, Mapping[str, Any]]] = field(default_factory=list)
    _compute: Intervals = field(default_factory=Intervals)
    _steps: dict[int, tuple[float, float]] = field(default_factory=dict)

    def info(self, table: object) -> None:
        """Take the rank and the groups that ``distributedInfo`` names."""
        if not isinstance(table, Mapping):
            return
        rank, world = table.get("rank"), table.get("world_size")
        if type(rank) is int and 0 <= rank < MAX_RANKS:
            self.rank = rank
        if type(world) is int and 0 < world <= MAX_RANKS:
            self.world_size = world
        self.version = str(table.get("nccl_version", ""))[:20]
        config = table.get("pg_config")
        for entry in config if isinstance(config, list) else ():
            if isinstance(entry, Mapping):
                self._group(entry.get("pg_name"), entry.get("pg_desc"), entry.get("ranks"))

    def event(self, event: object) -> None:
        """Take one trace event; what is neither communication nor a kernel passes by."""
        if not isinstance(event, Mapping) or event.get("ph") != "X":
            return
        start, length = _time(event.get("ts")), _time(event.get("dur"))
        if start is None or length is None or length < 0:
            return
        name, category, args = event.get("name"), event.get("cat"), event.get("args")
        if not isinstance(args, Mapping):
            args = {}
        if name == _COMM:
            self._comms.append((start, length, _kept(args)))
        elif category in ("kernel", "gpu_memcpy", "gpu_memset"):
            self._kernel(str(name), start, length, args)
        elif isinstance(name, str) and (step := _STEP.match(name)) and category != "gpu_user_annotation":
            self._steps[int(step[1])] = (start, length)
        if len(self._comms) + len(self._kernel_only) > MAX_OPS or len(self._compute) > MAX_KERNELS:
            raise RefusedTrace(f"it has more than {MAX_OPS:,} operations or {MAX_KERNELS:,} kernels")

    def _kernel(self, name: str, start: float, length: float, args: Mapping[str, Any]) -> None:
        if not name.lower().startswith(("nccl", "rccl", "void nccl")) and "nccl" not in name[:40].lower():
            self._compute.add(round(start * 1e3), round((start + length) * 1e3))
            return
        external = args.get("External id")
        if type(external) is int:
            self._by_external[external] = (start, length)
        if "Collective name" in args:
            self._kernel_only.append((start, length, _kept(args)))

    def _group(self, name: object, description: object, ranks: object) -> Group:
        if isinstance(ranks, str):
            found = tuple(int(word[:9]) for word in _MEMBERS.findall(ranks))
        else:
            found = tuple(each for each in ranks if type(each) is int) if isinstance(ranks, list) else ()
        if any(not 0 <= rank < MAX_RANKS for rank in found):
            raise RefusedTrace(f"a group lists a rank above {MAX_RANKS:,}")
        key = str(name)[:200]
        known = self.groups.get(key)
        if known is None or (not known.members and found):
            text = "" if description in (None, "undefined") else str(description)[:200]
            known = self.groups[key] = Group(key, text, found)
        return known

    def ops(self) -> list[Op]:
        """The operations in order of their start; sequence numbers count each group's collectives."""
        rows = self._comms or self._kernel_only
        counts: dict[Group, int] = {}
        found: list[Op] = []
        for start, length, args in sorted(rows, key=lambda row: row[0]):
            name = str(args.get("Collective name", ""))[:200]
            if not name or name in _MARKS:
                continue
            group = self._group(
                args.get("Process Group Name", ""), args.get("Process Group Description"), self._ranks(args)
            )
            kind = kind_of(name)
            sequence = None
            if not kind.is_p2p and kind is not OpKind.OTHER:
                sequence = counts[group] = counts.get(group, 0) + 1
            found.append(self._op(len(found), group, kind, name, sequence, start, length, args))
        return found

    def _ranks(self, args: Mapping[str, Any]) -> object:
        """Members as text; a long list is shortened by the profiler to its start, stride and size."""
        text = args.get("Process Group Ranks")
        if isinstance(text, str) and "..." not in text and text.strip("[] "):
            return text
        start, stride, size = (
            args.get(key) for key in ("Global rank start", "Global rank stride", "Group size")
        )
        if type(start) is int and type(size) is int and 0 < size <= MAX_RANKS:
            if type(stride) is int and stride > 0:
                return list(range(start, start + size * stride, stride))
            return [start] if size == 1 else None
        return None

    def _op(
        self, index: int, group: Group, kind: OpKind, name: str, sequence: int | None,
        start: float, length: float, args: Mapping[str, Any],
    ) -> Op:  # fmt: skip
        external = args.get("External id")
        kernel = self._by_external.get(external) if type(external) is int else None
        if kernel is None and not self._comms:
            kernel = (start, length)
        peer = _rank(args.get("Dst Rank" if kind is OpKind.SEND else "Src Rank")) if kind.is_p2p else None
        if peer is not None and group.members:
            peer = group.members[peer] if peer < group.size else None
        return Op(
            index=index,
            group=group,
            kind=kind,
            name=name,
            sequence=sequence,
            peer=peer,
            in_shapes=_elements(args.get("In msg nelems")),
            out_shapes=_elements(args.get("Out msg nelems")),
            dtype=str(args.get("dtype", ""))[:40],
            state=OpState.COMPLETED,
            retired=True,
            created_ns=round(start * 1e3),
            started_ns=None if kernel is None else round(kernel[0] * 1e3),
            completed_ns=None if kernel is None else round((kernel[0] + kernel[1]) * 1e3),
            duration_ns=None if kernel is None else round(kernel[1] * 1e3),
            in_split=_split(args.get("In split size")),
            out_split=_split(args.get("Out split size")),
        )

    def timeline(self) -> Timeline:
        """Compute intervals, joined where they touch, and the profiler's steps, in nanoseconds."""
        steps = tuple((n, round(s * 1e3), round((s + d) * 1e3)) for n, (s, d) in sorted(self._steps.items()))
        return Timeline(self._compute.sorted(), steps)


def _kept(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a communication event that are read, equal texts kept once."""
    return {
        key: intern(value) if type(value) is str else value
        for key, value in args.items()
        if key in _ARGUMENTS
    }


def _time(value: object) -> float | None:
    """Microseconds, or None for what is no time: nanoseconds must fit into 64 bits."""
    if isinstance(value, int | float) and not isinstance(value, bool) and -4e15 < value < 4e15:
        return value
    return None


def _rank(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < MAX_RANKS else None


def _elements(count: object) -> tuple[Shape, ...]:
    """A count of elements as a flat shape: Kineto does not keep shapes."""
    return ((count,),) if type(count) is int and 0 <= count < 1 << 48 else ()


def _split(text: object) -> tuple[int, ...]:
    """Split sizes, from a list or its text."""
    words = _MEMBERS.findall(text) if isinstance(text, str) else text if isinstance(text, list) else []
    return tuple(int(str(word)[:15]) for word in words if str(word).isdecimal())[:MAX_RANKS]
