"""Simulated jobs of many layouts: the layout, the injected rank and no other, and equal layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runs.made import write
from tests.runs.simulated import Fault, Job, dumps, simulate
from tracer.runs.diff import Status
from tracer.runs.reading.files import read_run
from tracer.runs.report import RunReport, examine

AXES = ("tp", "cp", "dp", "pp", "ep", "etp")
JOBS = {
    "dense": Job(tp=2, dp=2, pp=4),
    "virtual stages": Job(tp=2, dp=2, pp=4, ep=4, experts=8, chunks=2),
    "context ring": Job(tp=2, cp=2, dp=2, pp=2, ep=4, experts=16),
    "expert tensor": Job(tp=4, dp=4, ep=4, etp=2, experts=8),
    "experts alone": Job(dp=8, ep=8, experts=8),
    "dp outside pp": Job(tp=2, pp=4, dp=2, order="tp-cp-pp-dp"),
    "a server": Job(tp=4, pp=2, sp=False, training=False),
    "ulysses": Job(tp=2, cp=2, dp=2, ulysses=True, ep=8, experts=8),
}
FAULTS = ("hang", "missing", "silent", "skip", "order", "size", "dtype", "kind", "no_recv", "no_send")


def report_of(
    job: Job, folder: Path, fault: Fault | None = None, *, form: str = "ring", seed: int = 0
) -> RunReport:
    groups, ranks = simulate(job, fault, seed=seed)
    each = dumps(groups, ranks, form=form)
    if fault is not None and fault.kind == "missing":
        del each[fault.rank]
    if fault is not None and fault.kind == "silent":
        each[fault.rank]["entries"] = []
    return examine(read_run([write(folder / "run", each)]))


@pytest.mark.parametrize("names", ["megatron", "mesh", "colon", "none"])
@pytest.mark.parametrize("name", JOBS)
def test_layouts_by_names_and_by_structure_alone(name: str, names: str, tmp_path: Path) -> None:
    job = replace(JOBS[name], names=names)
    report = report_of(job, tmp_path)
    layout = report.layout
    assert {axis: layout.sizes[axis] for axis in AXES} == {axis: getattr(job, axis) for axis in AXES}
    large = [axis for axis in layout.order.split("-") if layout.sizes[axis] > 1]
    assert large == [axis for axis in job.order.split("-") if getattr(job, axis) > 1]
    assert layout.chunks in (None, job.chunks) and (layout.chunks or job.pp == 2)
    assert not report.found, str(report)
    rows = [row for row in report.diff if row.status is not Status.OUTSIDE]
    assert rows and all(row.status is Status.SAME or row.explained for row in rows)


def possible() -> list[tuple[str, str]]:
    """Jobs with faults that they can have: a send left out where there are sends, a swap of what differs."""
    pairs = [(name, kind) for name in JOBS for kind in FAULTS]
    sends = {name for name, job in JOBS.items() if job.pp > 1}
    return [
        (name, kind)
        for name, kind in pairs
        if not (kind in ("no_recv", "no_send") and name not in sends)
        and not (kind in ("order", "no_send") and name == "a server")
    ]


@pytest.mark.parametrize(("name", "kind"), possible())
def test_the_injected_rank_and_no_other(name: str, kind: str, tmp_path: Path) -> None:
    job = JOBS[name]
    rank = job.mesh.world_size - 2
    report = report_of(job, tmp_path, Fault(rank, kind))
    assert [suspect.rank for suspect in report.blame.suspects] == [rank], report.blame.suspects


@pytest.mark.parametrize("kind", ["hang", "missing", "silent", "size", "dtype"])
@pytest.mark.parametrize("name", ["dense", "virtual stages", "context ring"])
def test_open_operations_alone_name_the_rank_too(name: str, kind: str, tmp_path: Path) -> None:
    """Some recorders drop what has ended; then no history tells what came next the other times."""
    report = report_of(JOBS[name], tmp_path, Fault(5, kind), form="active", seed=1)
    assert [suspect.rank for suspect in report.blame.suspects] == [5], report.blame.suspects


def test_where_two_disagree_and_nothing_tells_who_is_right_both_are_named(tmp_path: Path) -> None:
    report = report_of(JOBS["dense"], tmp_path, Fault(12, "order", 0.8), form="active")
    assert [suspect.rank for suspect in report.blame.suspects] == [12, 13]


@pytest.mark.parametrize("kind", ["hang", "size"])
def test_of_a_large_run_only_what_is_in_question_is_decoded(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracer.runs.reading.files.EAGER_BYTES", 0)
    report = report_of(Job(tp=2, dp=12, pp=4, ep=8, experts=8), tmp_path, Fault(30, kind))
    assert [suspect.rank for suspect in report.blame.suspects] == [30], report.blame.suspects
    assert any(not record.decoded for record in report.recording.ranks.values())
