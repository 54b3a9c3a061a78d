"""Two launches compared: the same groups, or the axis and the rank where they part."""

from __future__ import annotations

import pytest

from tracer.frameworks import GroupComparison, diff, from_line
from tracer.model.spec import ModelSpec

MOE = ModelSpec(layers=4, hidden=64, heads=16, experts=8, top_k=2, expert_hidden=64)


def compare(
    first: str, second: str, gpus: int | None = None, model: ModelSpec | None = None
) -> GroupComparison:
    return diff(from_line(first, gpus=gpus, model=model), from_line(second, gpus=gpus, model=model))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("vllm serve m -tp 8", "python -m sglang.launch_server --tp 8"),
        ("vllm -tp 4 -dp 2 -ep", "sglang --tp 8 --attn-dp-size 2 --ep-size 8"),
        ("megatron --tensor-model-parallel-size 2", "nanotron --tp 2"),
        (
            "torchtitan --parallelism.tensor_parallel_degree 2",
            "megatron --tensor-model-parallel-size 2 --expert-tensor-parallel-size 1",
        ),
        ("trtllm-serve m --tp_size 8 --ep_size 8", "sglang --tp 8 --ep-size 8"),
        ("sglang --tp 8 --dp 8 --enable-dp-attention", "sglang --tp 8 --attn-dp-size 8"),
    ],
)
def test_same(first: str, second: str) -> None:
    found = compare(first, second, gpus=8)
    assert found.same
    assert str(found).startswith("same groups on all axes")
    assert found.to_dict()["same"] is True


@pytest.mark.parametrize(
    ("first", "second", "axes", "message"),
    [
        (
            "vllm -tp 2 -pp 2 -dp 2",
            "megatron --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2",
            {"dp", "pp", "etp", "edp"},
            "pp, rank 0: vllm [0, 2], megatron [0, 4]",
        ),
        (
            "sglang --tp 8 --ep 4",
            "trtllm-serve m --tp_size 8 --ep_size 4",
            {"ep", "etp"},
            "ep, rank 0: sglang [0, 2, 4, 6], tensorrt-llm [0, 1, 2, 3]",
        ),
    ],
)
def test_parting(first: str, second: str, axes: set[str], message: str) -> None:
    found = compare(first, second, gpus=8)
    assert {part.axis for part in found.partings} == axes
    assert message in str(found)
    assert not found.to_dict()["same"]


def test_other_worlds() -> None:
    found = compare("vllm -tp 8", "sglang --tp 4")
    assert not found.same
    assert str(found) == "different: vllm starts 8 GPUs, sglang 4"


def test_the_same_groups_with_experts_elsewhere() -> None:
    model = ModelSpec(
        layers=4, hidden=64, heads=16, experts=8, top_k=2, expert_hidden=64, expert_groups=4, top_groups=2
    )
    flags = "vllm -dp 4 --enable-expert-parallel --all2all-backend deepep_low_latency"
    found = compare(flags, f"{flags} --expert-placement-strategy round_robin", model=model)
    assert not found.same and not found.partings
    assert "expert 1: vllm [0], vllm [1]" in str(found)
    assert found.to_dict()["expert"] == {"expert": 1, "ranks": [[0], [1]]}


def test_experts_that_agree() -> None:
    assert compare("vllm -dp 4 -ep", "sglang --tp 4 --attn-dp-size 4 --ep 4", model=MOE).same
