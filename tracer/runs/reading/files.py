"""Files, folders and patterns to one ``Recording``: each file by what is in it, each refusal by name.

Dumps of a large job are read in two passes. The groups and the progress of a rank stand before its
operations and cost a fraction of a millisecond; the operations are decoded when they are asked for.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from tracer.batch.picks.safe_pickle import MAX_DUMP_BYTES, RefusedPickle, load_head, loads
from tracer.errors import ConfigError
from tracer.runs.reading import flight_recorder, kineto
from tracer.runs.reading.flight_recorder import (
    EntryReader,
    RefusedDump,
    completed_by_entries,
    numbers_of,
    read_head,
)
from tracer.runs.reading.json_stream import RefusedJson, pieces
from tracer.runs.reading.kineto import RefusedTrace, TraceReader
from tracer.runs.reading.nccl_log import MAX_LINE_CHARS, LogReader, RefusedLog
from tracer.runs.reading.recording import Group, Op, RankRecord, Recording, Refused, Source

MAX_FILES = 200_000
EAGER_BYTES = 16 << 20
"""Files up to this total are decoded at once; of a larger run's dumps, the heads alone."""
MAX_TEXT_BYTES = 16 << 30
MAX_RATIO, FREE_BYTES = 300, 64 << 20
"""A compressed file may grow this many times, once it has grown beyond the free bytes."""
_GZIP, _PICKLE, _BOM = b"\x1f\x8b", b"\x80", b"\xef\xbb\xbf"
_REFUSALS = (RefusedPickle, RefusedJson, RefusedDump, RefusedTrace, RefusedLog)
_RANK = re.compile(r"(?:rank|dump)[_\-]?(\d{1,7})(?!\d)")
_LAST_NUMBER = re.compile(r"(\d{1,7})(?!.*\d)")


class _Unreadable(ValueError):
    """A file that is none of the known recordings, or grows beyond bounds."""


@dataclass(slots=True)
class _Reader:
    """Collects the ranks of many files."""

    ranks: dict[int, RankRecord] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    logs: LogReader = field(default_factory=LogReader)
    log_files: list[str] = field(default_factory=list)
    world_size: int = 0
    is_large: bool = False
    described: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_run(paths: Sequence[str | Path]) -> Recording:
    """The recording in files, folders (with all below them) and patterns such as ``'dumps/*'``.

    A file that cannot be read is listed in ``refused``, and the rest is read.

    Raises:
        ConfigError: when a path names nothing, there are too many files, or none of them is a recording.
    """
    reader = _Reader()
    files = [file for path in paths for file in _files(str(path))]
    if len(files) > MAX_FILES:
        raise ConfigError("FILES", len(files), f"are more than {MAX_FILES:,} files", "give fewer at a time")
    reader.is_large = sum(os.path.getsize(file) for file in files if os.path.isfile(file)) > EAGER_BYTES
    for file in dict.fromkeys(files):
        try:
            _read_file(reader, file)
        except (*_REFUSALS, _Unreadable, OSError, EOFError, zlib.error) as error:
            reader.refused.append(Refused(file, str(error) or type(error).__name__))
    _add_logs(reader)
    if not reader.ranks:
        first = reader.refused[0] if reader.refused else "no file"
        raise ConfigError(
            "FILES", [str(path) for path in paths][:4], f"hold no recording that can be read ({first})",
            "give Flight Recorder dumps, profiler traces (.json, .json.gz) or NCCL_DEBUG=INFO logs",
        )  # fmt: skip
    return _assembled(reader)


def _files(path: str) -> Iterator[str]:
    """Regular files of a path, a folder or a pattern, in natural order."""
    if "\0" in path:
        raise ConfigError("FILES", path, "holds a NUL character, which no path can", "leave it out")
    found = [path] if os.path.exists(path) else glob.glob(path, recursive=True)
    if not found:
        raise ConfigError("FILES", path, "names no file, folder or pattern with a match", "check the path")
    for each in sorted(found, key=_natural):
        if os.path.isdir(each):
            below = (os.path.join(folder, name) for folder, _, names in os.walk(each) for name in names)
            for count, file in enumerate(sorted((f for f in below if os.path.isfile(f)), key=_natural)):
                if count > MAX_FILES:
                    raise ConfigError("FILES", path, f"holds more than {MAX_FILES:,} files", "give fewer")
                yield file
        else:
            yield each


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts ``dump_2`` before ``dump_10``."""
    return [(int(word), "") if word.isdecimal() else (-1, word) for word in re.split(r"(\d{1,18})", name)]


def _read_file(reader: _Reader, file: str) -> None:
    if not os.path.isfile(file):
        raise _Unreadable("it is not a regular file")
    with open(file, "rb") as raw:
        start = raw.read(2)
        raw.seek(0)
        content: IO[bytes] = raw
        if start == _GZIP:
            content = io.BufferedReader(_Bounded(raw, gzip.GzipFile(fileobj=raw)))
        first = content.peek(4096)[:4096] if isinstance(content, io.BufferedReader) else b""
        if not first:
            raise _Unreadable("it is empty")
        if first[:1] == _PICKLE or first[:2] in (b"(d", b"(l"):
            _read_pickle(reader, file, content.read(MAX_DUMP_BYTES + 1), reread=start != _GZIP)
        elif first.removeprefix(_BOM).lstrip()[:1] in (b"{", b"["):
            with io.TextIOWrapper(content, "utf-8-sig", errors="replace") as text:
                _read_json(reader, file, text)
        elif b"\0" not in first:
            with io.TextIOWrapper(content, "utf-8", errors="replace") as text:
                _read_log(reader, file, text)
        else:
            raise _Unreadable("it is not a Flight Recorder dump, a profiler trace or an NCCL log")


class _Bounded(io.RawIOBase):
    """A decompressing stream that stops where a small file grows without end."""

    def __init__(self, raw: IO[bytes], inner: gzip.GzipFile) -> None:
        self._raw, self._inner, self._given = raw, inner, 0

    def readable(self) -> bool:
        """True: it is for reading."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Decompress into a buffer, at most its size."""
        try:
            data = self._inner.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(f"its compression is cut short or corrupt ({error})") from error
        self._given += len(data)
        most = MAX_RATIO * max(self._raw.tell(), 1)
        if self._given > MAX_TEXT_BYTES or (self._given > FREE_BYTES and self._given > most):
            raise OSError(f"it grows to more than {min(most, MAX_TEXT_BYTES):,} bytes: a decompression bomb")
        buffer[: len(data)] = data
        return len(data)


def _read_pickle(reader: _Reader, file: str, data: bytes, *, reread: bool) -> None:
    """A dump: all of it while the total is small, else what stands before its entries."""
    if reread and reader.is_large:
        found = load_head(data, flight_recorder.ENTRIES)
        if found is not None and {"pg_config", "pg_status"} <= found[0].keys():
            head = read_head(found[0])
            progress = head.progress({}) or head.progress(head.numbers_like(reader.described))
            if progress and len(progress) == len(head.status):
                rank = _rank_of(file, head.groups.values())
                load = _later(reader, file)
                _add(reader, _record(rank, file, head, progress, load, nothing=not found[1]))
                return
    _add_dump(reader, file, loads(data))


def _later(reader: _Reader, file: str) -> Any:
    """A function that decodes the operations of a dump; a corrupt one is refused then."""

    def load() -> tuple[Op, ...]:
        """The operations, or none."""
        try:
            tables = _dump_tables(file)
            entries = tables.get(flight_recorder.ENTRIES)
            return tuple(EntryReader(read_head(tables)).read(entries if isinstance(entries, list) else ()))
        except (*_REFUSALS, OSError) as error:
            reader.refused.append(Refused(file, f"its operations: {error}"))
            return ()

    return load


def _dump_tables(file: str) -> dict[str, Any]:
    """A dump that was read before, once more: a pickle, or JSON, perhaps compressed."""
    with open(file, "rb") as raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        content: IO[bytes] = raw
        if is_packed:
            content = io.BufferedReader(_Bounded(raw, gzip.GzipFile(fileobj=raw)))
        data = content.read(MAX_DUMP_BYTES + 1)
    if data[:1] != _PICKLE and data[:2] not in (b"(d", b"(l"):
        with io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="replace") as text:
            return _dump_of_pieces(text)[0]
    tables: dict[str, Any] = loads(data)
    return tables


def _add_dump(reader: _Reader, file: str, tables: Any) -> None:
    if not isinstance(tables, dict) or not flight_recorder.KEYS & tables.keys():
        raise _Unreadable("it is a pickle of something else than a Flight Recorder dump")
    entries = tables.get(flight_recorder.ENTRIES, [])
    if not isinstance(entries, list | tuple):
        raise RefusedDump("its entries are no list")
    head = read_head(tables)
    if reader.is_large and head.status and _add_light(reader, file, head, entries):
        return
    entry_reader = EntryReader(head)
    _add_entries(reader, file, head, entry_reader, entry_reader.read(entries))


def _add_light(reader: _Reader, file: str, head: flight_recorder.DumpHead, entries: Sequence[Any]) -> bool:
    """A rank of a large run whose entries tell the numbers of its groups and nothing more, for now."""
    numbers = numbers_of(head, entries)
    progress = head.progress(numbers) or head.progress(head.numbers_like(reader.described))
    if len(progress) < len(head.status):
        return False
    reader.described.update({number: group.description for number, group in numbers.items()})
    rank = _rank_of(file, head.groups.values())
    _add(reader, _record(rank, file, head, progress, _later(reader, file), nothing=not entries))
    return True


def _add_entries(
    reader: _Reader, file: str, head: flight_recorder.DumpHead, entry_reader: EntryReader, ops: list[Op]
) -> None:
    """A rank whose operations are all decoded."""
    progress = head.progress(entry_reader.numbers)
    reader.described.update({number: group.description for number, group in entry_reader.numbers.items()})
    progress = completed_by_entries(ops) | progress
    groups = [*head.groups.values(), *entry_reader.strangers.values()]
    kept = tuple(ops)
    # Millions of operations in memory at once are more than a large run may take.
    load = _later(reader, file) if reader.is_large else lambda: kept
    record = _record(_rank_of(file, groups), file, head, progress, load, nothing=not ops)
    _add(reader, replace(record, groups=tuple(dict.fromkeys(groups))))


def _record(
    rank: int,
    file: str,
    head: flight_recorder.DumpHead,
    progress: dict[Group, Any],
    load: Any,
    *,
    nothing: bool,
) -> RankRecord:
    return RankRecord(
        rank, file, Source.FLIGHT_RECORDER, tuple(head.groups.values()), progress, load,
        recorded_nothing=nothing, version=head.version,
    )  # fmt: skip


def _rank_of(file: str, groups: Iterable[Group]) -> int:
    """The rank of a file by its name, which its groups must confirm, or by its groups alone.

    Raises:
        RefusedDump: when neither tells.
    """
    members = [group.members for group in groups if group.members]
    stem = os.path.basename(file)
    named = _RANK.search(stem) or _LAST_NUMBER.search(stem)
    if named is not None:
        rank = int(named[1])
        if all(rank in each for each in members):
            return rank
    common: set[int] = set(members[0]).intersection(*members) if members else set()
    if len(common) == 1:
        return common.pop()
    if named is not None:
        raise RefusedDump(f"its name says rank {named[1]}, which is not in all of its groups")
    raise RefusedDump("neither its name nor its groups say which rank it is; end the name in the rank")


def _read_json(reader: _Reader, file: str, text: io.TextIOWrapper) -> None:
    """A dump or a trace, by the keys that come."""
    dump, trace, is_trace = _dump_of_pieces(text)
    if dump.keys() & flight_recorder.KEYS:
        _add_dump(reader, file, dump)
    elif is_trace:
        _add_trace(reader, file, trace)
    else:
        raise _Unreadable("it is JSON, but neither a Flight Recorder dump nor a profiler trace")


def _dump_of_pieces(text: io.TextIOWrapper) -> tuple[dict[str, Any], TraceReader, bool]:
    """Tables of a dump, and the events of a trace, whichever of them a file holds."""
    trace, dump = TraceReader(), {}
    entries: list[Any] = []
    is_trace = False
    for piece in pieces(text, frozenset({kineto.EVENTS, flight_recorder.ENTRIES})):
        if piece.is_item and piece.key == flight_recorder.ENTRIES:
            entries.append(piece.value)
            if len(entries) > flight_recorder.MAX_ENTRIES:
                raise RefusedDump(f"it has more than {flight_recorder.MAX_ENTRIES:,} entries")
        elif piece.is_item:
            is_trace = True
            trace.event(piece.value)
        elif piece.key == "distributedInfo":
            is_trace = True
            trace.info(piece.value)
        elif piece.key in flight_recorder.KEYS or piece.key == "version":
            dump[piece.key] = piece.value
    if dump.keys() & flight_recorder.KEYS or entries:
        dump[flight_recorder.ENTRIES] = entries
    return dump, trace, is_trace


def _add_trace(reader: _Reader, file: str, trace: TraceReader) -> None:
    ops = tuple(trace.ops())
    if not ops and not trace.groups:
        raise _Unreadable(
            "it is a trace without communication events (record_param_comms) or distributedInfo"
        )
    rank = trace.rank
    if rank is None:
        named = _RANK.search(os.path.basename(file))
        rank = int(named[1]) if named else 0
        if named is None:
            reader.notes.append(f"{file} does not say its rank; it is taken for rank 0")
    reader.world_size = max(reader.world_size, trace.world_size or 0)
    groups = tuple(dict.fromkeys([*trace.groups.values(), *(op.group for op in ops)]))
    _add(
        reader,
        RankRecord(
            rank,
            file,
            Source.KINETO,
            groups,
            {},
            lambda: ops,
            version=trace.version,
            timeline=trace.timeline(),
        ),
    )


def _read_log(reader: _Reader, file: str, text: io.TextIOWrapper) -> None:
    if not reader.logs.lines(_lines(text), file):
        raise _Unreadable("it is text without a line of NCCL: not a recording")
    reader.log_files.append(file)


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Lines, the rest of an overlong one dropped."""
    while line := text.readline(MAX_LINE_CHARS):
        yield line
        while line and not line.endswith("\n"):
            line = text.readline(MAX_LINE_CHARS)


def _add_logs(reader: _Reader) -> None:
    """The ranks of all logs together: a communicator is spread over them."""
    if not reader.log_files:
        return
    try:
        by_rank, hosts, groups = reader.logs.ops(), reader.logs.hosts(), reader.logs.groups()
    except RefusedLog as error:
        reader.refused.extend(Refused(file, str(error)) for file in reader.log_files)
        return
    reader.world_size = max(reader.world_size, reader.logs.world_size)
    unlisted = [group.name for group in groups.values() if not group.members]
    if unlisted:
        reader.notes.append(f"{len(unlisted)} communicators have members whose logs are not here")
    for rank, (host, file) in sorted(hosts.items()):
        _add(reader, _log_record(rank, host, file, tuple(by_rank.get(rank, ())), groups, reader.logs.version))


def _log_record(
    rank: int, host: str, file: str, ops: tuple[Op, ...], groups: dict[str, Group], version: str
) -> RankRecord:
    """One rank of the logs; they tell what was called, not what was completed."""
    own = tuple(group for group in groups.values() if rank in group.members)
    progress = {group: replace(each, completed=None) for group, each in completed_by_entries(ops).items()}
    return RankRecord(rank, file, Source.NCCL_LOG, own, progress, lambda: ops, host=host, version=version)


def _add(reader: _Reader, record: RankRecord) -> None:
    before = reader.ranks.get(record.rank)
    if before is not None:
        raise RefusedDump(f"it records rank {record.rank}, as {before.file} does")
    reader.ranks[record.rank] = record


def _assembled(reader: _Reader) -> Recording:
    """The ranks in order; groups without a list of members get those who recorded them."""
    seen: dict[Group, list[int]] = {}
    top = max(reader.ranks)
    for rank, record in sorted(reader.ranks.items()):
        for group in record.groups:
            if group.members:
                top = max(top, max(group.members))
            elif group.name:
                seen.setdefault(group, []).append(rank)
    listed = {group: replace(group, members=tuple(ranks), listed=False) for group, ranks in seen.items()}
    if listed:
        reader.notes.append(
            f"{len(listed)} groups come without a list of members: the ranks that recorded them are taken"
        )
    ranks = {rank: _listed(record, listed) for rank, record in sorted(reader.ranks.items())}
    size = max(reader.world_size, top + 1)
    return Recording(
        ranks, size, reader.refused, reader.logs.links() if reader.log_files else (), tuple(reader.notes)
    )


def _listed(record: RankRecord, listed: dict[Group, Group]) -> RankRecord:
    """A record with member lists filled in."""
    if not any(group in listed for group in record.groups):
        return record

    def load() -> tuple[Op, ...]:
        """The operations, their groups with members."""
        return tuple(_filled(op, listed) for op in record.load())

    return replace(
        record,
        groups=tuple(listed.get(group, group) for group in record.groups),
        progress={listed.get(group, group): each for group, each in record.progress.items()},
        load=load,
    )


def _filled(op: Op, listed: dict[Group, Group]) -> Op:
    group = listed.get(op.group)
    if group is None:
        return op
    peer = op.peer
    if peer is not None:
        peer = group.members[peer] if peer < group.size else None
    return replace(op, group=group, peer=peer)
