"""Dumps of PyTorch's Flight Recorder, pickle or JSON, of format 2.x (``torch/csrc/distributed/c10d``).

``pg_config`` lists the groups that the rank is in, ``pg_status`` the last collective of each, ``entries``
the last operations. JSON writes numbers of ``pg_status`` as text and absent times as 0. A dump of an older
2.x lacks ``pg_status`` or the dtypes; what is missing stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tracer.runs.reading.op_names import kind_of, peer_of
from tracer.runs.reading.recording import MAX_RANKS, Group, Op, OpKind, OpState, Progress, Shape

ENTRIES = "entries"
KEYS = frozenset({ENTRIES, "pg_config", "pg_status"})
MAX_ENTRIES = 1_000_000
MAX_SHAPE = 16
MAX_TENSORS = 4096
_MEMBERS = re.compile(r"\d+")
_STATES = {state.value: state for state in OpState}


class RefusedDump(ValueError):
    """A dump whose parts are not what a Flight Recorder writes."""


@dataclass(slots=True)
class DumpHead:
    """What a dump says besides its entries: groups by name, and progress by the number of a group."""

    version: str = ""
    groups: dict[str, Group] = field(default_factory=dict)
    status: dict[int, Progress] = field(default_factory=dict)

    def progress(self, numbers: Mapping[int, Group]) -> dict[Group, Progress]:
        """Progress by group: by the numbers that entries show, else by the order of creation.

        Both numbers and names count up as groups are made, so they pair off in ascending order where
        there are as many of one as of the other.
        """
        known = dict(numbers)
        names = [name for name in self.groups if name.isdecimal() and len(name) < 10]
        if len(names) == len(self.groups) == len(self.status):
            paired = dict(
                zip(sorted(self.status), (self.groups[n] for n in sorted(names, key=int)), strict=True)
            )
            if all(paired.get(number) == group for number, group in numbers.items()):
                known = paired
        return {known[number]: each for number, each in self.status.items() if number in known}

    def numbers_like(self, descriptions: Mapping[int, str]) -> dict[int, Group]:
        """Groups by number, from what other ranks' numbers are described as, where that names one group."""
        by_text: dict[str, list[Group]] = {}
        for group in self.groups.values():
            by_text.setdefault(group.description, []).append(group)
        found = {number: by_text.get(descriptions.get(number, ""), []) for number in self.status}
        return {number: groups[0] for number, groups in found.items() if len(groups) == 1}


def read_head(tables: Mapping[str, Any]) -> DumpHead:
    """The version, the groups and the progress of a dump.

    Raises:
        RefusedDump: when a part has the wrong form.
    """
    head = DumpHead(str(tables.get("version", ""))[:20])
    if head.version and not head.version.startswith("2."):
        raise RefusedDump(f"its format {head.version} is not a 2.x that is read here")
    for key, entry in _table(tables, "pg_config").items():
        if isinstance(entry, Mapping):
            group = _group(str(key), entry)
            if group.members:
                head.groups[str(key)] = group
    for key, entry in _table(tables, "pg_status").items():
        if isinstance(entry, Mapping) and str(key).isdecimal() and len(str(key)) < 10:
            done, put = (_count(entry.get(f"last_{word}_collective")) for word in ("completed", "enqueued"))
            head.status[int(key)] = Progress(put, done)
    return head


def _table(tables: Mapping[str, Any], key: str) -> Mapping[Any, Any]:
    found = tables.get(key, {})
    if not isinstance(found, Mapping):
        raise RefusedDump(f"its {key} is no table")
    return found


def _group(name: str, entry: Mapping[Any, Any]) -> Group:
    ranks = entry.get("ranks", "")
    text = ranks if isinstance(ranks, str) else str(ranks) if isinstance(ranks, list | tuple) else ""
    return _group_of_text(name[:200], _text(entry.get("desc"))[:200], text)


@lru_cache(maxsize=1 << 16)
def _group_of_text(name: str, description: str, ranks: str) -> Group:
    """A group by the text of its members: every rank of a large job repeats the same long list."""
    words = _MEMBERS.findall(ranks)
    if any(len(word) > 9 or int(word) >= MAX_RANKS for word in words):
        raise RefusedDump(f"group {name[:40]} lists a rank above {MAX_RANKS:,}")
    members = tuple(map(int, words))
    if len(set(members)) < len(members):
        raise RefusedDump(f"group {name[:40]} lists a rank twice")
    return Group(name, description, members)


def _text(value: object) -> str:
    return "" if value in (None, "undefined") else str(value)


def _count(value: object) -> int | None:
    """A sequence number, from a number or its text; None where there is none yet (−1)."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value < 1 << 62:
        return None
    return max(value, 0)


class EntryReader:
    """Turns entries into operations; equal groups, names and shapes are kept once."""

    def __init__(self, head: DumpHead) -> None:
        self._head = head
        self._shapes: dict[tuple[Any, ...], tuple[Shape, ...]] = {}
        self.numbers: dict[int, Group] = {}
        self.strangers: dict[str, Group] = {}

    def read(self, entries: Iterable[Any]) -> list[Op]:
        """The operations of entries, in their order.

        Raises:
            RefusedDump: when an entry is no table, or there are too many.
        """
        ops: list[Op] = []
        for entry in entries:
            if not isinstance(entry, Mapping):
                raise RefusedDump(f"entry {len(ops)} is no table")
            if len(ops) >= MAX_ENTRIES:
                raise RefusedDump(f"it has more than {MAX_ENTRIES:,} entries")
            ops.append(self._op(entry))
        order = [op.index for op in ops]
        return ops if order == sorted(order) else sorted(ops, key=lambda op: op.index)

    def _op(self, entry: Mapping[str, Any]) -> Op:
        group = self._group_of(entry)
        name = str(entry.get("profiling_name", ""))[:200]
        kind = kind_of(name)
        is_p2p = bool(entry.get("is_p2p")) or kind.is_p2p
        place = peer_of(name) if kind.is_p2p else None
        if place is not None and group.members:
            place = group.members[place] if place < group.size else None
        dtypes = entry.get("input_dtypes") or entry.get("output_dtypes") or ("",)
        # Before 2.4 the two counters were one, called seq_id.
        sequence = _count(entry.get("collective_seq_id", entry.get("seq_id")))
        retired = bool(entry.get("retired"))
        state = _STATES.get(str(entry.get("state")), OpState.UNKNOWN)
        return Op(
            index=_count(entry.get("record_id", entry.get("id"))) or 0,
            group=group,
            kind=kind,
            name=name,
            sequence=None if is_p2p else sequence,
            peer=place,
            in_shapes=self._shape(entry.get("input_sizes")),
            out_shapes=self._shape(entry.get("output_sizes")),
            dtype=str(dtypes[0])[:40] if isinstance(dtypes, list | tuple) and dtypes else "",
            state=OpState.COMPLETED if retired and state is OpState.UNKNOWN else state,
            retired=retired,
            created_ns=_time(entry.get("time_created_ns")),
            started_ns=_time(entry.get("time_discovered_started_ns")),
            completed_ns=_time(entry.get("time_discovered_completed_ns")),
            duration_ns=_nanoseconds(entry.get("duration_ms")),
        )

    def _group_of(self, entry: Mapping[str, Any]) -> Group:
        named = entry.get("process_group")
        name, description = ("", "")
        if isinstance(named, list | tuple) and named:
            name = str(named[0])[:200]
            description = _text(named[1])[:200] if len(named) > 1 else ""
        elif isinstance(named, str):
            name = named[:200]
        group = self._head.groups.get(name)
        if group is None:
            group = self.strangers.setdefault(name, Group(name, description, ()))
        number = _count(entry.get("pg_id"))
        if number is not None and "pg_id" in entry:
            self.numbers.setdefault(number, group)
        return group

    def _shape(self, sizes: object) -> tuple[Shape, ...]:
        if type(sizes) is not list:
            return ()
        try:
            return self._shapes[tuple(map(tuple, sizes))]
        except (KeyError, TypeError):
            return self._new_shape(sizes)

    def _new_shape(self, sizes: list[Any]) -> tuple[Shape, ...]:
        """A list of shapes seen for the first time, checked."""
        if len(sizes) > MAX_TENSORS:
            raise RefusedDump(f"an entry moves more than {MAX_TENSORS:,} tensors")
        key = tuple(tuple(each) if isinstance(each, list | tuple) else (each,) for each in sizes)
        for shape in key:
            if len(shape) > MAX_SHAPE or any(type(n) is not int or not 0 <= n < 1 << 48 for n in shape):
                raise RefusedDump("an entry has a shape that no tensor has")
        return self._shapes.setdefault(key, key)


def numbers_of(head: DumpHead, entries: Iterable[Any]) -> dict[int, Group]:
    """Groups by the number that entries give them, without reading more of the entries."""
    found: dict[int, Group] = {}
    for entry in entries:
        number = entry.get("pg_id") if isinstance(entry, Mapping) else None
        if type(number) is int and number not in found:
            named = entry.get("process_group")
            group = head.groups.get(str(named[0])) if isinstance(named, list | tuple) and named else None
            if group is not None:
                found[number] = group
    return found


def _time(value: object) -> int | None:
    """A time in nanoseconds; 0 is JSON's way to say that there is none."""
    return _count(value) or None


def _nanoseconds(milliseconds: object) -> int | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return round(milliseconds * 1e6) if 0 < milliseconds < 1e12 else None


def completed_by_entries(ops: Iterable[Op]) -> dict[Group, Progress]:
    """Progress of each group as the operations alone show it, for dumps without ``pg_status``."""
    found: dict[Group, Progress] = {}
    for op in ops:
        if op.sequence is None or op.kind is OpKind.OTHER:
            continue
        before = found.get(op.group, Progress(0, None))
        done = before.completed
        if op.is_pending:
            done = min(done, op.sequence - 1) if done is not None else op.sequence - 1
        found[op.group] = Progress(max(before.enqueued or 0, op.sequence), done)
    return {
        group: Progress(each.enqueued, each.enqueued if each.completed is None else each.completed)
        for group, each in found.items()
    }
