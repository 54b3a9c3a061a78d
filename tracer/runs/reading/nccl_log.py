"""Logs that NCCL writes under ``NCCL_DEBUG=INFO``: communicators, hosts, links, and (COLL) operations.

A log says what was called, never what finished. Operations come from ``NCCL_DEBUG_SUBSYS=COLL``; ranks of
a communicator are numbered inside it, and the largest communicator's numbers are taken for global ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tracer.runs.reading.dtypes import NCCL_DTYPES
from tracer.runs.reading.op_names import kind_of
from tracer.runs.reading.recording import MAX_RANKS, Group, Link, Op, OpKind, OpState

MAX_LINE_CHARS = 1 << 16
MAX_OPS = 5_000_000
_PREFIX = re.compile(r"([\w.\-]+):(\d{1,10}):(\d{1,10}) \[(\d{1,4})\] NCCL (?:INFO|WARN) (.*)")
_INIT = re.compile(
    r"comm (0x[0-9a-f]{1,16}) rank (\d{1,7}) n[Rr]anks (\d{1,7})"
    r".*?(?:commId (0x[0-9a-f]{1,16}))?(?: - Init| -|$)"
)
_OP = re.compile(
    r"(\w+): opCount ([0-9a-f]{1,16}) sendbuff \S+ recvbuff \S+ count (\d{1,18}) datatype (\d{1,3}) "
    r"op -?\d+ root (\d{1,7}) comm (0x[0-9a-f]{1,16}) \[nranks=(\d{1,7})\]"
)
_CHANNEL = re.compile(
    r"Channel \d+(?:/\d+)? : (\d{1,7})\[\w+\] -> (\d{1,7})\[\w+\](?: \[(?:send|receive)\])? via (\S+)"
)
_VERSION = re.compile(r"NCCL version (\S{1,40})")


class RefusedLog(ValueError):
    """A log with more than is read here, or without a communicator."""


Place = tuple[str, int, str]
"""Host, process and communicator pointer: one rank of one communicator."""


@dataclass(slots=True)
class LogReader:
    """Collects the lines of any number of logs; ranks are known once all are in."""

    version: str = ""
    _members: dict[Place, tuple[str, int, int, int]] = field(default_factory=dict)
    _calls: dict[Place, list[tuple[str, int, int, int, int]]] = field(default_factory=dict)
    _channels: list[tuple[tuple[str, int, int], str, int, int, str]] = field(default_factory=list)
    _starting: dict[tuple[str, int, int], str] = field(default_factory=dict)
    _files: dict[tuple[str, int, int], str] = field(default_factory=dict)
    _count: int = 0

    def lines(self, lines: Iterable[str], file: str) -> int:
        """Take a log's lines; returns how many of them NCCL wrote."""
        known = 0
        for line in lines:
            if "NCCL" not in line:
                continue
            if found := _VERSION.search(line):
                self.version, known = found[1], known + 1
            if found := _PREFIX.search(line):
                known += 1
                self._line(found[1], int(found[2]), int(found[4]), found[5], file)
        return known

    def _line(self, host: str, process: int, device: int, text: str, file: str) -> None:
        if found := _OP.match(text):
            place = (host, process, found[6])
            call = (found[1], int(found[2], 16), int(found[3]), int(found[4]), int(found[5]))
            self._calls.setdefault(place, []).append(call)
            self._count += 1
            if self._count > MAX_OPS:
                raise RefusedLog(f"it logs more than {MAX_OPS:,} operations")
        elif found := _CHANNEL.match(text):
            link = (int(found[1]), int(found[2]), found[3])
            if len(self._channels) < MAX_OPS:
                here = (host, process, device)
                self._channels.append((here, self._starting.get(here, ""), *link))
        elif found := _INIT.search(text):
            rank, size = int(found[2]), int(found[3])
            if rank >= size or size > MAX_RANKS:
                raise RefusedLog(f"a communicator has rank {rank:,} of {size:,}")
            name = found[4] or f"of {size} ranks"
            self._members[host, process, found[1]] = (name, rank, size, device)
            self._starting[host, process, device] = name
            self._files.setdefault((host, process, device), file)

    def ranks(self) -> dict[tuple[str, int, int], int]:
        """Global rank of each (host, process, device): its number in the largest communicator.

        Raises:
            RefusedLog: when no communicator was made, or two processes claim one rank.
        """
        if not self._members:
            raise RefusedLog("no line says which rank a process has (NCCL_DEBUG=INFO prints it at the start)")
        world = max(size for _, _, size, _ in self._members.values())
        found: dict[tuple[str, int, int], int] = {}
        for (host, process, _), (_, rank, size, device) in self._members.items():
            if size == world:
                found.setdefault((host, process, device), rank)
        if len(set(found.values())) < len(found):
            raise RefusedLog(
                "two processes have one rank: these are logs of several runs, or of several jobs"
            )
        return found

    @property
    def world_size(self) -> int:
        """Ranks of the largest communicator."""
        return max((size for _, _, size, _ in self._members.values()), default=0)

    def groups(self) -> dict[str, Group]:
        """Every communicator with its members as global ranks, those that logged it."""
        ranks = self.ranks()
        places: dict[str, dict[int, int]] = {}
        for (host, process, _), (name, rank, _, device) in self._members.items():
            if (host, process, device) in ranks:
                places.setdefault(name, {})[rank] = ranks[host, process, device]
        sizes = {name: size for name, _, size, _ in self._members.values()}
        return {
            name: Group(name, "", tuple(inner[n] for n in sorted(inner)) if len(inner) == sizes[name] else ())
            for name, inner in places.items()
        }

    def ops(self) -> dict[int, list[Op]]:
        """Operations by global rank, in the order of each communicator's count."""
        ranks, groups = self.ranks(), self.groups()
        found: dict[int, list[Op]] = {rank: [] for rank in ranks.values()}
        for place, calls in self._calls.items():
            member = self._members.get(place)
            if member is None or (place[0], place[1], member[3]) not in ranks:
                continue
            rank, group = ranks[place[0], place[1], member[3]], groups[member[0]]
            sequence = 0
            for name, _, count, dtype, root in calls:
                kind = kind_of(name)
                sequence += not kind.is_p2p
                found[rank].append(_op(len(found[rank]), group, kind, name, sequence, count, dtype, root))
        return found

    def hosts(self) -> dict[int, tuple[str, str]]:
        """Host name and file of each global rank."""
        return {rank: (place[0], self._files.get(place, "")) for place, rank in self.ranks().items()}

    def links(self) -> tuple[Link, ...]:
        """Connections that channels use, each once, in NCCL's words (P2P, SHM, NET/IB, NET/Socket).

        Channel lines number ranks inside the communicator being made: the one whose start was logged last,
        or the process's only one. Where neither tells, a line is left out.
        """
        groups = self.groups()
        found: dict[Link, None] = {}
        names: dict[tuple[str, int, int], set[str]] = {}
        for (host, process, _), (name, _, _, device) in self._members.items():
            names.setdefault((host, process, device), set()).add(name)
        for place, started, src, dst, how in self._channels:
            own = names.get(place, set())
            name = started or (next(iter(own)) if len(own) == 1 else "")
            group = groups.get(name)
            if group is not None and max(src, dst) < group.size:
                found[Link(group.members[src], group.members[dst], how)] = None
        return tuple(found)


def _op(
    index: int, group: Group, kind: OpKind, name: str, sequence: int, count: int, dtype: int, root: int
) -> Op:
    """One call; ``count`` is what one rank gives, except where NCCL counts what it gets."""
    size = max(group.size, 1)
    gives = count * size if kind is OpKind.REDUCE_SCATTER else count
    gets = count * size if kind in (OpKind.ALL_GATHER,) else count
    if kind is OpKind.ALL_TO_ALL:
        gives = gets = count * size
    peer = (group.members[root] if root < group.size else None) if kind.is_p2p and group.members else None
    return Op(
        index=index,
        group=group,
        kind=kind,
        name=name,
        sequence=None if kind.is_p2p else sequence,
        peer=peer,
        in_shapes=((gives,),),
        out_shapes=((gets,),),
        dtype=NCCL_DTYPES[dtype] if dtype < len(NCCL_DTYPES) else "",
        state=OpState.UNKNOWN,
    )
