"""The commands of the whole batch: JSON, text and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from app.commands.batch.census import census_command
from app.commands.batch.eplb import eplb_command
from app.commands.cost.advise import advise_command
from app.commands.cost.orders import orders_command
from app.commands.cost.traffic import traffic_command
from app.commands.ledger import ledger_command
from tracer.errors import ConfigError

WITH_NUMBA = {"census", "eplb"}


def run(command: click.Command, *arguments: str) -> Result:
    if command.name in WITH_NUMBA:
        pytest.importorskip("numba")
    return CliRunner().invoke(command, list(arguments))


def as_json(command: click.Command, *arguments: str) -> Any:
    done = run(command, *arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


@pytest.mark.parametrize(
    "command",
    [advise_command, census_command, eplb_command, ledger_command, orders_command, traffic_command],
    ids=lambda command: command.name,
)
def test_help_has_an_example(command: click.Command) -> None:
    assert "Example:" in run(command, "--help").output


def test_traffic() -> None:
    axes = as_json(traffic_command, "six-cuts")["axes"]
    assert set(axes) == {"tp", "cp", "ep", "pp"}
    assert axes["tp"]["elements_per_gpu_per_layer"] == 131_072
    text = run(traffic_command, "six-cuts").output
    assert "ep moe: 2·k·(T/(cp·tp))·d by picks" in text
    assert as_json(traffic_command, "six-cuts", "--tokens", "128")["tokens_per_replica"] == 128
    assert len(as_json(traffic_command, "six-cuts", "--contracts")["contracts"]) == 6


def test_orders() -> None:
    found = as_json(orders_command, "six-cuts")["orders"]
    assert found[0]["order"] == "tp-cp-dp-pp"
    assert run(orders_command, "six-cuts", "--top", "2").output.count("inside a node") == 2


def test_census_of_a_file(tmp_path: Path) -> None:
    """Two tokens per rank; picks lead to GPUs that can be worked out by hand."""
    picks = np.zeros((8, 32, 2), np.int16)
    picks[:, :, 1] = 16
    np.save(tmp_path / "picks.npy", picks)
    found = as_json(census_command, "six-cuts", "--picks", str(tmp_path / "picks.npy"), "--by-layer")
    assert (found["tokens"], found["layers"], found["picks"]) == (32, 8, 512)
    # Layers 1-4 on GPUs 0-15: experts 0 and 16 are on GPUs 0 and 8, one on each node.
    copies = np.array(found["copies"])
    assert (copies[:16, 0] == 8).all()
    assert (copies[:16, 8] == 8).all()
    assert copies[:16].sum() == 4 * 32 * 2
    sent = np.array(found["sent"])
    assert sent[9, 1] == 8, "to the relay of node 0"
    assert sent[1, 0] == 16, "its own tokens, and those of GPU 9 it forwards"
    assert sent[0].sum() == 8, "GPU 0 sends its own tokens to its relay, which holds expert 16"
    assert np.array(found["ib_copies"])[0].tolist() == [0, 8, 0, 0]
    assert found["imbalance"] == 16
    assert found["load_by_expert"][16] == 256
    assert set(found["by_layer"]) == set("12345678")
    assert found["bytes_by_tier"]["ib"] == 32 * 8 * 8192
    text = run(census_command, "six-cuts", "--picks", str(tmp_path / "picks.npy"), "--by-layer").output
    assert "layer 8" in text
    assert "max/mean 16.0000" in text


def test_an_interrupted_census_prints_what_it_has_and_ends_as_shells_expect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(futures: list[Any]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracer.batch.census.run.wait", interrupted)
    # So many blocks that none of the threads can be through with them before the interrupt is seen.
    monkeypatch.setattr("tracer.batch.census.run.BLOCK_PICKS", 2)
    found = run(census_command, "six-cuts", "--tokens", "4000")
    assert "PARTIAL: it was interrupted" in found.output
    assert found.exit_code == 130


def test_census_with_sources(tmp_path: Path) -> None:
    np.save(tmp_path / "picks.npy", np.tile([0, 16], (8, 3, 1)))
    np.save(tmp_path / "sources.npy", np.array([5, 5, 9]))
    files = ["--picks", str(tmp_path / "picks.npy"), "--sources", str(tmp_path / "sources.npy")]
    copies = np.array(as_json(census_command, "six-cuts", *files)["copies"])
    assert copies[5, [0, 8]].tolist() == [8, 8]
    assert np.flatnonzero(copies.sum(1)).tolist() == [5, 9, 21, 25]


def test_census_of_drawn_tokens() -> None:
    uniform = as_json(census_command, "six-cuts", "--tokens", "2000")
    skewed = as_json(census_command, "six-cuts", "--tokens", "2000", "--popularity", "zipf", "--skew", "1.5")
    assert skewed["imbalance"] > 2 * uniform["imbalance"]
    assert as_json(census_command, "six-cuts")["tokens"] == 256


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sticky", "0.5"), "--sticky='0.5' needs a batch"),
        (("--tokens", "0"), "tokens=0 must be a whole number"),
    ],
)
def test_census_refusals(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        raise run(census_command, "six-cuts", *arguments).exception or AssertionError("accepted")


def test_eplb() -> None:
    found = as_json(eplb_command, "six-cuts", "--tokens", "2000", "--slots", "48")
    assert found["after"]["gpu_imbalance"] < found["before"]["gpu_imbalance"]
    assert len(found["placement"]["slots"]) == 48
    assert "policy, 48 slots" in run(eplb_command, "six-cuts", "--tokens", "500").output


def test_ledger() -> None:
    found = as_json(ledger_command)
    assert found["holds"]
    assert {line["verdict"] for line in found["lines"]} == {"reproduces", "loose", "wrong", "published"}
    assert "### One token" in run(ledger_command, "--markdown").output
    assert "C(256,8)" in run(ledger_command, "--source", "moe inference").output


def test_advise() -> None:
    assert as_json(advise_command, "deepseek-v3-prefill-ep32")["recommended"] == "pure EP"
    assert "The chart says: pure TP" in run(advise_command, "mixtral-8x7b-ep8").output
