"""Who is late: the injected ranks and no others, and the rules one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runs.made import DATA, FAULTED, Op, dump, write
from tracer.runs.blame import blame
from tracer.runs.reading.files import read_run
from tracer.runs.reading.flight_recorder import EntryReader, read_head
from tracer.runs.waits import Blame

PAIR = {"1": ("mesh_tp", [0, 1])}
SUM = ("1", "all_reduce", [8, 64], [8, 64])
GATHER = ("1", "_all_gather_base", [8, 64], [16, 64])


def judged(folder: Path, dumps: dict[int, dict[str, Any]]) -> Blame:
    return blame(read_run([write(folder, dumps)]))


def waits_at(number: int, op: Any = SUM, **more: Any) -> dict[str, Any]:
    """A rank that waits in one collective."""
    return dump(PAIR, [(op, {"collective_seq_id": number} | more)], {"1": (number, number - 1)})


@pytest.mark.parametrize("name", FAULTED)
def test_the_injected_ranks_and_no_others(name: str) -> None:
    found = blame(read_run([DATA / name]))
    assert sorted(suspect.rank for suspect in found.suspects) == FAULTED[name]
    assert all("TENSOR_MODEL_PARALLEL_GROUP" in suspect.why for suspect in found.suspects)
    assert not found.warnings


@pytest.mark.parametrize("gone", [[0], [1], [0, 1]])
@pytest.mark.parametrize("name", FAULTED)
def test_faulted_ranks_whose_dumps_are_missing_are_named_all_the_same(
    name: str, gone: list[int], tmp_path: Path
) -> None:
    missing = {f"_dump_{FAULTED[name][place]}" for place in gone}
    for file in (DATA / name).iterdir():
        if file.name not in missing:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    assert sorted(suspect.rank for suspect in blame(read_run([tmp_path])).suspects) == FAULTED[name]


def test_the_rank_that_stayed_away_in_a_recorded_cpu_run() -> None:
    (suspect,) = blame(read_run([DATA / "gloo-late"])).suspects
    assert suspect.rank == 2 and "rank 3 waits in number 13" in suspect.why
    assert not blame(read_run([DATA / "gloo-whole"])).suspects


def test_a_status_behind_its_own_entries_is_not_believed() -> None:
    """Gloo's status of rank 3 says that its last all-gather has not ended; the entry says that it has."""
    run = read_run([DATA / "gloo-late"])
    (progress,) = (p for group, p in run.ranks[3].progress.items() if group.description == "mesh_dp_shard")
    assert (progress.enqueued, progress.completed) == (3, 2)
    assert 3 not in {suspect.rank for suspect in blame(run).suspects}


def test_the_cause_stands_before_those_that_suffer(tmp_path: Path) -> None:
    """0 and 1 share tp, 2 and 3 too; 0 and 2, 1 and 3 share dp. 3 stops: 2 waits for it, then 0, then 1."""

    def groups(rank: int) -> dict[str, tuple[str, list[int]]]:
        tp = [0, 1] if rank < 2 else [2, 3]
        dp = [0, 2] if rank % 2 == 0 else [1, 3]
        return {str(10 + tp[0]): ("mesh_tp", tp), str(20 + dp[0]): ("mesh_dp", dp)}

    def rank(number: int, tp: tuple[int, int], dp: tuple[int, int]) -> dict[str, Any]:
        mine = groups(number)
        first, second = mine
        ops = [
            ((name, "all_reduce", [8, 64], [8, 64]), {"collective_seq_id": put})
            for name, (put, done) in ((first, tp), (second, dp))
            if put > done
        ]
        return dump(mine, ops, {first: tp, second: dp})

    found = judged(
        tmp_path / "run",
        {
            0: rank(0, (8, 8), (5, 4)),
            1: rank(1, (9, 8), (4, 4)),
            2: rank(2, (9, 8), (4, 4)),
            3: rank(3, (8, 8), (4, 4)),
        },
    )
    assert [(suspect.rank, suspect.rule) for suspect in found.suspects] == [(3, 2)]
    assert found.waiting_for(3) == {0, 1, 2}


@pytest.mark.parametrize(
    "other", [GATHER, ("1", "all_reduce", [8, 32], [8, 32]), ("1", "broadcast", [8, 64], [8, 64])]
)
def test_different_collectives_under_one_number(other: Any, tmp_path: Path) -> None:
    groups = {"1": ("mesh_tp", [0, 1, 2])}
    ops = {0: SUM, 1: other, 2: SUM}
    dumps = {rank: dump(groups, [(op, {"collective_seq_id": 7})], {"1": (7, 6)}) for rank, op in ops.items()}
    (suspect,) = judged(tmp_path / "run", dumps).suspects
    assert (suspect.rank, suspect.rule) == (1, 4)
    assert "number 7" in suspect.why and "all_reduce of 8×64" in suspect.why
    even = judged(tmp_path / "even", {0: waits_at(7), 1: waits_at(7, other)})
    assert [suspect.rank for suspect in even.suspects] == [0, 1]


def test_sizes_of_an_all_to_all_may_differ(tmp_path: Path) -> None:
    one, two = (("1", "all_to_all", [8 + n, 64], [8, 64]) for n in (0, 3))
    assert not judged(tmp_path / "run", {0: waits_at(7, one), 1: waits_at(7, two)}).suspects


def test_a_send_that_nobody_receives(tmp_path: Path) -> None:
    groups = {"1": ("mesh_pp", [0, 1, 2])}
    send, receive = (("1", word, [8, 64], [8, 64]) for word in ("send 0->1", "recv 2<-1"))
    dumps = {
        0: dump(groups, [(send, {})], {"1": (40, 39)}),
        1: dump(groups, [], {"1": (70, 70)}),
        2: dump(groups, [(receive, {})], {"1": (40, 39)}),
    }
    (suspect,) = judged(tmp_path / "run", dumps).suspects
    assert suspect.rank == 1 and suspect.waiting == 2


def test_a_gpu_that_has_not_started(tmp_path: Path) -> None:
    started = waits_at(7, state="started")
    (suspect,) = judged(tmp_path / "run", {0: started, 1: waits_at(7)}).suspects
    assert (suspect.rank, suspect.rule) == (1, 5)


def test_a_rank_without_a_recording(tmp_path: Path) -> None:
    groups = {"1": ("mesh_tp", [0, 1, 2, 3])}
    waiting = {rank: dump(groups, [(SUM, {"collective_seq_id": 7})], {"1": (7, 6)}) for rank in (0, 1, 3)}
    (suspect,) = judged(tmp_path / "run", waiting).suspects
    assert (suspect.rank, suspect.rule) == (2, 6)
    assert not judged(tmp_path / "one", {0: waiting[0]}).suspects, "three of four missing tell nothing"


def test_where_all_wait_nobody_is_named_and_that_is_said(tmp_path: Path) -> None:
    found = judged(tmp_path / "run", {0: waits_at(7), 1: waits_at(7)})
    assert not found.suspects and "cannot tell whose GPU" in found.warnings[0]


def test_dumps_of_a_running_job_name_nobody(tmp_path: Path) -> None:
    groups = {"1": ("mesh_tp", list(range(6)))}
    dumps = {rank: dump(groups, [], {"1": (90 + rank, 90 + rank)}) for rank in range(6)}
    found = judged(tmp_path / "run", dumps)
    assert not found.suspects and "running job" in found.warnings[0]


def test_a_format_without_status_is_judged_by_its_entries(tmp_path: Path) -> None:
    dumps = {0: waits_at(7), 1: waits_at(6, retired=True, state="completed")}
    for each in dumps.values():
        del each["pg_status"]
        each["version"] = "2.1"
    (suspect,) = judged(tmp_path / "run", dumps).suspects
    assert suspect.rank == 1


def test_numbers_of_groups_are_learnt_from_other_ranks() -> None:
    names = {"tp_a": ("mesh_tp", [0, 1]), "dp_a": ("mesh_dp", [0, 2])}
    ops: list[tuple[Op, dict[str, Any]]] = [((name, "all_reduce", [8], [8]), {}) for name in names]
    tables = dump(names, ops, {"tp_a": (4, 3), "dp_a": (2, 2)})
    head = read_head(tables)
    assert not head.progress({})
    reader = EntryReader(head)
    reader.read(tables["entries"])
    described = {number: group.description for number, group in reader.numbers.items()}
    found = head.progress(head.numbers_like(described))
    assert {group.description: each.enqueued for group, each in found.items()} == {"mesh_tp": 4, "mesh_dp": 2}
