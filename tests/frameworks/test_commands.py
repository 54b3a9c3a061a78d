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
from tracer.frameworks import FRAMEWORKS
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["vllm", "-tp", "2"],
            "from='-tp' is not an option of tokentrip from; put -- before the launch line",
        ),
        (["vllm", "serve", "m"], "put -- before it: tokentrip from -- vllm serve m"),
        (["nothing"], "is neither a file nor a framework; frameworks: megatron"),
        ([], "is given nothing to read"),
        (["--set", "X", "--", "vllm"], "--set='X' must be NAME=VALUE"),
        (["vllm", "--role", "decode", "--", "-tp", "2"], "is no mesh of this launch"),
    ],
)
def test_what_is_typed_in_the_wrong_place(arguments: list[str], message: str) -> None:
    result = run(from_command, *arguments)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)


def test_the_framework_is_found_and_said(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("srun -N 2 torchrun --nnodes $NODES --nproc-per-node 8 pretrain_gpt.py\n")
    result = run(from_command, str(script), "--set", "NODES=2")
    assert result.output.startswith("given: command line, srun, torchrun; framework: megatron\n")
    assert "megatron: 16 GPUs" in result.output
    words = run(from_command, "--", "vllm", "serve", "m", "-tp", "2")
    assert "framework: vllm" in words.output
    piped = CliRunner().invoke(from_command, ["-"], input="sglang serve --tp 4\n")
    assert "sglang: 4 GPUs" in piped.output


def test_several_meshes_are_all_shown_and_one_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "disagg.yaml"
    file.write_text(
        "context_servers: {num_instances: 1, tensor_parallel_size: 4}\n"
        "generation_servers: {num_instances: 1, tensor_parallel_size: 8, moe_expert_parallel_size: 8}\n"
    )
    shown = run(from_command, str(file))
    assert "== 1 of 2 meshes, prefill ==" in shown.output
    assert "== 2 of 2 meshes, decode ==" in shown.output
    table = json.loads(run(from_command, str(file), "--json").output)
    assert [(mesh["role"], mesh["world_size"]) for mesh in table["meshes"]] == [("prefill", 4), ("decode", 8)]
    saved = tmp_path / "saved.toml"
    refused = run(from_command, str(file), "--save", str(saved))
    assert "are several meshes, and a scenario is one; add --role prefill" in str(refused.exception)
    assert run(from_command, str(file), "--role", "decode", "--save", str(saved)).exit_code == 0
    assert load_bare_scenario(saved).mesh.ep == 8


def test_a_configuration_file_beside_its_flags(tmp_path: Path) -> None:
    path = tmp_path / "extra.yaml"
    path.write_text("tensor_parallel_size: 4\n")
    result = run(from_command, str(path), "--json", "--", "vllm", "serve", "m", "-dp", "2")
    assert json.loads(result.output)["world_size"] == 8


def test_the_releases_are_listed() -> None:
    lines = run(from_command, "--list").output.splitlines()
    assert [line.split()[0] for line in lines] == list(FRAMEWORKS)
    assert all("read on 20" in line for line in lines)


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
