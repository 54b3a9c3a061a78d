"""Recordings are read into one model, and what is broken or hostile is refused by name."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import shutil
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.runs.made import DATA, dump, write
from tracer.batch.picks.safe_pickle import RefusedPickle, load_head, loads
from tracer.errors import ConfigError
from tracer.runs.reading.files import read_run
from tracer.runs.reading.json_stream import RefusedJson, pieces
from tracer.runs.reading.recording import OpKind, Recording, Source

GATHER = ("1", "_all_gather_base", [8, 64], [16, 64])


def small(rank: int = 0) -> dict[str, Any]:
    return dump({"1": ("mesh_tp", [0, 1])}, [(GATHER, {"collective_seq_id": 5 + rank})], {"1": (5, 4)})


@pytest.mark.parametrize("name", ["megatron-a", "megatron-b"])
def test_real_dumps_are_read_as_pickle_reads_them(name: str) -> None:
    run = read_run([DATA / name])
    assert list(run.ranks) == list(range(16)) and run.world_size == 16 and not run.missing
    assert [Path(each.file).name for each in run.refused] == ["fault.log"]
    for rank, record in run.ranks.items():
        plain = pickle.loads((DATA / name / f"_dump_{rank}").read_bytes())
        assert loads((DATA / name / f"_dump_{rank}").read_bytes()) == plain
        assert len(record.ops) == len(plain["entries"])
        assert record.recorded_nothing == (not plain["entries"])
        assert {group.name for group in record.groups} == set(plain["pg_config"])
        assert len(record.progress) == len(plain["pg_status"])
        for op, entry in zip(record.ops, plain["entries"], strict=True):
            assert [list(shape) for shape in op.in_shapes] == entry["input_sizes"]
            assert op.is_pending and op.group.name == entry["process_group"][0]


@pytest.mark.parametrize("name", ["gloo-whole", "gloo-late"])
def test_pickle_and_json_of_a_cpu_run(name: str) -> None:
    run = read_run([DATA / name])
    assert list(run.ranks) == [0, 1, 2, 3]
    assert {group.description: group.members for group in run.ranks[0].groups} == {
        "mesh_tp": (0, 1), "mesh_dp_shard": (0, 2), "default_pg": (0, 1, 2, 3),
    }  # fmt: skip
    assert any("without a list of members" in note for note in run.notes)


def test_a_trace_keeps_operations_times_and_groups() -> None:
    run = read_run([DATA / "kineto-ddp2.json.gz"])
    (record,) = run.ranks.values()
    assert (record.source, run.world_size, run.missing) == (Source.KINETO, 2, (1,))
    sums = [op for op in record.ops if op.kind is OpKind.ALL_REDUCE]
    assert len(sums) == 15 and [op.sequence for op in record.ops] == list(range(1, 22))
    assert all(op.duration_ns and op.group.members == (0, 1) for op in sums)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("exit 7",)


def bomb_of_keys() -> bytes:
    """Tuples of tuples, each twice in the next, and the last one as a key: hashing it takes 2^60 steps."""
    return b"\x80\x02}" + b"(K\x01t" + b"2\x86" * 60 + b"K\x01s."


def memo_bomb_of_keys() -> bytes:
    body = b"\x80\x02})q\x00"
    for _ in range(60):
        body += b"h\x00h\x00\x86q\x00"
    return body + b"0h\x00K\x01s."


HOSTILE = {
    "a call": (pickle.dumps({"entries": Evil()}, 2), "asks for (posix|nt).system"),
    "a call in protocol 4": (pickle.dumps({"entries": Evil()}, 4), "asks for a class"),
    "a call in protocol 0": (pickle.dumps({"entries": Evil()}, 0), "instruction|posix.system"),
    "keys that take for ever": (bomb_of_keys(), "instruction 0x32"),
    "keys through the memo": (memo_bomb_of_keys(), "instruction 0x30|as a key"),
    "a tuple as a key": (b"\x80\x02})K\x01s.", "as a key"),
    "an unseen memo": (b"\x80\x02j\xff\xff\xff\x7f.", "corrupt"),
    "a text beyond the end": (b"\x80\x02X\xff\xff\xff\x7fab.", "cut short"),
    "bytes of 2^60": (b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b".", "instruction 0x96"),
    "a persistent id": (b"\x80\x02K\x01Q.", "outside object"),
    "an extension": (b"\x80\x02\x82\x01.", "registered class"),
    "marks for ever": (b"\x80\x02" + b"(" * 100_000 + b".", "nests deeper"),
    "no end": (b"\x80\x02}", "cut short"),
    "two values": (b"\x80\x02K\x01K\x02.", "left over"),
    "a value without a key": (b"\x80\x02}(K\x01u.", "without a value"),
    "an append to a number": (b"\x80\x02K\x01K\x02a.", "no list"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_pickle_that_is_more_than_data_is_refused(name: str) -> None:
    data, why = HOSTILE[name]
    with pytest.raises(RefusedPickle, match=why):
        loads(data)


def test_an_index_of_the_memo_costs_no_memory() -> None:
    tracemalloc.start()
    assert loads(b"\x80\x02K\x01r\xff\xff\xff\x7f.") == 1
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_containers_are_counted() -> None:
    with pytest.raises(RefusedPickle, match="more than 4,000,000"):
        loads(b"\x80\x02(" + b"]" * 4_000_001 + b"t.")


def test_every_cut_and_every_flipped_byte_is_read_or_refused() -> None:
    data = (DATA / "megatron-a" / "_dump_4").read_bytes()
    for end in range(0, len(data), 97):
        with pytest.raises(RefusedPickle, match=r"cut short|left over|corrupt"):
            loads(data[:end])
    draw = random.Random(7)
    for _ in range(200):
        broken = bytearray(data)
        broken[draw.randrange(len(data))] = draw.randrange(256)
        try:
            loads(bytes(broken))
        except RefusedPickle as error:
            assert str(error)


def test_a_head_is_what_stands_before_the_entries() -> None:
    for protocol in (2, 3, 4, 5):
        shapes: list[list[dict[str, int]]] = [[], [{"a": 1}], [{}, {}]]
        for entries in shapes:
            value = {"version": "2.9", "pg_status": {"0": {"x": 1}}, "entries": entries, "later": 3}
            head = load_head(pickle.dumps(value, protocol), "entries")
            assert head == ({"version": "2.9", "pg_status": {"0": {"x": 1}}}, bool(entries)), protocol
    assert load_head(pickle.dumps({"a": 1}, 2), "entries") is None


def test_the_rest_is_read_where_files_are_broken(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", {0: small(), 1: small()})
    (folder / "dump_2").write_bytes(pickle.dumps({"entries": Evil(), "pg_config": {}}, 2))
    (folder / "dump_3").write_bytes(pickle.dumps(small(), 2)[:-40])
    (folder / "dump_4").write_bytes(b"")
    (folder / "dump_5").write_bytes(b"\x00\x01\x02")
    (folder / "dump_6").write_bytes(gzip.compress(b" " * (200 << 20)))
    (folder / "dump_7").write_bytes(gzip.compress(b"{")[:-3])
    (folder / "dump_8").write_text("[" * 200_000)
    (folder / "dump_9").write_text('{"entries": [1, 2]}')
    (folder / "dump_10").write_text('{"entries": [{"input_sizes": [[-3]]}]}')
    (folder / "copy_of_dump_1").write_bytes(pickle.dumps(small(), 2))
    run = read_run([folder])
    assert list(run.ranks) == [0, 1]
    why = {Path(each.file).name: each.why for each in run.refused}
    expected = {
        "dump_2": "asks for", "dump_3": "cut short", "dump_4": "empty",
        "dump_5": "not a Flight Recorder dump",
        "dump_6": "decompression bomb",
        "dump_7": "cut short",
        "dump_8": "nests",
        "dump_9": "entry 0 is no table", "dump_10": "shape", "dump_1": "records rank 1",
    }  # fmt: skip
    assert why.keys() == expected.keys()
    for name, words in expected.items():
        assert words in why[name], (name, why[name])


def test_files_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="hold no recording"):
        read_run([tmp_path / "pipe"])
    with pytest.raises(ConfigError, match="names no file"):
        read_run([tmp_path / "gone"])
    with pytest.raises(ConfigError, match="names no file"):
        read_run([str(tmp_path / "none_*")])
    with pytest.raises(ConfigError, match="NUL"):
        read_run(["a\0b"])


def test_a_rank_comes_from_the_name_or_from_the_groups(tmp_path: Path) -> None:
    for source, name in (("_dump_9", "host-a"), ("_dump_3", "nccl_trace_rank_3"), ("_dump_5", "x.5.pickle")):
        shutil.copy(DATA / "megatron-a" / source, tmp_path / name)
    assert list(read_run([tmp_path]).ranks) == [3, 5, 9]
    shutil.copy(DATA / "megatron-a" / "_dump_9", tmp_path / "rank_4")
    assert any("records rank 9" in each.why for each in read_run([tmp_path]).refused)


def test_a_large_run_is_read_by_its_heads_and_decoded_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(DATA / "megatron-a", tmp_path / "run")
    eager = read_run([DATA / "megatron-a"])
    monkeypatch.setattr("tracer.runs.reading.files.EAGER_BYTES", 10)
    late = read_run([tmp_path / "run"])
    assert not any(record.decoded for record in late.ranks.values())
    assert same(eager, late)
    late = read_run([tmp_path / "run"])
    data = (tmp_path / "run" / "_dump_4").read_bytes()
    (tmp_path / "run" / "_dump_4").write_bytes(data[:900] + b"\xff" * 9 + data[909:])
    assert late.ranks[4].ops == ()
    assert "its operations" in late.refused[-1].why


def same(one: Recording, other: Recording) -> bool:
    return all(
        (a.ops, a.progress, a.groups, a.recorded_nothing) == (b.ops, b.progress, b.groups, b.recorded_nothing)
        for a, b in zip(one.ranks.values(), other.ranks.values(), strict=True)
    )


class Endless(io.TextIOBase):
    """A trace of ``events`` events, made as it is read."""

    def __init__(self, events: int) -> None:
        kernel = {
            "ph": "X",
            "cat": "kernel",
            "name": "gemm" * 20,
            "ts": 1.0,
            "dur": 2.0,
            "args": {"a": "b" * 200},
        }
        self._event = json.dumps(kernel)
        self._left, self._text = events, '{"schemaVersion": 1, "traceEvents": ['

    def read(self, size: int | None = -1, /) -> str:
        assert size is not None and size > 0
        while len(self._text) < size and self._left:
            self._left -= 1
            self._text += self._event + (", " if self._left else "]}")
        given, self._text = self._text[:size], self._text[size:]
        return given


def test_a_trace_is_streamed() -> None:
    tracemalloc.start()
    count = sum(piece.is_item for piece in pieces(Endless(60_000), frozenset({"traceEvents"})))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60_000
    assert peak < 16 << 20, "20 MB of text must not be held"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1', "cut short"),
        ('{"a": [1, 2', "cut short"),
        ('{"a" 1}', "stands at character"),
        ('{"a": 1} x', "something follows"),
        ("12", "not a JSON object"),
        ('{"a": ' + "[" * 100_000, "nests too deep|cut short"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
        ("{1: 2}", "key is missing|not JSON"),
    ],
)
def test_broken_json_is_refused(text: str, why: str) -> None:
    with pytest.raises(RefusedJson, match=why):
        list(pieces(io.StringIO(text), frozenset({"a"})))


def test_json_is_read_alike_in_windows_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"n": 123456, "f": -1.5e3, "items": [1, 22, "a,]b", {"x": [1]}, None, True], "after": "ü\\n"}
    text = json.dumps(value)
    for window in (1, 2, 3, 7, 1000):
        monkeypatch.setattr("tracer.runs.reading.json_stream.WINDOW_CHARS", window)
        found = list(pieces(io.StringIO(text), frozenset({"items"})))
        assert [piece.value for piece in found if piece.is_item] == value["items"]
        assert {p.key: p.value for p in found if not p.is_item} == {
            k: v for k, v in value.items() if k != "items"
        }


_INIT = "cudaDev {d} busId 1000 commId"
_LINES = (
    "NCCL version 2.21.5+cuda12.4",
    f"ncclCommInitRank comm 0xa{{r}} rank {{r}} nranks 4 {_INIT} 0x77 - Init START",
    "Channel 00/0 : {r}[{d}] -> {next}[{e}] [send] via NET/IB/0",
    f"ncclCommSplit comm 0xb{{r}} rank {{d}} nranks 2 {_INIT} 0x8{{n}} - Init COMPLETE",
)
_PREFIX = "node-{n}:10{r}:20 [{d}] NCCL INFO "
LOG = "".join(f"{_PREFIX}{line}\n" for line in _LINES)
CALL = (
    f"{_PREFIX}AllReduce: opCount {{i:x}} sendbuff 0x1 recvbuff 0x2 count 1024 datatype 9 "
    "op 0 root 0 comm 0xb{r} [nranks=2] stream 0x3\n"
)


def test_logs_tell_ranks_hosts_groups_links_and_calls(tmp_path: Path) -> None:
    for rank in range(4):
        node, device = divmod(rank, 2)
        places = {"n": node, "r": rank, "d": device, "next": (rank + 1) % 4, "e": (device + 1) % 2}
        text = LOG.format(**places) + "".join(CALL.format(i=i, **places) for i in range(20 - (rank == 3)))
        (tmp_path / f"log.{rank}").write_text("noise\n" + text)
    run = read_run([tmp_path])
    assert run.hosts == {0: "node-0", 1: "node-0", 2: "node-1", 3: "node-1"}
    assert {group.members for group in run.groups} == {(0, 1, 2, 3), (0, 1), (2, 3)}
    assert [(link.src, link.dst, link.transport) for link in run.links] == [
        (0, 1, "NET/IB/0"), (1, 2, "NET/IB/0"), (2, 3, "NET/IB/0"), (3, 0, "NET/IB/0"),
    ]  # fmt: skip
    assert [len(record.ops) for record in run.ranks.values()] == [20, 20, 20, 19]
    op = run.ranks[2].ops[0]
    assert (op.kind, op.dtype, op.in_elements, op.bytes) == (OpKind.ALL_REDUCE, "BFloat16", 1024, 2048)
    (tmp_path / "twice").write_text((tmp_path / "log.0").read_text().replace("node-0:100:", "other:999:"))
    with pytest.raises(ConfigError, match="two processes have one rank"):
        read_run([tmp_path])
