"""Layers of stages and of virtual stages, as each framework's own code deals them out."""

from __future__ import annotations

import pytest

from tracer import ConfigError, ModelSpec
from tracer.frameworks import from_flags
from tracer.frameworks.writing import launch_flags
from tracer.scenario.scenario import Scenario

FOUR = "--pipeline-model-parallel-size 4"
BOTH = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"
TITAN = "--parallelism.pipeline_parallel_degree 4"
V3_LAYOUT = "--pipeline-model-parallel-size 16 --pipeline-model-parallel-layout 'Et*3|(tt|)*29,m|L'"


def chunks(name: str, flags: str, layers: int, gpus: int = 4) -> list[tuple[int, int]]:
    """(stage, layers) of each chunk in the order a token meets them."""
    scenario = from_flags(name, flags, gpus=gpus, model=ModelSpec(layers=layers, hidden=64)).scenario
    assert isinstance(scenario, Scenario)
    return [(chunk.stage, len(chunk.layers)) for chunk in scenario.chunks]


def laps(*sizes: int, stages: int = 4) -> list[tuple[int, int]]:
    """Chunks that go round the stages."""
    return [(number % stages, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("flags", "layers", "expected"),
    [
        (f"{FOUR} {BOTH}", 6, laps(1, 2, 2, 1)),
        (f"{FOUR} --num-layers-per-virtual-pipeline-stage 5", 80, laps(*[5] * 16)),
        (f"{FOUR} --num-virtual-stages-per-pipeline-rank 4", 80, laps(*[5] * 16)),
        (f"{FOUR} {BOTH} --num-virtual-stages-per-pipeline-rank 2", 14, laps(1, 2, 2, 2, 2, 2, 2, 1)),
        (f"{FOUR} {BOTH} --num-layers-per-virtual-pipeline-stage 2", 14, laps(1, 2, 2, 2, 2, 2, 2, 1)),
        (f"{FOUR} {BOTH}", 2, laps(0, 1, 1, 0)),
        (
            f"{FOUR} --decoder-first-pipeline-num-layers 2 --num-virtual-stages-per-pipeline-rank 2",
            14,
            laps(1, 2, 2, 2, 1, 2, 2, 2),
        ),
        (f"{FOUR} --pipeline-model-parallel-layout 'Et|tt|tt|tL'", 6, laps(1, 2, 2, 1)),
        (f"{FOUR} --pipeline-model-parallel-layout 'E|(t|)*6L'", 6, laps(0, 1, 1, 1, 1, 1, 1, 0)),
    ],
)
def test_megatron(flags: str, layers: int, expected: list[tuple[int, int]]) -> None:
    assert chunks("megatron", flags, layers) == expected


def test_a_published_layout_of_deepseek_v3() -> None:
    """61 layers over 16 stages of two chunks, MTP and loss alone on the last two."""
    found = chunks("megatron", V3_LAYOUT, 61, gpus=16)
    assert found == laps(3, *[2] * 29, 0, 0, stages=16)
    notes = from_flags("megatron", V3_LAYOUT, gpus=16, model=ModelSpec(layers=61)).warnings
    assert [note.code for note in notes] == ["mtp_not_laid_out"]


@pytest.mark.parametrize(
    ("flags", "layers", "said"),
    [
        (f"{FOUR} --num-virtual-stages-per-pipeline-rank 3", 80, r"\(20\) must be divisible by virtual .* 3"),
        (
            f"{FOUR} --num-layers-per-virtual-pipeline-stage 3",
            80,
            r"\(20\) must be divisible number of layers",
        ),
        (
            f"{FOUR} --num-layers-per-virtual-pipeline-stage 5 --num-virtual-stages-per-pipeline-rank 4",
            80,
            "cannot be set at the same time",
        ),
        (f"{FOUR} {BOTH} --decoder-first-pipeline-num-layers 1", 6, "cannot be set at the same time"),
        (
            f"{FOUR} --decoder-first-pipeline-num-layers 2 --num-layers-per-virtual-pipeline-stage 2",
            14,
            "please use --num-virtual-stages-per-pipeline-rank",
        ),
        (f"{FOUR} --pipeline-model-parallel-layout 'Et|tt|tL'", 4, r"divisible by pipeline_model.*\(3, 4\)"),
        (
            f"{FOUR} --pipeline-model-parallel-layout 'Et|tt|tt|tL'",
            7,
            "decoder layers 6 must match num_layers 7",
        ),
        (f"{FOUR} --pipeline-model-parallel-layout 't|tt|tt|tL'", 6, r"first layer must be the embedding"),
        (f"{FOUR} --pipeline-model-parallel-layout 'Et|tx|tt|tL'", 6, "Invalid layer character: x"),
        (
            f"{FOUR} --pipeline-model-parallel-layout 'Et*999999999|L'",
            6,
            "stands for more than 65,536 letters",
        ),
        (f"{FOUR} --pipeline-model-parallel-layout 'Et|mt|tt|tL'", 5, "before MTP layers"),
    ],
)
def test_megatron_refuses(flags: str, layers: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        chunks("megatron", flags, layers)


@pytest.mark.parametrize(
    ("flags", "layers", "expected"),
    [
        (TITAN, 61, laps(15, 16, 16, 14)),
        (f"{TITAN} --parallelism.pipeline_parallel_schedule Interleaved1F1B", 62, laps(7, *[8] * 6, 7)),
        (
            f"{TITAN} --parallelism.pipeline_parallel_schedule ZBVZeroBubble",
            62,
            [(0, 7), (1, 8), (2, 8), (3, 8), (3, 8), (2, 8), (1, 8), (0, 7)],
        ),
        (
            f"{TITAN} --parallelism.pipeline_parallel_schedule interleaved1f1b "
            "--parallelism.pipeline_parallel_layers_per_stage 4",
            61,
            laps(3, *[4] * 14, 2),
        ),
        (f"{TITAN} --parallelism.pipeline_parallel_first_stage_less_layers 0", 61, laps(16, 16, 15, 14)),
    ],
)
def test_torchtitan(flags: str, layers: int, expected: list[tuple[int, int]]) -> None:
    assert chunks("torchtitan", flags, layers) == expected


@pytest.mark.parametrize(
    ("flags", "layers", "said"),
    [
        (f"{TITAN} --parallelism.pipeline_parallel_schedule 2F2B", 61, "Unknown schedule '2F2B'"),
        (TITAN, 1, r"Number of stages \(4\) cannot be greater than effective layers \(3\)"),
        (f"{TITAN} --parallelism.pipeline_parallel_last_stage_less_layers 9", 16, r"\(9\) exceeds minimum"),
        (f"{TITAN} --parallelism.pipeline_parallel_layers_per_stage 4", 14, None),
        (f"{TITAN} --parallelism.pipeline_parallel_layers_per_stage 2", 14, "exactly 1 stage per rank"),
        (f"{TITAN} --parallelism.pipeline_parallel_layers_per_stage 3", 14, r"\(6\) must be divisible by"),
    ],
)
def test_torchtitan_refuses(flags: str, layers: int, said: str | None) -> None:
    if said is None:
        assert chunks("torchtitan", flags, layers) == laps(3, 4, 4, 3)
        return
    with pytest.raises(ConfigError, match=said):
        chunks("torchtitan", flags, layers)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("vllm", "VLLM_PP_LAYER_PARTITION=10,17,17,17 vllm serve m -pp 4"),
        ("sglang", "SGLANG_PP_LAYER_PARTITION=10,17,17,17 python -m sglang.launch_server --pp-size 4"),
    ],
)
def test_partition_of_the_environment(name: str, line: str) -> None:
    """With a model and without one."""
    assert chunks(name, line, 61) == laps(10, 17, 17, 17)
    assert from_flags(name, line).scenario.plan.stage_layers == (10, 17, 17, 17)
    with pytest.raises(ConfigError, match="61"):
        chunks(name, line.replace("10,", "11,"), 61)


@pytest.mark.parametrize(
    "mesh",
    [
        {"pp": 4, "chunks": 2},
        {"pp": 4, "chunks": 2, "chunk_layers": [1, 2, 2, 2, 2, 2, 2, 3]},
        {"pp": 2, "stage_layers": [6, 10]},
    ],
)
def test_megatron_writes_what_it_reads(mesh: dict[str, object]) -> None:
    scenario = Scenario.from_dict({"model": {"layers": 16}, "mesh": {"sp": "off", "contract": "tp", **mesh}})
    launch = launch_flags(scenario, "megatron")
    again = from_flags("megatron", launch.words, gpus=launch.gpus, model=scenario.model).scenario
    assert isinstance(again, Scenario)
    assert again.chunks == scenario.chunks


@pytest.mark.parametrize("order", ["interleaved", "v_shape"])
def test_torchtitan_writes_what_it_reads(order: str) -> None:
    mesh = {"pp": 4, "chunks": 2, "chunk_order": order, "sp": "off", "contract": "tp"}
    scenario = Scenario.from_dict({"model": {"layers": 21}, "mesh": mesh})
    launch = launch_flags(scenario, "torchtitan")
    again = from_flags("torchtitan", launch.words, gpus=launch.gpus, model=scenario.model).scenario
    assert isinstance(again, Scenario)
    assert again.chunks == scenario.chunks
