"""What each framework's TP does with a shared expert, and what a GPU then holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tracer
from tracer.frameworks import from_flags
from tracer.memory.fits import check_fits
from tracer.memory.share import model_share
from tracer.memory.weights import held_weights
from tracer.model.configs.presets import model_preset
from tracer.scenario.plan import SharedTp
from tracer.scenario.scenario import Scenario

DEEPSEEK_V3 = model_preset("deepseek-v3")


def launch(framework: str, flags: str, gpus: int = 8) -> Scenario:
    scenario = from_flags(framework, flags, gpus=gpus, model=DEEPSEEK_V3).scenario
    assert isinstance(scenario, Scenario)
    return scenario


@pytest.mark.parametrize(
    ("framework", "flags", "gpus", "word"),
    [
        ("vllm", "-tp 8", 8, "merged"),
        ("vllm", "-tp 8 --enable-expert-parallel", 8, "merged"),
        ("vllm", "-tp 2 -dp 4 --enable-expert-parallel", 8, "whole"),
        ("vllm", "-tp 2 -dp 4 --enable-expert-parallel --all2all-backend moonep", 8, "own"),
        ("sglang", "--tp 8", 8, "merged"),
        ("sglang", "--tp 8 --ep-size 8", 8, "merged"),
        ("sglang", "--tp 16 --moe-a2a-backend deepep", 16, "whole"),
        ("tensorrt_llm", "--tp_size 8 --ep_size 8", 8, "merged"),
        ("tensorrt_llm", "--tp_size 8 --ep_size 8 --enable_attention_dp true", 8, "whole"),
        ("megatron", "--tensor-model-parallel-size 8 --expert-model-parallel-size 8 "
                     "--expert-tensor-parallel-size 1 --sequence-parallel", 8, "own"),
    ],
)  # fmt: skip
def test_each_framework_by_its_rule(framework: str, flags: str, gpus: int, word: str) -> None:
    assert launch(framework, flags, gpus).plan.shared_tp == word


def test_parameters_of_deepseek_v3_at_tp8_are_near_the_published() -> None:
    """SGLang and vLLM users print 79.41 GiB per GPU, buffers included."""
    for framework, flags in (("vllm", "-tp 8"), ("sglang", "--tp 8"), ("tensorrt_llm", "--tp_size 8")):
        scenario = launch(framework, flags)
        held = held_weights(scenario, model_share(scenario, 0))
        assert round(sum(shard.bytes for shard in held) / 2**30, 2) == 79.29


def test_room_for_kv_with_a_sliced_shared_expert() -> None:
    scenario = launch("vllm", "-tp 8")
    scenario = scenario.with_(
        plan=replace(scenario.plan, dcp=8), cluster=replace(scenario.cluster, hardware="h200")
    )
    assert check_fits(scenario, 0.9).tokens_a_replica == 5_819_416


def test_only_own_slices_have_hops_of_their_own() -> None:
    def ops(word: str) -> int:
        scenario = launch("vllm", "-tp 8")
        plan = replace(scenario.plan, shared_tp=SharedTp(word))
        return tracer.take_trip(scenario.with_(plan=plan)).log.comm_ops

    assert ops("merged") == ops("whole")
    assert ops("own") == ops("whole") + DEEPSEEK_V3.moe_layers


def test_a_model_without_shared_experts_keeps_the_default() -> None:
    scenario = from_flags("vllm", "-tp 2", gpus=2, model=model_preset("mixtral-8x7b")).scenario
    assert scenario.plan.shared_tp == "whole"


def test_merged_needs_a_reduction_over_tp() -> None:
    scenario = launch("vllm", "-tp 8")
    plan = replace(scenario.plan, shared_tp=SharedTp.MERGED)
    assert scenario.with_(plan=plan).plan.slices_shared
    tables = scenario.to_dict()
    tables["mesh"] |= {"contract": "ep", "ep": 8, "etp": 1, "shared_tp": "merged"}
    tables["placement"] = None
    with pytest.raises(tracer.ConfigError, match=r"mesh\.shared_tp='merged' adds .* contract 'ep' has none"):
        Scenario.from_dict(tables)


@pytest.mark.parametrize(("said", "word"), [(False, "whole"), (True, "own"), ("merged", "merged")])
def test_files_with_true_and_false_are_still_read(said: object, word: str) -> None:
    tables = launch("vllm", "-tp 8").to_dict()
    tables["mesh"]["shared_tp"] = said
    scenario = Scenario.from_dict(tables)
    assert scenario.to_dict()["mesh"]["shared_tp"] == word
    assert Scenario.from_toml(scenario.to_toml()) == scenario
