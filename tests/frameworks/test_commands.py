"""``tokentrip from`` and ``tokentrip diff``."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from app.commands.diff import diff_command
from app.commands.from_ import from_command
from tracer.errors import ConfigError
from tracer.scenario.files import load_bare_scenario


def run(command: click.Command, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_json_has_the_layout() -> None:
    result = run(
        from_command,
        *("vllm", "--gpus", "16", "--gpus-per-node", "8", "--model", "mixtral-8x7b", "--json", "--"),
        *("-tp", "2", "-pp", "2", "-dp", "4", "--enable-expert-parallel"),
    )
    assert result.exit_code == 0, result.output
    table = json.loads(result.output)
    assert table["framework_groups"]["ep"][0] == [0, 1, 4, 5, 8, 9, 12, 13]
    assert table["expert_ranks"]["1"] == [1, 3]
    assert {"ep_not_contiguous", "ep_all_or_nothing"} <= {note["code"] for note in table["warnings"]}
    assert table["scenario"]["mesh"]["ep"] == 8


def test_text_shows_both_vocabularies_and_the_warnings() -> None:
    result = run(
        from_command, "sglang", "--gpus", "8", "--", "--tp", "8", "--dp", "8", "--enable-dp-attention"
    )
    assert result.exit_code == 0, result.output
    assert "sglang: 8 GPUs" in result.output
    assert "attn_tp" in result.output
    assert "! dp_attention_deprecated: --dp-size 8 with --enable-dp-attention" in result.output


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_save_writes_a_scenario(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"saved{suffix}"
    result = run(
        from_command,
        "megatron",
        "--gpus",
        "16",
        "--save",
        str(path),
        "--",
        "--tensor-model-parallel-size",
        "2",
    )
    assert result.exit_code == 0, result.output
    assert load_bare_scenario(path).mesh.dp == 8


def test_a_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "extra.yaml"
    path.write_text("tensor_parallel_size: 4\nenable_attention_dp: true\n")
    result = run(from_command, "trtllm", "--file", str(path), "--json")
    assert json.loads(result.output)["scenario"]["mesh"]["dp"] == 4


def test_a_whole_line_in_one_argument() -> None:
    line = "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --context-parallel-size 4"
    result = run(from_command, "megatron", "--json", "--", line)
    assert json.loads(result.output)["world_size"] == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vllm", "--gpus", "8", "--", "-tp", "16"], "is refused by vLLM: World size"),
        (["vllm", "--gpus", "8", "--strict", "--", "--foo"], "is not a flag of vLLM"),
        (["megatron", "--", "--context-parallel-size", "2"], "add --gpus N"),
        (["vllm", "--gpus", "0"], "gpus=0"),
        (["vllm", "--model", "no-such-model"], "is not a model that ships"),
        (["vllm", "--save", "x.ini"], "must end in .toml or .json"),
        (["vllm", "--gpus", "1000000000", "--json"], "can all be listed"),
    ],
)
def test_refusals_are_one_line_errors(arguments: list[str], message: str) -> None:
    result = run(from_command, *arguments)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)


def test_diff() -> None:
    same = run(diff_command, "vllm -tp 8", "sglang --tp 8")
    assert same.output.startswith("same groups on all axes")
    part = run(
        diff_command,
        *(
            "vllm -tp 2 -pp 2 -dp 2",
            "megatron --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2",
        ),
        *("--gpus", "8", "--json"),
    )
    assert json.loads(part.output)["partings"][1] == {"axis": "pp", "rank": 0, "groups": [[0, 2], [0, 4]]}
    assert isinstance(run(diff_command, "ls", "vllm -tp 2").exception, ConfigError)
