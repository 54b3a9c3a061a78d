"""Whole shell lines, as people paste them: launchers, environment, continuations, scripts."""

from __future__ import annotations

import pytest

from tracer.errors import ConfigError
from tracer.frameworks import from_flags, from_line
from tracer.frameworks.launch.door import read_launch

MEGATRON = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4"
SCRIPT_AND_FLAGS = f"pretrain_gpt.py {MEGATRON}"


@pytest.mark.parametrize(
    ("line", "gpus", "per_node"),
    [
        (f"torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py {MEGATRON}", 32, 8),
        (f"torchrun --nnodes=2 --nproc_per_node=4 --rdzv-backend c10d pretrain_gpt.py {MEGATRON}", 8, 4),
        (f"torchrun --standalone --nproc-per-node 8 -m megatron.training.pretrain {MEGATRON}", 8, 8),
        (
            f"python3 -m torch.distributed.run --nnodes 2 --nproc_per_node 8 x/pretrain_vlm.py {MEGATRON}",
            16,
            8,
        ),
        (f"CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes 2 --nproc-per-node 8 {SCRIPT_AND_FLAGS}", 16, 8),
        (f"srun -N 4 --ntasks-per-node 8 python -u pretrain_gpt.py {MEGATRON}", 32, 8),
        (
            f"srun --nodes=2 --ntasks-per-node=1 torchrun --nnodes 2 --nproc-per-node 8 {SCRIPT_AND_FLAGS}",
            16,
            8,
        ),
        (f"mpirun -np 16 --allow-run-as-root -x NCCL_DEBUG --mca btl tcp python {SCRIPT_AND_FLAGS}", 16, 8),
    ],
)
def test_node_counts_come_from_the_line(line: str, gpus: int, per_node: int) -> None:
    layout = from_flags("megatron", line)
    assert layout.world_size == gpus
    assert layout.scenario.mesh.pp == 4
    assert layout.scenario.cluster.gpus_per_node == per_node


SCRIPT = r"""
#!/bin/bash
export TP=2   # tensor parallel
PP=4
NNODES=2
DISTRIBUTED_ARGS=(
    --nproc_per_node 8
)
# the model
torchrun --nnodes $NNODES --nproc_per_node 8 --master_addr "$MASTER" \
    pretrain_gpt.py \
    --tensor-model-parallel-size ${TP} \
    --pipeline-model-parallel-size $PP \
    --data-path "a path with spaces" 2>&1 | tee log --context-parallel-size 2
"""


def test_a_script_with_variables_comments_and_a_pipe() -> None:
    layout = from_flags("megatron", SCRIPT)
    assert layout.world_size == 16
    assert layout.scenario.mesh.tp == 2
    assert layout.scenario.mesh.pp == 4
    assert layout.scenario.mesh.cp == 1


def test_flags_in_an_array_before_the_launch() -> None:
    script = (
        "ARGS=(\n  --tensor-model-parallel-size 4\n)\ntorchrun --nproc-per-node 8 pretrain_gpt.py ${ARGS[@]}"
    )
    assert from_flags("megatron", script).scenario.mesh.tp == 4


@pytest.mark.parametrize(
    ("line", "framework", "world"),
    [
        ("vllm serve deepseek-ai/DeepSeek-V3 -tp 8 -dp 2 --enable-expert-parallel", "vllm", 16),
        ("python -m vllm.entrypoints.openai.api_server --model m -tp 4", "vllm", 4),
        ("VLLM_USE_V1=1 nohup vllm serve m --tensor_parallel_size=2 -pp=2 &", "vllm", 4),
        ("python -m sglang.launch_server --model-path m --tp 8 --pp-size 2", "sglang", 16),
        (
            "python3 -m sglang.launch_server --tp-size 16 --dp-size 16 --enable-dp-attention --nnodes 2",
            "sglang",
            16,
        ),
        ("trtllm-serve m --tp_size 8 --ep_size 4 --pp_size 2", "tensorrt-llm", 16),
        ("mpirun -n 8 --oversubscribe trtllm-llmapi-launch trtllm-serve m --tp_size 8", "tensorrt-llm", 8),
        ("trtllm-bench --model m throughput --tp 4 --ep 4", "tensorrt-llm", 4),
        ("deepspeed --num_nodes 2 --num_gpus 8 train.py --num-mp 2 --ep_size 4", "deepspeed", 16),
        ("deepspeed --num_nodes=2 --num_gpus=8 --hostfile h train.py --deepspeed ds.json", "deepspeed", 16),
        ("NGPU=8 CONFIG_FILE=x.toml ./run_train.sh --parallelism.tensor_parallel_degree 2", "torchtitan", 8),
        (
            "torchrun --nproc_per_node=8 -m torchtitan.train --parallelism.tensor_parallel_degree=2",
            "torchtitan",
            8,
        ),
        ("torchrun --nproc_per_node=8 run_train.py --config-file c.yaml --parallelism.dp 8", "nanotron", 8),
        ("torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py", "megatron", 16),
        ("megatron --context-parallel-size 2", "megatron", 16),
        ("cd /x && source env.sh; vllm serve m -tp 2", "vllm", 2),
    ],
)
def test_the_line_names_its_framework(line: str, framework: str, world: int) -> None:
    gpus = 16 if line.startswith("megatron ") else None
    layout = from_line(line, gpus=gpus)
    assert (layout.framework, layout.world_size) == (framework, world)


def test_words_already_split() -> None:
    words = ["vllm", "serve", "a model", "-tp", "2", "--eplb-config", '{"step_interval": 10}']
    assert read_launch(words).frameworks == ("vllm",)
    assert from_flags("vllm", words, gpus=2).world_size == 2


def test_the_environment_of_the_line_counts_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ALL2ALL_BACKEND", "deepep_low_latency")
    monkeypatch.setenv("NGPU", "64")
    flags = "-tp 1 -dp 8 --enable-expert-parallel"
    assert from_flags("vllm", flags).scenario.plan.contract == "ag_rs"
    line = f"VLLM_ALL2ALL_BACKEND=deepep_low_latency vllm serve m {flags}"
    plan = from_flags("vllm", line).scenario.plan
    assert (plan.contract, plan.dispatch) == ("ep", "low_latency")


def test_the_callers_gpus_must_fit_the_line() -> None:
    with pytest.raises(ConfigError, match=r"gpus=16 does not fit the launch line, whose torchrun starts 32"):
        from_flags("megatron", f"torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py {MEGATRON}", gpus=16)


def test_counts_that_are_not_numbers_are_not_guessed() -> None:
    line = f"torchrun --nnodes $NNODES --nproc-per-node 8 pretrain_gpt.py {MEGATRON}"
    with pytest.raises(ConfigError, match="add --gpus N"):
        from_flags("megatron", line)
    assert from_flags("megatron", line, gpus=16).world_size == 16


def test_the_wrong_framework_is_named() -> None:
    with pytest.raises(ConfigError, match="does not fit the line, which starts vllm"):
        from_flags("sglang", "vllm serve m -tp 8", gpus=8)
    with pytest.raises(ConfigError, match="does not say which framework"):
        from_line("ls -l")
    with pytest.raises(ConfigError, match="did you mean 'vllm'"):
        from_flags("vlm", "-tp 8", gpus=8)


def test_a_variable_that_is_not_set_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"takes \$TP, which nothing in these lines sets; add --set TP=N"):
        from_flags("vllm", "-tp $TP", gpus=8)


def test_a_quote_that_does_not_close() -> None:
    with pytest.raises(ConfigError, match="a quote that does not close"):
        from_flags("vllm", "-tp 8 --model 'm", gpus=8)


def test_reading_lines_opens_no_file_and_warns_of_one(tmp_path: object) -> None:
    layout = from_flags("vllm", "--config no-such-file.yaml -tp 2", gpus=2)
    assert "config_file_not_read" in {note.code for note in layout.warnings}


def test_long_texts_take_time_in_proportion() -> None:
    import time

    started = time.process_time()  # in proportion to the square it would be many minutes
    with pytest.raises(ConfigError, match="a quote that does not close"):
        from_flags("vllm", "-tp 2 '" + "x\n" * 100_000, gpus=2)
    with pytest.raises(ConfigError, match="are more than 500000 characters"):
        from_flags("vllm", "x" * 500_001, gpus=2)
    assert time.process_time() - started < 60


def test_quotes_hold_comments_and_newlines() -> None:
    launch = read_launch("vllm serve 'a # b\nc' -tp 2 # -tp 4\n# -tp 8")
    assert launch.processes[0].words == ("serve", "a # b\nc", "-tp", "2")


@pytest.mark.parametrize(
    ("name", "flags", "gpus", "per_node"),
    [
        ("sglang", "--tp 16 --nnodes 4", None, 4),
        ("vllm", "-tp 16 --nnodes 2", None, 8),
        ("vllm", "-tp 16 --nnodes 4", 16, 4),
        ("trtllm", "--tp_size 8 --gpus_per_node 4", None, 4),
        ("vllm", "-tp 8", None, 8),
    ],
)
def test_node_sizes_come_from_the_frameworks_own_flags(
    name: str, flags: str, gpus: int | None, per_node: int
) -> None:
    assert from_flags(name, flags, gpus=gpus).scenario.cluster.gpus_per_node == per_node
    assert from_flags(name, flags, gpus=gpus, gpus_per_node=2).scenario.cluster.gpus_per_node == 2
