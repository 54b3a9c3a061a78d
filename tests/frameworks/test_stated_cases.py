"""Launches that were read wrong once, in their smallest forms, and what the frameworks make of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.frameworks import from_flags, from_line
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.opening import Asked, meshes_of
from tracer.model.configs import model_preset
from tracer.model.parameters import count_parameters
from tracer.model.spec import ModelSpec
from tracer.scenario.scenario import Scenario

VLLM_REFUSES = [
    ("-tp 4 -dp 4 -dpl 1 --nnodes 2", "divisible by the number of data parallel node groups"),
    ("--model qwen3-32b -tp 2 --enable-expert-parallel", "Number of experts in the model must be greater"),
    ("-tp 8 --nnodes 3", "must evenly divide the total world size"),
    ("-tp 8 -dp 2 --nnodes 2 --data-parallel-backend ray", "requires `--data-parallel-backend mp`"),
    ("-tp 16 --nnodes 2 --node-rank 2", "must be between 0 and 1"),
    (
        "-tp 2 -dp 4 --data-parallel-hybrid-lb --data-parallel-external-lb -dpl 2",
        "cannot be enabled together",
    ),
    ("-tp 2 -dp 4 --data-parallel-external-lb", "requires a data-parallel rank"),
    ("-tp 2 -dp 4 --data-parallel-hybrid-lb", "requires `--data-parallel-size-local`"),
    ("-tp 2 -pp 2 --distributed-executor-backend uni", "Pipeline Parallelism without Ray"),
    ("--model qwen3-32b -tp 2 -dp 4 -dpn 0", "Non-MoE models do not support external data parallel"),
    ("-tp 2 -dp 2 --all2all-backend telepathy", "is not one of"),
]
SGLANG_REFUSES = [
    ("--pp 2", "is ambiguous"),
    ("--tp 8 --enable-eplb", "EPLB needs an expert parallel size above 1"),
    ("--tp 8 --moe-a2a-backend flashinfer --attn-dp-size 4", "Flashinfer MoE A2A is only supported"),
    ("--tp 8 --pp-size 2 --elastic-ep-backend nixl", "PP size should be set to 1 under elastic EP"),
    ("--tp 8 --moe-a2a-backend telepathy", "must be one of"),
    ("--tp 8 --moe-runner-backend telepathy", "must be one of"),
]
DEEPSPEED_REFUSES = [
    ("--zero-stage 5", "zero"),
    (
        "--autotp-size 2 --autoep-size 4 --use-data-before-expert-parallelism",
        "is not supported with AutoEP",
    ),
    ("--autoep-size 4 --expert-parallel.expert-tensor-parallel-size 2", "not supported yet"),
]


@pytest.mark.parametrize(("flags", "rule"), VLLM_REFUSES)
def test_vllm_refuses(flags: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        from_flags("vllm", flags)


def test_vllm_with_eplb_has_its_group() -> None:
    groups = from_flags("vllm", "-tp 2 -dp 2 --enable-expert-parallel --enable-eplb").framework_groups
    assert groups["eplb"] == groups["ep"] == [[0, 1, 2, 3]]


@pytest.mark.parametrize(("flags", "rule"), SGLANG_REFUSES)
def test_sglang_refuses(flags: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        from_flags("sglang", flags)


@pytest.mark.parametrize("flag", ["--enable-prefill-cp", "--enable-nsa-prefill-context-parallel"])
def test_sglang_sets_the_sizes_of_prefill_cp_by_the_model_of_the_line(flag: str) -> None:
    line = f"--model-path deepseek-ai/DeepSeek-V3 --tp 8 --attn-dp-size 2 {flag} --cp-strategy zigzag"
    walk = from_flags("sglang", line).reading.walk
    assert (walk("tp").size, walk("cp").size, walk("ep").size) == (1, 4, 8)


@pytest.mark.parametrize(("flags", "rule"), DEEPSPEED_REFUSES)
def test_deepspeed_refuses(flags: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        from_flags("deepspeed", flags, gpus=8)


def test_deepspeed_folds_and_takes_switches() -> None:
    folded = from_flags("deepspeed", "--autotp-size 2 --autoep-size 4 --zero-stage 3", gpus=8)
    assert (folded.reading.walk("tp").size, folded.reading.walk("ep").size) == (2, 4)
    line = "deepspeed --num_gpus 4 train.py --moe --ep-size 2 --deepspeed"
    layout = from_line(line)
    assert (layout.world_size, layout.reading.walk("ep").size) == (4, 2)


def test_megatron_takes_no_abbreviation_and_makes_the_groups_of_its_optimizer() -> None:
    with pytest.raises(ConfigError, match="abbreviations are not taken"):
        from_flags("megatron", "--tensor-model-parallel 2", gpus=8)
    line = "--tensor-model-parallel-size 4 --context-parallel-size 2 --num-distributed-optimizer-instances 4"
    groups = from_flags("megatron", line, gpus=16).framework_groups
    assert groups["intra_dp_cp"] == [[rank] for rank in range(16)]


def test_a_launch_line_without_its_two_dashes() -> None:
    found = CliRunner().invoke(tokentrip, ["from", "vllm", "-tp", "2"])
    assert found.exit_code
    assert "put -- before the launch line" in str(found.output) + str(found.exception)


def sizes(text: str, filename: str | None = None) -> list[tuple[str, int, dict[str, int]]]:
    """Role, GPUs and sizes above 1 of every mesh."""
    found = []
    for mesh in meshes_of(read_launch(text, filename=filename), Asked()):
        walk = mesh.layout.reading.walk
        axes = {axis: walk(axis).size for axis in ("tp", "cp", "dp", "pp", "ep") if walk(axis).size > 1}
        found.append((mesh.role, mesh.layout.world_size, axes))
    return found


DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      containers:
      - name: c
        image: vllm/vllm-openai
        command: [vllm, serve, M]
        args: [--data-parallel-size=16, --data-parallel-size-local=8, --enable-expert-parallel]
        resources: {limits: {nvidia.com/gpu: "8"}}
"""
LWS = """apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: l}
spec:
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers:
        - name: c
          image: vllm/vllm-openai
          command: [sh, -c]
          args: ["vllm serve M --tensor-parallel-size 8 --pipeline-parallel-size $(LWS_GROUP_SIZE)"]
          resources: {limits: {nvidia.com/gpu: "8"}}
"""
POOLS = """context_servers: {num_instances: 1, tensor_parallel_size: 4}
generation_servers:
  {num_instances: 1, tensor_parallel_size: 8, moe_expert_parallel_size: 8, enable_attention_dp: true}
"""
VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 "
    "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=8 "
    "actor_rollout_ref.actor.megatron.expert_model_parallel_size=4 "
    "actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=1 "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=8 trainer.nnodes=4 trainer.n_gpus_per_node=8"
)
READ = {
    "arrays": (
        "A=(--nproc_per_node 8 --nnodes 2)\n"
        "M=(--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4)\n"
        "torchrun ${A[@]} train.py ${M[@]}",
        [("", 16, {"tp": 2, "dp": 2, "pp": 4})],
    ),
    "strings": (
        'A="--nproc_per_node 8 --nnodes 2"\n'
        'M="--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4"\ntorchrun $A train.py $M',
        [("", 16, {"tp": 2, "dp": 2, "pp": 4})],
    ),
    "defaults and sums": (
        "TP=2\ntorchrun --nproc_per_node 16 pretrain_gpt.py --pipeline-model-parallel-size ${PP:-4} "
        "--tensor-model-parallel-size $((TP*2))",
        [("", 16, {"tp": 4, "pp": 4})],
    ),
    "bash -c under srun": (
        'srun --ntasks 16 --ntasks-per-node 8 bash -c "launcher trtllm-serve MODEL --tp_size 16 --ep_size 4"',
        [("", 16, {"tp": 16, "ep": 4})],
    ),
    "ports and ranks of nobody": (
        'vllm serve M -tp 2 -dp 4 --data-parallel-rpc-port $PORT --nnodes 2 --node-rank "$NODE"',
        [("", 8, {"tp": 2, "dp": 4})],
    ),
    "deployment": (DEPLOYMENT, [("", 16, {"dp": 16, "ep": 16})]),
    "leader and workers": (LWS, [("", 16, {"tp": 8, "pp": 2})]),
    "two pools": (POOLS, [("prefill", 4, {"tp": 4}), ("decode", 8, {"dp": 8, "ep": 8})]),
    "overrides": (
        "torchrun --nproc_per_node 8 --nnodes 2 train.py model.tensor_model_parallel_size=4 "
        "model.expert_model_parallel_size=4",
        [("", 16, {"tp": 4, "dp": 4, "ep": 4})],
    ),
    "verl": (
        VERL,
        [("actor", 32, {"tp": 4, "pp": 8, "ep": 4}), ("rollout", 32, {"tp": 8, "dp": 4})],
    ),
    "ms-swift": (
        "NPROC_PER_NODE=8 megatron sft --tensor_model_parallel_size 2 --expert_model_parallel_size 8",
        [("", 8, {"tp": 2, "dp": 4, "ep": 8})],
    ),
    "run_train.sh without NGPU": (
        "./run_train.sh --parallelism.tensor_parallel_degree 2",
        [("", 8, {"tp": 2, "dp": 4})],
    ),
}


@pytest.mark.parametrize("name", READ)
def test_a_launch_is_read(name: str) -> None:
    text, expected = READ[name]
    assert sizes(text) == expected


def test_a_test_configuration_of_megatron_is_read() -> None:
    text = "MODEL_ARGS:\n  --tensor-model-parallel-size: 2\n  --sequence-parallel: true\n"
    (mesh,) = meshes_of(read_launch(text, filename="model_config.yaml"), Asked(gpus=8))
    assert mesh.layout.reading.walk("tp").size == 2


def test_an_accelerate_file_is_read() -> None:
    text = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 8\nnum_machines: 1\n"
        "parallelism_config:\n  parallelism_config_tp_size: 2\n  parallelism_config_dp_shard_size: 4\n"
    )
    assert sizes(text, "a.yaml") == [("", 8, {"tp": 2, "dp": 4})]


def test_the_registry_of_torchtitan_decides() -> None:
    with pytest.raises(ConfigError, match="is an entry of torchtitan's registry"):
        sizes("MODULE=llama3 CONFIG=llama3_70b ./run_train.sh")


def test_the_partition_in_the_environment_splits_the_layers_of_the_named_model() -> None:
    line = (
        "SGLANG_PP_LAYER_PARTITION=10,17,17,17 python -m sglang.launch_server "
        "--model-path deepseek-ai/DeepSeek-V3 --tp 8 --pp-size 4"
    )
    assert from_line(line).scenario.plan.stage_layers == (10, 17, 17, 17)


def model_of(line: str) -> ModelSpec | None:
    (mesh,) = meshes_of(read_launch(line), Asked())
    table = mesh.layout.scenario.to_dict().get("model")
    return ModelSpec.from_dict(table) if isinstance(table, dict) else None


@pytest.mark.parametrize(
    ("line", "preset"),
    [
        ("vllm serve deepseek-ai/DeepSeek-V3 -tp 8 -dp 8 --enable-expert-parallel", "deepseek-v3"),
        ("vllm serve --model openai/gpt-oss-120b -tp 8", "gpt-oss-120b"),
        ("python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1-0528 --tp 8", "deepseek-r1"),
        ("trtllm-serve mistralai/Mixtral-8x7B-Instruct-v0.1 --tp_size 8", "mixtral-8x7b"),
        ("torchrun --nproc_per_node 8 run.py --recipe qwen3_30b_a3b model.tensor_model_parallel_size=2",
         "qwen3-30b-a3b"),
        ("vllm serve /data/models--meta-llama--Llama-3.1-8B/snapshots/0e9e39 -tp 2", "llama-3.1-8b"),
        ("vllm serve deepseek-ai/DeepSeek-R1-Distill-Llama-70B -tp 8", None),
        ("vllm serve zai-org/GLM-4.5-Air -tp 8", None),
        ("vllm serve $MODEL -tp 8", None),
        ("vllm serve -tp 8", None),
    ],
)  # fmt: skip
def test_the_model_of_a_line(line: str, preset: str | None) -> None:
    found = model_of(line)
    assert found == (model_preset(preset) if preset else None)


def test_a_model_that_does_not_ship_is_asked_for() -> None:
    notes = {note.code: str(note) for note in from_line("vllm serve zai-org/GLM-4.5-Air -tp 8").warnings}
    assert "add --model config.json" in notes["model_unknown"]
    assert from_flags("vllm", "--model gpt2 -tp 2", model=model_preset("qwen3-32b")).scenario.to_dict()[
        "model"
    ]


def test_formats_of_a_line_reach_the_scenario() -> None:
    line = "vllm serve meta-llama/Llama-3.1-8B -tp 2 --dtype float16 --kv-cache-dtype fp8 --quantization fp8"
    table = from_line(line).scenario.to_dict()
    assert (table["dtype"]["activations"], table["dtype"]["kv"]) == ("fp16", "fp8")
    assert table["model"]["attention_weights"] == table["model"]["dense_weights"] == "fp8"
    with pytest.raises(ConfigError, match="--kv-cache-dtype='fp7' must be one of"):
        from_line("vllm serve m --kv-cache-dtype fp7")


SIZES = (
    "torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 4 --hidden-size 256 --ffn-hidden-size 1024 "
    "--num-attention-heads 4 --group-query-attention --num-query-groups 2 --num-experts 8 "
    "--moe-router-topk 2 --expert-model-parallel-size 2 --swiglu --untie-embeddings-and-output-weights "
    "--vocab-size 128256 --disable-bias-linear --normalization RMSNorm --position-embedding-type rope --bf16"
)


def test_sizes_of_megatron_make_the_model_that_its_rank_0_holds() -> None:
    from tracer.memory.residency import residency_of
    from tracer.scenario.scenario import Scenario

    scenario = from_line(SIZES).scenario
    assert isinstance(scenario, Scenario)
    assert scenario.model.left_out == ()
    assert residency_of(scenario, 0).parameters == 79_046_912


def test_layers_with_experts_by_a_pattern() -> None:
    for pattern, dense in (("'([0]*1+[1]*3)'", (1,)), ("2", (2, 4))):
        spec = model_of(f"{SIZES} --moe-layer-freq {pattern}")
        assert spec is not None
        assert spec.dense_layers == dense
    with pytest.raises(ConfigError, match=r"--moe-layer-freq=.* must be N"):
        model_of(f"{SIZES} --moe-layer-freq __import__")


def test_gpt_2_has_no_gate_and_has_biases_and_positions() -> None:
    from tracer.model.parameters import count_parameters

    spec = model_of(
        "torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 24 --hidden-size 1024 "
        "--num-attention-heads 16 --max-position-embeddings 1024 --vocab-size 50257 --fp16"
    )
    assert spec is not None
    assert count_parameters(spec).total == 354_871_296


def test_a_saved_launch_is_followed_and_weighed(tmp_path: Path) -> None:
    saved = str(tmp_path / "launch.toml")
    line = ["vllm", "serve", "deepseek-ai/DeepSeek-V3", "-tp", "8", "-dp", "8", "--enable-expert-parallel"]
    for words in (
        ["from", "--save", saved, "--hardware", "h100", "--", *line],
        ["trip", saved],
        ["fits", saved],
    ):
        found = CliRunner().invoke(tokentrip, words)
        assert found.exit_code == 0, found.output + str(found.exception)
    assert "DeepSeek-V3" in (tmp_path / "launch.toml").read_text()


def test_a_model_that_a_branch_decides_is_not_guessed() -> None:
    text = (
        'if [ "$BIG" = 1 ]; then M=deepseek-ai/DeepSeek-V3; else M=mistralai/Mixtral-8x7B-v0.1; fi\n'
        "vllm serve $M -tp 8"
    )
    layout = from_line(text)
    assert layout.world_size == 8
    assert "model_unknown" in {note.code for note in layout.warnings}
    assert from_line(text, settings={"BIG": "1"}).model == "deepseek-v3"


@pytest.mark.parametrize("words", ["", "--context-parallel-size 2", "--tensor-model-parallel-size 2",
                                   "--context-parallel-size 4 --pipeline-model-parallel-size 2"])  # fmt: skip
def test_megatron_s_hybrid_groups_are_runs_of_powers_of_two(words: str) -> None:
    """``create_hybrid_dp_cp_groups`` by hand: every run of 2, 4, ... ranks below the DP x CP group's size."""
    layout = from_flags("megatron", f"{words} --hybrid-context-parallel", gpus=32)
    groups = layout.framework_groups
    whole = groups["dp-cp"]
    sizes = [1 << power for power in range(1, len(whole[0]).bit_length() - 1)]
    assert [name for name in groups if name.startswith("hybrid")] == [
        f"hybrid_dp_cp_{size}" for size in sizes
    ]
    for size in sizes:
        runs = [group[at : at + size] for group in whole for at in range(0, len(group), size)]
        assert sorted(groups[f"hybrid_dp_cp_{size}"]) == sorted(runs)
    assert any(note.code == "not_modelled" for note in layout.warnings)
    with pytest.raises(ConfigError, match=r"requires an even number of ranks"):
        from_flags("megatron", "--tensor-model-parallel-size 2 --hybrid-context-parallel", gpus=6)


NANOTRON = """
model:
  model_config: {is_llama_config: true, hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16,
    num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 128256, tie_word_embeddings: true}
parallelism: {dp: 2, pp: 2, tp: 4}
"""


def test_nanotron_s_model_config_makes_the_model() -> None:
    """Llama-3.2-1B's sizes have its 1,235,814,400 parameters; a size that is not given makes none."""
    (mesh,) = meshes_of(read_launch(NANOTRON, filename="config.yaml"), Asked())
    assert isinstance(mesh.layout.scenario, Scenario)
    assert count_parameters(mesh.layout.scenario.model).total == 1_235_814_400
    half = NANOTRON.replace("num_hidden_layers: 16,", "")
    (mesh,) = meshes_of(read_launch(half, filename="config.yaml"), Asked())
    assert "model_unknown" in [note.code for note in mesh.layout.warnings]
    with pytest.raises(ConfigError, match=r"model\.model_config\.num_key_value_heads=7 must divide"):
        bad = NANOTRON.replace("num_key_value_heads: 8", "num_key_value_heads: 7")
        meshes_of(read_launch(bad, filename="config.yaml"), Asked())
