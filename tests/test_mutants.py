"""The mutation check itself: what it changes, and that no reason outlives its mutant."""

from __future__ import annotations

import json

import pytest

from benchmarks.mutants import (
    REASONS,
    ROOT,
    TESTS,
    chosen_mutants,
    mutants_of,
    part_of,
    passes,
    survives,
)
from tracer.mesh.mesh import Mesh

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


def test_every_reason_is_of_a_mutant_that_there_is() -> None:
    reasons = json.loads(REASONS.read_text(encoding="utf-8"))
    assert reasons
    files = {key.split(":")[0] for key in reasons}
    keys = [mutant.key for file in sorted(files) for mutant in mutants_of(ROOT / file)]
    assert len(keys) == len(set(keys))
    assert sorted(set(reasons) - set(keys)) == []
    assert all(len(reason.split()) >= 4 for reason in reasons.values())


def test_each_part_has_files_and_tests() -> None:
    parts = {part_of(mutant.file) for mutant in chosen_mutants("", None)}
    assert parts == set(TESTS)
    with pytest.raises(SystemExit, match="no file that is changed has 'nowhere' in its path"):
        chosen_mutants("nowhere", None)


def test_a_mutant_changes_what_runs_and_only_in_its_own_process() -> None:
    mesh = Mesh.build(tp=2, dp=4, pp=2)

    def check() -> None:
        if [mesh.stage_of(rank) for rank in (0, 8)] != [0, 1]:
            raise AssertionError("the stage is wrong")

    made = [
        mutant for mutant in mutants_of(ROOT / "tracer/mesh/mesh.py") if mutant.function == "Mesh.stage_of"
    ]
    assert passes(check)
    assert len(made) == 2
    assert [mutant for mutant in made if survives(mutant, check)] == []
    check()
