"""Tools around the frameworks, pages of prose, other tools' files: what is read of each, what is said."""

from __future__ import annotations

import json
import math

import pytest

from tracer.data import FOLDER
from tracer.errors import ConfigError
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.launch.interpolation import resolved
from tracer.frameworks.opening import Asked, LaunchedMesh, meshes_of
from tracer.frameworks.unread import Unread

Mesh = tuple[str, str, int, dict[str, int]]


def meshes(text: str, name: str | None = None, **settings: str) -> list[LaunchedMesh]:
    """Every mesh of a text."""
    return meshes_of(read_launch(text, filename=name, settings=settings), Asked())


def sizes(text: str, name: str | None = None, **settings: str) -> list[Mesh]:
    """Role, framework, GPUs and sizes above 1 of every mesh."""
    found = []
    for mesh in meshes(text, name, **settings):
        walk = mesh.layout.reading.walk
        axes = {axis: walk(axis).size for axis in ("tp", "cp", "dp", "pp", "ep") if walk(axis).size > 1}
        found.append((mesh.role, mesh.layout.framework, mesh.layout.world_size, axes))
    return found


def codes(text: str, name: str | None = None) -> set[str]:
    """The codes of every warning."""
    return {note.code for mesh in meshes(text, name) for note in mesh.layout.warnings}


VERL = "python3 -m verl.trainer.main_ppo trainer.nnodes=2 trainer.n_gpus_per_node=8 "
TITAN = "actor_rollout_ref.actor.torchtitan."


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (  # Nothing sets the rollout's TP: verl's own default is 2.
            "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.rollout.name=vllm",
            [("actor", "accelerate", 16, {"dp": 16}), ("rollout", "vllm", 16, {"tp": 2, "dp": 8})],
        ),
        (  # The engine is named, its sizes are verl's own: one of everything.
            "model_engine=megatron actor_rollout_ref.rollout.tensor_model_parallel_size=4",
            [("actor", "megatron", 16, {"dp": 16}), ("rollout", "vllm", 16, {"tp": 4, "dp": 4})],
        ),
        (
            "--config-name ppo_megatron_trainer actor_rollout_ref.rollout.tensor_model_parallel_size=4",
            [("actor", "megatron", 16, {"dp": 16}), ("rollout", "vllm", 16, {"tp": 4, "dp": 4})],
        ),
        (
            f"model_engine=torchtitan {TITAN}tensor_parallel_size=2 {TITAN}data_parallel_shard_size=8",
            [("actor", "torchtitan", 16, {"tp": 2, "dp": 8})],
        ),
        (  # A rollout with nodes of its own.
            "actor_rollout_ref.actor.fsdp_config.fsdp_size=-1 rollout.nnodes=1 rollout.n_gpus_per_node=8 "
            "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.tensor_model_parallel_size=4",
            [("actor", "accelerate", 16, {"dp": 16}), ("rollout", "vllm", 8, {"tp": 4, "dp": 2})],
        ),
        (
            "model_engine=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
            "actor_rollout_ref.rollout.name=trtllm actor_rollout_ref.rollout.tensor_model_parallel_size=8",
            [("actor", "megatron", 16, {"tp": 2, "dp": 8}), ("rollout", "tensorrt-llm", 8, {"tp": 8})],
        ),
    ],
)  # fmt: skip
def test_verl_engines(words: str, expected: list[Mesh]) -> None:
    assert sizes(VERL + words) == expected


def test_layers_of_the_end_stages_by_their_names_in_the_config() -> None:
    """``num_layers_in_last_pipeline_stage`` is ``--decoder-last-pipeline-num-layers``; the reference model
    has the actor's.
    """
    stages = "".join(
        f"actor_rollout_ref.{role}.megatron.pipeline_model_parallel_size=12 " for role in ("actor", "ref")
    )
    last = "+actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_last_pipeline_stage=6"
    line = (
        "python3 -m verl.trainer.main_ppo trainer.nnodes=12 trainer.n_gpus_per_node=8 model_engine=megatron "
        f"actor_rollout_ref.model.path=deepseek-ai/DeepSeek-V3 {stages}{last} "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=32"
    )
    # The rollout at TP 32 would cut the checkpoint's FP8 blocks; what is trained is BF16.
    assert sizes(line) == [
        ("actor and ref", "megatron", 96, {"dp": 8, "pp": 12}),
        ("rollout", "vllm", 96, {"tp": 32, "dp": 3}),
    ]
    assert "trained_in_bf16" in codes(line)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("model_engine=veomni", "is an engine of verl that is not read"),
        ("actor_rollout_ref.actor.strategy=automodel", "is an engine of verl that is not read"),
        (
            "actor_rollout_ref.actor.strategy=fsdp actor_rollout_ref.rollout.name=hf "
            "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
            "is a rollout of verl that is not read",
        ),
    ],
)
def test_verl_refusals(words: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule) as error:
        sizes(VERL + words)
    assert error.value.fix


def test_a_verl_file_with_its_references() -> None:
    text = (
        "actor_rollout_ref:\n"
        "  actor:\n"
        "    strategy: megatron\n"
        "    megatron: {tensor_model_parallel_size: 4, pipeline_model_parallel_size: 2}\n"
        "  ref:\n"
        "    megatron:\n"
        "      tensor_model_parallel_size: ${oc.select:actor_rollout_ref.actor.megatron."
        "tensor_model_parallel_size,1}\n"
        "      pipeline_model_parallel_size: ${..pipes}\n"
        "    pipes: ${actor_rollout_ref.actor.megatron.pipeline_model_parallel_size}\n"
        "  rollout: {name: vllm, tensor_model_parallel_size: 8}\n"
        "trainer: {nnodes: 2, n_gpus_per_node: 8}\n"
    )
    assert sizes(text, "run.yaml") == [
        ("actor and ref", "megatron", 16, {"tp": 4, "dp": 2, "pp": 2}),
        ("rollout", "vllm", 16, {"tp": 8, "dp": 2}),
    ]


def test_references_that_stay_unknown_are_asked_for() -> None:
    found = resolved({"a": "${mul:2,3}", "b": "${oc.env:X}", "c": "${c}", "d": "${oc.select:x,null}"})
    assert [type(found[key]) for key in "abc"] == [Unread, Unread, Unread]
    assert found["d"] is None


NEMO_RL = """
policy:
  model_name: org/unknown
  dtensor_cfg: {enabled: %s, tensor_parallel_size: 2, context_parallel_size: 1}
  megatron_cfg: {enabled: %s, tensor_model_parallel_size: 4, expert_model_parallel_size: 8}
  generation:
    vllm_cfg: {tensor_parallel_size: 2, expert_parallel_size: 1}
cluster: {gpus_per_node: 8, num_nodes: 4}
"""


def test_nemo_rl_reads_the_way_that_is_enabled() -> None:
    generation = ("generation", "vllm", 32, {"tp": 2, "dp": 16})
    assert sizes(NEMO_RL % ("true", "false"), "a.yaml") == [
        ("policy", "torchtitan", 32, {"tp": 2, "dp": 16}), generation,
    ]  # fmt: skip
    # Experts are not sliced unless it is said: 8 EP ranks of 4 experts' GPUs would need 32 of each stage.
    assert sizes(NEMO_RL % ("false", "true"), "a.yaml") == [
        ("policy", "megatron", 32, {"tp": 4, "dp": 8, "ep": 8}), generation,
    ]  # fmt: skip


def test_nemo_rl_generation_with_its_own_nodes_and_experts() -> None:
    text = (NEMO_RL % ("false", "true")).replace(
        "    vllm_cfg: {tensor_parallel_size: 2, expert_parallel_size: 1}",
        "    vllm_cfg: {tensor_parallel_size: 2, expert_parallel_size: 8}\n"
        "    colocated: {enabled: false, resources: {num_nodes: 1, gpus_per_node: 8}}",
    )
    assert sizes(text, "a.yaml") == [
        ("policy", "megatron", 24, {"tp": 4, "dp": 6, "ep": 8}),
        ("generation", "vllm", 8, {"tp": 2, "dp": 4, "ep": 8}),
    ]


def test_a_configuration_above_another_says_so_and_asks_for_what_shapes() -> None:
    text = "defaults: ../base.yaml\n" + NEMO_RL % ("false", "true")
    assert "config_file_not_read" in codes(text, "a.yaml")
    with pytest.raises(ConfigError, match=r"cluster\.num_nodes") as error:
        sizes(text.replace(", num_nodes: 4", ""), "a.yaml")
    assert "--gpus N" in error.value.fix


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("base_model: m\ndatasets: []\ntensor_parallel_size: 2\ndp_shard_size: 4\n", "Axolotl"),
        ("model_name_or_path: m\nstage: sft\ntemplate: q\ntensor_model_parallel_size: 2\n", "LLaMA-Factory"),
        ("model_name_or_path: m\noutput_dir: o\nper_device_train_batch_size: 1\n", "TRL"),
        ("_target_: verl.workers.config.X\ntensor_model_parallel_size: 2\n", "a part of a verl"),
    ],
)
def test_files_of_other_tools_are_refused_by_name(text: str, tool: str) -> None:
    with pytest.raises(ConfigError, match=tool) as error:
        sizes(text, "a.yaml")
    assert error.value.field == "a.yaml" and error.value.fix


def test_a_file_of_which_most_keys_are_anothers() -> None:
    keys = "".join(f"their_key_{number}: {number}\n" for number in range(8))
    with pytest.raises(ConfigError, match="8 of 10") as error:
        sizes(f"tensor_parallel_size: 2\ncontext_parallel_size: 2\n{keys}", "a.yaml")
    assert "another tool's file" in error.value.rule
    # With the framework named it is read, and the others are said to be unknown.
    named = meshes_of(
        read_launch(f"tensor_parallel_size: 2\n{keys}", framework="vllm", filename="a.yaml"), Asked()
    )
    assert len(named[0].layout.unknown_flags) == 8


@pytest.mark.parametrize(
    "line", ["llamafactory-cli train a.yaml", "axolotl train a.yml", "trl sft --config a.yaml"]
)
def test_commands_of_other_tools_are_refused_by_name(line: str) -> None:
    with pytest.raises(ConfigError, match="whose own settings are not read"):
        sizes(line)


def test_accelerate_without_distribution_is_one_process() -> None:
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_machines: 1\nnum_processes: 8\n"
    assert sizes(text, "a.yaml") == [("", "accelerate", 1, {})]


def test_a_switch_that_is_off_lacks_nothing() -> None:
    text = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 8\n"
        "fsdp_config: {fsdp_version: 2, fsdp_offload_params: %s}\n"
    )
    assert "not_modelled" in codes(text % "true", "a.yaml")
    assert "not_modelled" not in codes(text % "false", "a.yaml")


def test_the_pools_of_a_tensorrt_llm_benchmark() -> None:
    text = (
        "hardware: {gpus_per_node: 4, num_ctx_servers: 2, num_gen_servers: 1}\n"
        "worker_config:\n"
        "  gen: {tensor_parallel_size: 8, moe_expert_parallel_size: 8, enable_attention_dp: true,\n"
        "        moe_config: {backend: CUTLASS, load_balancer: {num_slots: 0}}}\n"
        "  ctx: {tensor_parallel_size: 4, moe_expert_parallel_size: 4, enable_attention_dp: true}\n"
    )
    assert sizes(text, "config.yaml") == [
        ("prefill", "tensorrt-llm", 4, {"dp": 4, "ep": 4}),
        ("decode", "tensorrt-llm", 8, {"dp": 8, "ep": 8}),
    ]


def test_values_of_a_chart_with_the_command_in_its_image() -> None:
    text = (
        'image: {repository: vllm/vllm-openai, tag: v1, command: ["vllm", "serve", "/data", "-tp", "4"]}\n'
        "resources: {limits: {nvidia.com/gpu: 4}}\n"
    )
    assert sizes(text, "values.yaml") == [("", "vllm", 4, {"tp": 4})]


def test_dynamos_own_flags_are_no_unknown_flags() -> None:
    line = (
        "python3 -m dynamo.vllm --model m --is-prefill-worker --connector nixl -tp 2 --dyn-tool-call-parser x"
    )
    (mesh,) = meshes(line)
    assert (mesh.role, mesh.layout.unknown_flags, mesh.layout.world_size) == ("prefill", (), 2)


def test_a_text_with_an_unknown_variable_is_read_again() -> None:
    """A batch script that a script writes: its unknown variables stay as they were typed."""
    script = (
        "ARGS=(--tensor-model-parallel-size 2 --recompute-modules mlp moe)\n"
        'CMD="\ncd /x;\nexport PYTHONPATH=/x:${PYTHONPATH};\npython pretrain_gpt.py ${ARGS[@]}"\n'
        "sbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n"
        'srun --container-image=${IMAGE} bash -x -c "${CMD}" 2>&1 | tee /logs/\\${SLURM_JOB_ID}.log\nEOF\n'
    )
    assert sizes(script, "job.sh") == [("", "megatron", 32, {"tp": 2, "dp": 16})]


def test_a_loop_over_what_a_branch_decides_asks() -> None:
    script = (
        'if [ -d /opt/rocm ]; then B=("allgather_reducescatter"); else B=("deepep_low_latency"); fi\n'
        'for BACK in "${B[@]}"; do\n'
        '  vllm serve Qwen/Qwen3-30B-A3B -dp 4 --enable-expert-parallel --all2all-backend "$BACK"\ndone\n'
    )
    with pytest.raises(ConfigError, match="decided by a branch") as error:
        sizes(script, "a.sh")
    assert "--set BACK=" in error.value.fix
    assert sizes(script, "a.sh", BACK="deepep_low_latency") == [("", "vllm", 4, {"dp": 4, "ep": 4})]


PAGE = """# How it's run

It doesn't matter where.

```mermaid
sequenceDiagram
  A->>B: don't
```

```bash
export TP=4
```

  ??? note "more"

      ~~~console
      $ vllm serve m -tp $TP
      ~~~

```bash
vllm serve m --enable-eplb
```

```yaml
kind: Deployment
apiVersion: apps/v1
spec: {template: {spec: {containers: [{name: c, image: vllm/vllm-openai, args: [--model, m, -tp, "2"],
  resources: {limits: {nvidia.com/gpu: 2}}}]}}}
```

```json
{"error": "vllm isn't here"} {"and": "two"}
```
"""


def test_a_page_reads_its_launches_and_says_what_is_refused() -> None:
    assert sizes(PAGE, "README.md") == [("", "vllm", 4, {"tp": 4}), ("", "vllm", 2, {"tp": 2})]
    (refused,) = [
        note for note in meshes(PAGE, "README.md")[0].layout.warnings if note.code == "launch_refused"
    ]
    assert "--enable-eplb" in refused.message
    with pytest.raises(ConfigError, match="enable_expert_parallel"):
        meshes_of(read_launch(PAGE, filename="README.md"), Asked(strict=True))


def test_a_page_in_restructured_text() -> None:
    text = "Run\n===\n\n.. code-block:: bash\n\n   vllm serve m \\\n     -tp 2\n\nThat isn't all.\n"
    assert sizes(text, "doc.rst") == [("", "vllm", 2, {"tp": 2})]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("# Title\n\nIt's prose about vllm.\n", "has no code block"),
        ("# T\n\n```python\nimport vllm\n```\n", "none launches a framework"),
        ("# T\n\n```bash\nvllm serve m --pipeline-parallel-size 0\n```\n", "must be a whole number"),
    ],
)
def test_a_page_without_a_launch(text: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        sizes(text, "README.md")


def test_a_script_that_starts_others_names_them() -> None:
    script = "bash servers.sh prefill\nbash servers.sh decode\nvllm bench serve --model m\n"
    with pytest.raises(ConfigError, match="is not here") as error:
        sizes(script, "run.sh")
    assert error.value.fix == "give it: tokentrip from servers.sh"


def test_a_long_text_is_not_quoted_whole() -> None:
    text = "\n".join(f"# line {number}" for number in range(40)) + "\nX=1\n"
    with pytest.raises(ConfigError, match="does not say which framework") as error:
        sizes(text, "a.sh")
    assert error.value.got == "X=1 ... (41 lines)"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "llama3_8b trainer.strategy.tensor_model_parallel_size=2",
            ("", "megatron", 8, {"tp": 2, "cp": 2, "dp": 2}),
        ),
        (
            "\"deepseek_v3(num_nodes=64, name='mine')\" trainer.strategy.expert_model_parallel_size=32",
            ("", "megatron", 512, {"tp": 2, "dp": 16, "pp": 16, "ep": 32}),
        ),
        (
            "'qwen3_30b_a3b(num_nodes=2, num_gpus_per_node=4, expert_parallelism=2)'",
            ("", "megatron", 8, {"tp": 4, "pp": 2, "ep": 2}),
        ),
    ],
)  # fmt: skip
def test_nemo_recipes(words: str, expected: Mesh) -> None:
    line = f"nemo llm pretrain --factory {words}"
    assert sizes(line) == [expected]
    assert {"recipe_read", "model_of_line"} <= codes(line)


def test_every_nemo_recipe_is_laid_out_or_refused_for_its_nodes() -> None:
    table = json.loads((FOLDER / "nemo_recipes.json").read_text(encoding="utf-8"))
    assert len(table["recipes"]) > 70 and table["licence"] == "Apache-2.0"
    refused = []
    for name, recipe in table["recipes"].items():
        own = recipe["sizes"]
        axes = ("tensor", "pipeline", "context")
        ranks = math.prod(
            own.get(f"{axis}_{'model_' * (axis != 'context')}parallel_size", 1) for axis in axes
        )
        try:
            (mesh,) = meshes(f"nemo llm pretrain --factory {name}")
        except ConfigError as error:
            assert "world_size" in error.rule
            refused.append(name)
            continue
        assert mesh.layout.world_size == own["num_nodes"] * own["num_gpus_per_node"]
        assert mesh.layout.world_size % ranks == 0
    assert len(refused) < 8


def test_nemo_fine_tuning_recipes_are_not_known() -> None:
    with pytest.raises(ConfigError, match="a recipe or a file decides"):
        sizes("nemo llm finetune --factory llama3_8b")


def test_a_nemo_script_is_told_its_recipe() -> None:
    text = "import nemo_run as run\nrecipe = llm.llama31_70b.pretrain_recipe(num_nodes=nodes)\n"
    with pytest.raises(ConfigError, match="is Python") as error:
        sizes(text, "train.py")
    assert "--factory 'llama31_70b(num_nodes=N)'" in error.value.fix


@pytest.mark.parametrize(
    "words",
    [
        "ici_pipeline_parallelism=2 ici_fsdp_parallelism=4 hardware=gpu",
        "python3 -m MaxText.train base.yml ici_pipeline_parallelism=2 ici_fsdp_parallelism=4 hardware=gpu",
    ],
)
def test_overrides_alone_are_no_variables_of_a_shell(words: str) -> None:
    expected = [("", "maxtext", 8, {"dp": 4, "pp": 2})]
    assert sizes(words) == expected
    for hint in (None, "maxtext"):
        (mesh,) = meshes_of(read_launch(words.split(), framework=hint), Asked())
        walk = mesh.layout.reading.walk
        assert (walk("dp").size, walk("pp").size) == (4, 2)


TRT_FILE = """
tensor_parallel_size: 8
moe_expert_parallel_size: 8
enable_attention_dp: true
cuda_graph_config: {enable_padding: true, max_batch_size: 64}
kv_cache_config: {enable_block_reuse: false, free_gpu_memory_fraction: 0.8, tokens_per_block: 64, dtype: fp8}
attention_dp_config: {enable_balance: true}
scheduler_config: {capacity_scheduler_policy: MAX_UTILIZATION}
torch_compile_config: null
batch_wait_timeout_ms: 0
print_iter_log: true
stream_interval: 20
num_postprocess_workers: 4
allreduce_strategy: %s
"""


def test_settings_of_tensorrt_llm_that_shape_nothing_pass() -> None:
    (mesh,) = meshes(TRT_FILE % "AUTO", "extra.yaml")
    assert mesh.layout.unknown_flags == ()
    assert "not_modelled" not in codes(TRT_FILE % "AUTO", "extra.yaml")
    assert "not_modelled" in codes(TRT_FILE % "MNNVL", "extra.yaml")
    assert "not_modelled" in codes(
        TRT_FILE.replace("tokens_per_block: 64", "host_cache_size: 1000") % "AUTO", "a.yaml"
    )


def test_settings_of_deepspeed_that_shape_nothing_pass_and_removed_ones_are_named() -> None:
    table = {
        "train_micro_batch_size_per_gpu": "auto", "gradient_clipping": 1.0, "bf16": {"enabled": True},
        "zero_optimization": {
            "stage": 3, "overlap_comm": True, "stage3_gather_16bit_weights_on_model_save": True,
            "stage3_max_live_parameters": 1e9, "sub_group_size": 1e9, "offload_optimizer": {"device": "none"},
            "offload_param": {"device": "none"}, "memory_efficient_linear": False,
        },
        "comms_logger": {"enabled": True}, "compile": {"deepcompile": True}, "data_types": {},
    }  # fmt: skip
    asked = Asked(gpus=8)
    (mesh,) = meshes_of(read_launch(json.dumps(table), filename="ds.json"), asked)
    assert mesh.layout.unknown_flags == ()
    assert "not_modelled" not in {note.code for note in mesh.layout.warnings}
    table |= {"amp": {"enabled": True}}
    (mesh,) = meshes_of(read_launch(json.dumps(table), filename="ds.json"), asked)
    assert mesh.layout.unknown_flags == ("amp.enabled",)


def test_arguments_of_a_trainer_under_deepspeed_pass() -> None:
    line = (
        "deepspeed --num_gpus 8 --master_port 29500 train.py --deepspeed --zero-stage 2 --output_dir o "
        "--per_device_train_batch_size 1 --save_total_limit 2 --dataloader_num_workers 4 --tf32 True "
        "--gradient_checkpointing True --group_by_length False"
    )
    (mesh,) = meshes(line)
    assert mesh.layout.unknown_flags == ()
    assert mesh.layout.world_size == 8


WRITTEN = "echo -e 'enable_attention_dp: true\\nprint_iter_log: true' > extra.yml\n"
SERVE = "trtllm-serve m --tp_size 4 --extra_llm_api_options ./extra.yml"


@pytest.mark.parametrize(
    "script",
    [
        WRITTEN + f'srun --ntasks 4 bash -c "{SERVE}"\n',
        "docker exec box bash -c \"cat <<EOF > /tmp/extra.yml\nenable_attention_dp: true\nEOF\n\"\n"
        f"docker exec box bash -c '{SERVE}'\n",
        f"Text\n\n.. code-block:: bash\n\n    {WRITTEN}    {SERVE}\n",
    ],
    ids=["outside", "inside another", "page"],
)  # fmt: skip
def test_a_file_that_the_text_writes_is_read_wherever_it_is_named(script: str) -> None:
    assert sizes(script) == [("", "tensorrt-llm", 4, {"dp": 4})]


def test_three_dashes_make_no_flag() -> None:
    (mesh,) = meshes("python3 -m sglang.launch_server --model m --tp 8 ----dist-init-addr h:1 --nnodes 1")
    assert mesh.layout.unknown_flags == ("----dist-init-addr",)


def test_a_systemd_unit() -> None:
    unit = (
        "[Unit]\nDescription=Serves, doesn't it\n\n[Service]\nExecStartPre=-/usr/bin/docker rm x\n"
        "ExecStart=/usr/bin/docker run --gpus all \\\n  --name x img \\\n  vllm serve m -tp 4\n"
        "ExecStop=/usr/bin/docker stop x\n"
    )
    assert sizes(unit, "serve.service") == [("", "vllm", 4, {"tp": 4})]


def test_a_word_around_what_a_branch_decides_is_read_each_way() -> None:
    script = 'if [ "$G" = a ]; then D=1; else D=4; fi\nRUN=run_$D\n'
    line = "python3 -m MaxText.train b.yml hardware=gpu ici_fsdp_parallelism=2 "
    with pytest.raises(ConfigError, match="decided by a branch"):
        sizes(f"{script}{line}ici_data_parallelism=${{D}}", "a.sh")
    assert sizes(f"{script}{line}run_name=$RUN", "a.sh") == [("", "maxtext", 2, {"dp": 2})]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run_recipe.py --model gpt_oss_20b --mode pretrain -mb 1 -tp 2 -ep 4", {"tp": 2, "dp": 4, "ep": 4}),
        ("run_recipe.py --model llama3_8b --mode pretrain -tp 2", {"tp": 2, "cp": 2, "dp": 2}),
        ("pretrain_llama3_8b.py model.tensor_model_parallel_size=4", {"tp": 4, "dp": 2}),
    ],
)
def test_scripts_of_megatron_bridge(line: str, expected: dict[str, int]) -> None:
    assert sizes(f"torchrun --nproc_per_node=8 {line}")[0][3] == expected
    assert {"config_file_not_read", "recipe_read"} & codes(f"torchrun --nproc_per_node=8 {line}")


def test_a_script_of_a_recipe_alone_is_no_plain_megatron() -> None:
    with pytest.raises(ConfigError, match="a recipe or a file decides"):
        sizes("torchrun --nproc_per_node=8 examples/recipes/llama/pretrain_llama3_8b.py")


def test_verl_rollouts_by_sglang_are_engines_side_by_side() -> None:
    found = sizes(
        VERL + "actor_rollout_ref.actor.fsdp_config.fsdp_size=-1 actor_rollout_ref.rollout.name=sglang "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=2"
    )
    assert found[1] == ("rollout", "sglang", 16, {"tp": 2, "dp": 8})


def test_engines_beside_ms_swift_are_said() -> None:
    line = "NPROC_PER_NODE=4 megatron rlhf --rlhf_type grpo --use_vllm true --vllm_mode colocate"
    assert "not_modelled" in codes(line)
