"""How each framework's parser reads its flags, and its configuration files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracer.errors import ConfigError
from tracer.frameworks import FRAMEWORKS, from_flags
from tracer.frameworks.config_files import parse_config, read_framework_file
from tracer.frameworks.registry import framework


def size(name: str, flags: str, axis: str, gpus: int | None = 8) -> int:
    return from_flags(name, flags, gpus=gpus).scenario.mesh.size_of(axis)


@pytest.mark.parametrize(
    "flags",
    [
        "--tensor-parallel-size 4",
        "--tensor-parallel-size=4",
        "--tensor_parallel_size 4",
        "--tensor_parallel_size=4",
        "-tp 4",
        "-tp=4",
        "--tensor-parallel 4",
        "-tp 2 -tp 4",
        "-n 1 -tp 4",
        "-n1 -tp 4",
        "--unknown -tp 4",
        "--unknown -1 -tp 4 --other=-tp",
    ],
)
def test_spellings_of_vllm(flags: str) -> None:
    assert size("vllm", flags, "tp") == 4


def test_what_the_parser_would_not_take_is_passed_over_with_a_hint() -> None:
    layout = from_flags("vllm", "-tp8", gpus=8)
    assert layout.scenario.mesh.tp == 1
    assert layout.unknown_flags == ("-tp8",)
    (note,) = [note for note in layout.warnings if note.code == "unknown_flags"]
    assert "did you mean -tp?" in note.message
    layout = from_flags("megatron", "--tensor_model_parallel_size 2", gpus=8)
    (note,) = [note for note in layout.warnings if note.code == "unknown_flags"]
    assert "did you mean --tensor-model-parallel-size?" in note.message


def test_unknown_flags_are_counted_or_refused() -> None:
    flags = "--foo 1 --bar=2 -tp 2 --max-model-len 4096 --baz"
    layout = from_flags("vllm", flags, gpus=2)
    assert layout.unknown_flags == ("--foo", "--bar", "--baz")
    (note,) = [note for note in layout.warnings if note.code == "unknown_flags"]
    assert note.message.startswith("3 flags")
    with pytest.raises(ConfigError, match="--foo is not a flag of vLLM that is known here"):
        from_flags("vllm", flags, gpus=2, strict=True)


@pytest.mark.parametrize(
    ("flags", "on"),
    [
        ("--enable-expert-parallel", True),
        ("-ep", True),
        ("--enable_expert_parallel", True),
        ("--no-enable-expert-parallel", False),
        ("-ep --no-enable-expert-parallel", False),
        ("--enable-expert-parallel=false", False),
    ],
)
def test_booleans(flags: str, on: bool) -> None:
    assert size("vllm", f"-dp 8 {flags}", "ep") == (8 if on else 1)


def test_torchtitan_turns_switches_off_inside_a_section() -> None:
    flags = "--parallelism.tensor-parallel-degree 2 --parallelism.no-enable-sequence-parallel"
    assert from_flags("torchtitan", flags, gpus=8).scenario.plan.sp == "off"
    flags = "--parallelism.tensor_parallel_degree=2 --parallelism.enable_sequence_parallel False"
    assert from_flags("torchtitan", flags, gpus=8).scenario.plan.sp == "off"


@pytest.mark.parametrize(
    "flags",
    [
        ["--eplb-config", '{"num_redundant_experts": 8}'],
        ['--eplb-config={"num_redundant_experts": 8}'],
        ["--eplb-config.num_redundant_experts", "8"],
        ["--eplb_config.num_redundant_experts=8"],
        ["--num-redundant-experts", "8"],
    ],
)
def test_json_values_and_dotted_keys(flags: list[str]) -> None:
    with pytest.raises(ConfigError, match="num_redundant_experts is set to 8 but EPLB is not enabled"):
        from_flags("vllm", [*flags, "-dp", "8"], gpus=8)


@pytest.mark.parametrize(
    ("name", "flags", "message"),
    [
        ("vllm", "-tp", "-tp needs a value"),
        ("vllm", "-tp --foo", "needs a value"),
        ("vllm", "-tp two", "--tensor-parallel-size='two' must be a whole number from 1"),
        ("vllm", "-tp 0", "must be a whole number from 1"),
        ("vllm", f"-tp {'9' * 5000}", "must be a whole number from 1 to 1000000000"),
        ("vllm", "-tp 2000000000", "must be a whole number"),
        ("vllm", "--eplb-config {", "must be a JSON object"),
        ("vllm", "--eplb-config.num_redundant_experts x", "must be a whole number"),
        ("vllm", "--enable-expert-parallel=maybe", "takes no value but true or false"),
        ("megatron", "--moe-token-dispatcher-type smoke", "must be one of allgather, alltoall"),
        ("sglang", "--cp-strategy x", "must be one of zigzag, interleave"),
    ],
)
def test_bad_values_name_the_flag(name: str, flags: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_flags(name, flags, gpus=8)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_no_two_flags_share_a_spelling(name: str) -> None:
    flags = framework(name).flags
    spellings = [spelling for flag in flags for spelling in flag.spellings]
    assert len(spellings) == len(set(spellings))
    assert len({flag.dest for flag in flags}) == len(flags)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_has_the_same_files(name: str) -> None:
    import tracer.frameworks

    folder = Path(tracer.frameworks.__file__).parent / name.replace("-", "_")
    assert {"__init__.py", "flags.py", "checks.py", "mesh.py"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("megatron", "Megatron-LM"),
        ("tensorrt-llm", "trtllm"),
        ("tensorrt-llm", "TensorRT_LLM"),
        ("vllm", "vLLM"),
    ],
)
def test_usual_names(name: str, short: str) -> None:
    assert from_flags(short, [], gpus=1).framework == name


FILES = {
    "tensorrt-llm": (
        "x.yaml",
        "tensor_parallel_size: 8\nmoe_expert_parallel_size: 4\nkv_cache_config: {a: 1}\n",
    ),
    "torchtitan": ("x.toml", "[parallelism]\ntensor_parallel_degree = 8\n[training]\nsteps = 5\n"),
    "deepspeed": ("x.json", '{"tensor_parallel": {"autotp_size": 8}, "zero_optimization": {"stage": 1}}'),
    "nanotron": ("x.yml", "parallelism:\n  dp: 1\n  pp: 1\n  tp: 8\n  tp_mode: REDUCE_SCATTER\n"),
    "vllm": ("x.yaml", "model: m\ntensor-parallel-size: 8\nenable-expert-parallel: true\n"),
    "sglang": ("x.yaml", "tp-size: 8\nep_size: 4\n"),
    "accelerate": ("x.yaml", "parallelism_config:\n  parallelism_config_tp_size: 8\n"),
    "maxtext": ("x.yml", "ici_tensor_parallelism: 8\nici_fsdp_parallelism: 1\n"),
    "megatron": ("x.yaml", "model_parallel:\n  x: 1\ntensor_model_parallel_size: 8\n"),
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_configuration_files(name: str, tmp_path: Path) -> None:
    file_name, text = FILES[name]
    path = tmp_path / file_name
    path.write_text(text)
    layout = from_flags(name, [], gpus=8, file=read_framework_file(path))
    assert layout.scenario.mesh.tp == 8


def test_flags_win_over_the_file_but_in_tensorrt_llm() -> None:
    file = {"tensor_parallel_size": 4, "pipeline_parallel_size": 2}
    layout = from_flags("vllm", "-tp 2", gpus=8, file=file)
    assert layout.scenario.mesh.tp == 2
    assert layout.scenario.mesh.pp == 2
    layout = from_flags("trtllm", "--tp_size 2", gpus=8, file=file)
    assert layout.scenario.mesh.tp == 4
    (note,) = [note for note in layout.warnings if note.code == "file_overrides_flag"]
    assert "the file sets --tp_size to 4" in note.message


def test_json_settings_of_a_file() -> None:
    file = {"cp_config": {"cp_type": "HELIX"}, "context_parallel_size": 2, "tensor_parallel_size": 4}
    layout = from_flags("trtllm", "--ep_size 8", gpus=8, file=file)
    assert layout.framework_groups["moe_ep"] == [list(range(8))]


def test_unknown_keys_of_a_file_are_counted_and_refused_with_strict() -> None:
    file = {"tensor_paralel_size": 8, "pipeline_parallel_size": 2}
    assert from_flags("trtllm", [], gpus=8, file=file).unknown_flags == ("tensor_paralel_size",)
    with pytest.raises(ConfigError, match="tensor_paralel_size is not a flag of TensorRT-LLM"):
        from_flags("trtllm", [], gpus=8, file=file, strict=True)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("a: [", ".yaml"),
        ("- 1", ".yaml"),
        ("a: !!python/object/apply:os.system [ls]", ".yaml"),
        ("? [x]\n: 1", ".yaml"),
        ("a = ", ".toml"),
        ("[1]", ".json"),
        ("", ".yaml"),
    ],
)
def test_texts_that_are_no_tables(text: str, suffix: str) -> None:
    with pytest.raises(ConfigError, match=r"--file|scenario"):
        parse_config(text, suffix)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must end in \.yaml"):
        read_framework_file(tmp_path / "x.ini")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_framework_file(tmp_path / "x.yaml")


def test_yaml_loads_only_for_yaml() -> None:
    code = (
        "import sys\n"
        "from tracer.frameworks import from_flags\n"
        "from tracer.frameworks.config_files import parse_config\n"
        "from_flags('vllm', '-tp 2', gpus=2, file=parse_config('{}', '.json'))\n"
        "assert 'yaml' not in sys.modules and 'tracer.frameworks.sglang' not in sys.modules\n"
        "parse_config('a: 1', '.yaml')\n"
        "assert 'yaml' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
