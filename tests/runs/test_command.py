"""``tokentrip run``: exit codes, JSON by its schema, exports, and the pytest helper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import main, tokentrip
from pytest_tokentrip import assert_run_matches
from tests.runs.made import DATA, FAULTED, dump, write
from tests.test_schemas import check
from tracer.runs.reading.files import read_run

KEYS = ["schema", "layout", "groups_differ", "suspects", "diff", "warnings"]


def run(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(tokentrip, ["run", *map(str, words)], catch_exceptions=False)
    return done.exit_code, done.stdout


def run_json(*words: str | Path) -> tuple[int, Any]:
    code, text = run(*words, "--json")
    return code, json.loads(text)


@pytest.mark.parametrize("name", FAULTED)
def test_the_whole_report_of_a_real_run(name: str) -> None:
    code, told = run_json(DATA / name)
    assert code == 1 and list(told) == KEYS
    assert sorted(each["rank"] for each in told["suspects"]) == FAULTED[name]
    assert told["groups_differ"] == 0
    check("run", told)
    code, text = run(DATA / name)
    assert code == 1 and f"late: ranks {FAULTED[name][0]}, {FAULTED[name][1]}" in text


def test_a_run_in_which_nothing_is_found_ends_with_0() -> None:
    for name in ("gloo-whole", "kineto-ddp2.json.gz"):
        code, told = run_json(DATA / name)
        assert code == 0 and told["suspects"] == []
        check("run", told)
    assert told["groups_differ"] is None


def test_groups_that_differ_stand_first_and_end_with_1() -> None:
    code, told = run_json(DATA / "gloo-whole", "--against", "megatron --tensor-model-parallel-size 4")
    assert code == 1 and told["groups_differ"] == 2
    assert told["diff"][0] == {
        "status": "group", "phase": "groups", "group": "mesh_tp", "family": "tp", "recorded": [0, 1],
        "expected": [0, 1, 2, 3],
    }  # fmt: skip
    check("run", told)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["gone"], "names no file"),
        ([DATA / "README.md"], "hold no recording"),
        ([DATA / "gloo-whole", "--against", "nothing"], "did you mean|known"),
        ([DATA / "gloo-whole", "--to", "out.txt"], "must end in .md or .json"),
        ([DATA / "gloo-whole", "--save", "/nowhere/at/all.toml"], "cannot be written"),
    ],
)
def test_wrong_input_ends_with_2(
    words: list[str | Path], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    with pytest.raises(SystemExit, match="2"):
        main(["run", *map(str, words)])
    assert re.search(why, capsys.readouterr().err)


def test_a_recovered_scenario_matches_its_own_run(tmp_path: Path) -> None:
    saved = tmp_path / "recovered.toml"
    assert run(DATA / "megatron-a", "--save", saved)[0] == 1
    code, told = run_json(DATA / "megatron-a", "--against", saved)
    assert code == 1 and told["groups_differ"] == 0, "1 for the late ranks alone"
    assert not [row for row in told["diff"] if row["status"] != "outside" and not row["explained"] and (
        row["status"] != "same"
    )]  # fmt: skip


def test_the_differences_as_markdown_and_json(tmp_path: Path) -> None:
    run(DATA / "megatron-b", "--to", tmp_path / "diff.md")
    text = (tmp_path / "diff.md").read_text()
    assert "## Late" in text and "| same | forward | all_reduce 16 Long | counts_reduce of the moe" in text
    run(DATA / "megatron-b", "--to", tmp_path / "diff.json")
    check("run", json.loads((tmp_path / "diff.json").read_text()))


def test_names_in_a_recording_are_no_markup(tmp_path: Path) -> None:
    groups = {"1": ("<img src=x onerror=alert(1)> | `x`", [0, 1])}
    op = ("1", "all_reduce", [8, 64], [8, 64])
    dumps = {0: dump(groups, [(op, {})], {"1": (1, 0)}), 1: dump(groups, [], {"1": (0, 0)})}
    folder = write(tmp_path / "run", dumps)
    assert run(folder, "--to", tmp_path / "diff.md")[0] == 1
    text = (tmp_path / "diff.md").read_text()
    assert "<img" not in text and "\\|" in text


def test_the_pytest_helper(tmp_path: Path) -> None:
    saved = tmp_path / "recovered.toml"
    run(DATA / "gloo-whole", "--save", saved)
    assert_run_matches(DATA / "gloo-whole", saved)
    assert_run_matches(read_run([DATA / "gloo-whole"]), saved)
    assert_run_matches([str(path) for path in sorted((DATA / "gloo-whole").iterdir())], saved)
    with pytest.raises(pytest.fail.Exception, match="rank 2 is late"):
        assert_run_matches(DATA / "gloo-late", saved)
    with pytest.raises(pytest.fail.Exception, match="group: "):
        assert_run_matches(DATA / "gloo-whole", {"mesh": {"tp": 4}})
