"""One line or manifest each: wrappers, roles, tools around a framework, what is refused, what is said."""

from __future__ import annotations

import json

import pytest

from tracer.data import FOLDER
from tracer.errors import ConfigError
from tracer.frameworks import FRAMEWORKS, from_flags, from_line
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.opening import Asked, meshes_of
from tracer.frameworks.other_flags import plain
from tracer.frameworks.registry import framework

MEGATRON = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4"


def sizes(text: str, **settings: str) -> list[tuple[str, str, int, dict[str, int]]]:
    """Role, framework, GPUs and sizes above 1 of every mesh."""
    found = []
    for mesh in meshes_of(read_launch(text, settings=settings), Asked()):
        walk = mesh.layout.reading.walk
        axes = {axis: walk(axis).size for axis in ("tp", "cp", "dp", "pp", "ep") if walk(axis).size > 1}
        found.append((mesh.role, mesh.layout.framework, mesh.layout.world_size, axes))
    return found


@pytest.mark.parametrize(
    ("text", "framework_name", "gpus", "axes"),
    [
        (
            "A=(--nproc_per_node 8 --nnodes 2)\nM=(" + MEGATRON + ")\ntorchrun ${A[@]} train.py ${M[@]}",
            "megatron", 16, {"tp": 2, "dp": 2, "pp": 4},
        ),
        (
            'A="--nproc_per_node 8 --nnodes 2"\nM="' + MEGATRON + '"\ntorchrun $A train.py $M',
            "megatron", 16, {"tp": 2, "dp": 2, "pp": 4},
        ),
        (
            "TP=2\ntorchrun --nproc-per-node 16 pretrain_gpt.py --pipeline-model-parallel-size ${PP:-4} "
            "--tensor-model-parallel-size $((TP*2))",
            "megatron", 16, {"tp": 4, "pp": 4},
        ),
        (
            'srun --ntasks 16 --ntasks-per-node 8 bash -c "launcher trtllm-serve M --tp_size 16 --ep_size 4"',
            "tensorrt-llm", 16, {"tp": 16, "ep": 4},
        ),
        (
            "torchrun --nproc-per-node 8 --nnodes 2 t.py model.tensor_model_parallel_size=4 "
            "model.expert_model_parallel_size=4",
            "megatron", 16, {"tp": 4, "dp": 4, "ep": 4},
        ),
        (
            "NPROC_PER_NODE=8 megatron sft --tensor_model_parallel_size 2 --expert_model_parallel_size 8",
            "megatron", 8, {"tp": 2, "dp": 4, "ep": 8},
        ),
        ("./run_train.sh --parallelism.tensor_parallel_degree 4", "torchtitan", 8, {"tp": 4, "dp": 2}),
        ("sudo -E env A=1 nohup stdbuf -oL vllm serve m -tp 2 > log &", "vllm", 2, {"tp": 2}),
        ("uv run --with vllm --python 3.12 vllm serve m -tp 2", "vllm", 2, {"tp": 2}),
        ("podman run --rm -it --gpus all vllm/vllm-openai --model m -tp 4", "vllm", 4, {"tp": 4}),
        ("apptainer exec --nv x.sif python -m sglang.launch_server --tp 4", "sglang", 4, {"tp": 4}),
        ("timeout 3600 numactl -N 0 -m 0 trtllm-serve m --tp_size 4", "tensorrt-llm", 4, {"tp": 4}),
        ("ssh gpu1 'cd /w && vllm serve m -tp 2'", "vllm", 2, {"tp": 2}),
        ("./with_env.sh python3 -m sglang.launch_server --tp 2", "sglang", 2, {"tp": 2}),
        ("srun -N2 --ntasks-per-node=1 vllm serve m -tp 8 -dp 2", "vllm", 16, {"tp": 8, "dp": 2}),
        ("bash -lc 'bash -c \"vllm serve m -tp 2\"'", "vllm", 2, {"tp": 2}),
        ("bash <<'EOF'\nvllm serve m -tp 2\nEOF", "vllm", 2, {"tp": 2}),
        ("sbatch --nodes 1 --wrap 'vllm serve m -tp 2'", "vllm", 2, {"tp": 2}),
        ("```bash\nvllm serve m -tp 2\n```", "vllm", 2, {"tp": 2}),
        ("It's how:\n```\n$ vllm serve m \\\n    -tp 2\n```\nDone, isn't it?", "vllm", 2, {"tp": 2}),
        ("vllm serve <model> -tp 2", "vllm", 2, {"tp": 2}),
        (
            "accelerate launch --num_processes 8 --use_fsdp --parallelism_config_tp_size 2 "
            "--parallelism_config_dp_shard_size 4 train.py",
            "accelerate", 8, {"tp": 2, "dp": 4},
        ),
        (
            "python3 -m MaxText.train base.yml ici_fsdp_parallelism=4 ici_tensor_parallelism=2 "
            "dcn_data_parallelism=2 hardware=gpu",
            "maxtext", 16, {"tp": 2, "dp": 8},
        ),
        ("if [ $# -gt 5 ]; then echo usage; exit 1; fi\nvllm serve m -tp 2", "vllm", 2, {"tp": 2}),
        ("if [ $# -lt 1 ]; then echo usage; exit 1; fi\nvllm serve m -tp 2", "vllm", 2, {"tp": 2}),
        (
            "cat > run.sh <<EOF\ntorchrun --nproc-per-node 8 pretrain_gpt.py --context-parallel-size 2\nEOF\n"
            "bash run.sh",
            "megatron", 8, {"cp": 2, "dp": 4},
        ),
        ("deepspeed --include h1:0,1@h2:0,1 train.py --deepspeed d.json", "deepspeed", 4, {"dp": 4}),
        (
            "python3 -m dynamo.trtllm --model-path m --tensor-parallel-size 8 --expert-parallel-size 8",
            "tensorrt-llm", 8, {"tp": 8, "ep": 8},
        ),
        ("vllm serve m\n  --tensor-parallel-size 2 \\\n# -pp 4 \\\n  --port 1", "vllm", 2, {"tp": 2}),
    ],
)  # fmt: skip
def test_a_launch_of_one_mesh(text: str, framework_name: str, gpus: int, axes: dict[str, int]) -> None:
    assert sizes(text) == [("", framework_name, gpus, axes)]


def test_verl_has_two_meshes_over_the_same_gpus() -> None:
    text = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 "
        "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=8 "
        "actor_rollout_ref.actor.megatron.expert_model_parallel_size=4 "
        "actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=1 "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=8 trainer.nnodes=4 trainer.n_gpus_per_node=8"
    )
    assert sizes(text) == [
        ("actor", "megatron", 32, {"tp": 4, "pp": 8, "ep": 4}),
        ("rollout", "vllm", 32, {"tp": 8, "dp": 4}),
    ]
    # verl's own default of expert TP is Megatron's: the TP size.
    with pytest.raises(
        ConfigError, match=r"is not divisible by .* \(128\); try --expert-tensor-parallel-size 1"
    ):
        sizes(text.replace("actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=1 ", ""))


def test_verl_with_fsdp_lays_ulysses_ranks_together() -> None:
    text = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 "
        "actor_rollout_ref.actor.fsdp_config.fsdp_size=4 trainer.nnodes=1 trainer.n_gpus_per_node=8"
    )
    (mesh,) = meshes_of(read_launch(text), Asked())
    groups = mesh.layout.framework_groups
    assert groups["sp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert groups["dp_replicate"] == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_slime_trains_and_generates() -> None:
    text = (
        "ray job submit -- python3 train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 "
        "--tensor-model-parallel-size 4 --rollout-num-gpus-per-engine 8 --sglang-attn-dp-size 4"
    )
    assert sizes(text) == [
        ("actor", "megatron", 16, {"tp": 4, "dp": 4}),
        ("rollout", "sglang", 8, {"tp": 2, "dp": 4}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m -tp 2 -dp 4 -dpl 2 -dpa h\nvllm serve m --headless -tp 2 -dp 4 -dpl 2 -dpr 2 -dpa h",
        'for r in 0 1; do ssh n$r "sglang serve --tp 8 --nnodes 2 --node-rank $r" & done',
        "vllm serve m -tp 8 --port 1 &\nvllm serve m -tp 8 --port 2 --tensor-parallel-size=8",
    ],
)
def test_commands_of_one_mesh_count_once(text: str) -> None:
    (mesh,) = meshes_of(read_launch(text), Asked())
    assert (mesh.commands, mesh.layout.world_size) == (2, 8)


def test_two_pools_by_their_roles() -> None:
    text = (
        "sglang serve --disaggregation-mode prefill --tp 4 &\n"
        "sglang serve --disaggregation-mode decode --tp 4 &\n"
        "python -m sglang_router.launch_router --pd-disaggregation"
    )
    assert [mesh[0] for mesh in sizes(text)] == ["prefill", "decode"]
    (note,) = [note for note in from_line(text).warnings if note.code == "more_meshes"]
    assert "decode (4 GPUs)" in note.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "MODULE=llama3 CONFIG=llama3_70b ./run_train.sh",
            "CONFIG='llama3_70b' is an entry of torchtitan's reg",
        ),
        (
            "torchrun --nproc-per-node 8 -m torchtitan.train --module a --config b",
            "is an entry of torchtitan's reg",
        ),
        ("CONFIG_FILE=x.toml ./run_train.sh", "names a file that sets the sizes, and it is not here"),
        ("vllm serve --config x.yaml", "--config='x.yaml' names a file that sets the sizes"),
        ("torchrun --nproc-per-node 8 run_train.py --config-file c.yaml", "names a file that sets the sizes"),
        ("accelerate launch --config_file a.yaml train.py", "names a file that sets the sizes"),
        ("trtllm-serve disaggregated -c d.yaml", "is the file with both pools, and it is not here"),
        (
            "python a.py actor_rollout_ref.actor.strategy=megatron",
            "recognised as verl, but no key that shapes",
        ),
        ("megatron sft --tensor_model_parallel_size 2", r"takes \$NPROC_PER_NODE"),
        ("git clone https://x/vllm && pip install vllm && cd vllm", "does not say which framework"),
        ("docker pull vllm/vllm-openai", "does not say which framework"),
        ("lmdeploy serve api_server m --tp 8", "line='lmdeploy' does not say which framework"),
        ("accelerate launch --num_processes 8 --use_megatron_lm t.py", "Megatron-LM lays the ranks out"),
        ("deepspeed --hostfile=h --num_gpus 8 t.py", "add --gpus N"),
    ],
)
def test_never_a_confident_guess(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sizes(text)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_file_without_a_shaping_key_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="and none of them shapes a mesh"):
        from_flags(name, [], gpus=8, file={"nothing_that_is_known": 1})


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_lists_its_other_flags(name: str) -> None:
    known = framework(name)
    spellings = {plain(spelling) for flag in known.flags for spelling in flag.spellings}
    others = known.others
    assert others.version and others.read_on
    assert others.shapes_nothing and others.not_modelled
    assert not spellings & others.shapes_nothing
    assert not spellings & others.not_modelled.keys()
    assert not others.shapes_nothing & others.not_modelled.keys()


def test_other_flags_are_passed_over_said_or_unknown() -> None:
    layout = from_flags("vllm", "-tp 2 --port 1 --max_model_len 8 --quantization awq --foo 1")
    assert layout.unknown_flags == ("--foo",)
    (note,) = [note for note in layout.warnings if note.code == "not_modelled"]
    assert note.message == "--quantization awq is not modelled: the trip lacks weights in that format"
    with pytest.raises(ConfigError, match="--quantization is not modelled"):
        from_flags("vllm", "-tp 2 --quantization awq", strict=True)
    assert from_flags("vllm", "-tp 2 --port 1", strict=True).world_size == 2


def test_sglang_partition_of_layers() -> None:
    from tracer.model.spec import ModelSpec

    model = ModelSpec(layers=61, hidden=64, heads=4)
    line = "SGLANG_PP_LAYER_PARTITION=10,17,17,17 python -m sglang.launch_server --pp-size 4"
    assert from_flags("sglang", line, model=model).scenario.plan.stage_layers == (10, 17, 17, 17)
    (note,) = [note for note in from_line(line).warnings if note.code == "stage_layers_given"]
    assert "10, 17, 17, 17" in note.message
    with pytest.raises(ConfigError, match=r"len\(partitions\)=4 does not match pp_size=2"):
        from_line(line.replace("--pp-size 4", "--pp-size 2"))
    even = from_flags("sglang", "--pp-size 4", model=model)
    assert even.scenario.plan.stage_layers == (15, 15, 15, 16)


def test_manifests_say_what_they_grant() -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: v\n    image: vllm/vllm-openai\n"
        '    args: ["--tensor-parallel-size=8"]\n    resources: {limits: {nvidia.com/gpu: 4}}\n'
    )
    (note,) = [note for note in from_line(pod).warnings if note.code == "more_than_granted"]
    assert "takes 8 GPUs and this manifest's pods have 4" in note.message
    (note,) = [n for n in from_line(pod.replace("=8", "=2")).warnings if n.code == "granted_gpus_idle"]
    assert "have 4 GPUs and the launch takes 2" in note.message


POD = """apiVersion: apps/v1
kind: StatefulSet
spec:
  replicas: 2
  template:
    spec:
      containers:
      - name: s
        image: lmsysorg/sglang
        command: [python3, -m, sglang.launch_server]
        args: [--tp, "$(TP)", --nnodes, "2", --node-rank, "$(POD_INDEX)"]
        env: [{name: TP, value: "16"}]
        resources: {limits: {nvidia.com/gpu: "8"}}
"""


def test_references_of_a_manifest_are_filled_or_asked_for() -> None:
    layout = from_line(POD)
    assert layout.world_size == 16
    assert "more_than_granted" not in {note.code for note in layout.warnings}
    with pytest.raises(ConfigError, match=r"--tp-size='\$\{TP\}' takes \$TP, .*add --set TP=N"):
        from_line(POD.replace("name: TP", "name: OTHER"))
    assert from_line(POD.replace("name: TP", "name: OTHER"), settings={"TP": "16"}).world_size == 16


def test_a_recipe_beside_overrides_is_said() -> None:
    line = "torchrun --nproc_per_node=8 run.py --recipe llama3_8b model.tensor_model_parallel_size=2"
    (note,) = [note for note in from_line(line).warnings if note.code == "config_file_not_read"]
    assert "--recipe" in note.message


def rank_of(coordinates: dict[str, int], order: list[tuple[str, int]]) -> int:
    """The row-major rule that PyTorch's DeviceMesh documents, the last dimension fastest."""
    rank = 0
    for name, size in order:
        rank = rank * size + coordinates[name]
    return rank


def test_accelerate_is_a_row_major_device_mesh() -> None:
    order = [("dp_replicate", 2), ("dp_shard", 3), ("cp", 2), ("sp", 1), ("tp", 2)]
    flags = " ".join(f"--parallelism_config_{name}_size {size}" for name, size in order)
    groups = from_flags("accelerate", f"{flags} --num_processes 24").framework_groups
    base = dict.fromkeys((name for name, _ in order), 0)
    for name, size in order:
        expected = [rank_of({**base, name: place}, order) for place in range(size)]
        assert expected in groups[name]
    both = [rank_of({**base, "dp_shard": s, "cp": c}, order) for s in range(3) for c in range(2)]
    assert sorted(both) in [sorted(group) for group in groups["dp_shard_cp"]]


@pytest.mark.parametrize(
    ("flags", "gpus", "message"),
    [
        ("--parallelism-config-cp-size 2 --parallelism-config-sp-size 2", 4, "mutually exclusive"),
        (
            "--parallelism-config-tp-size 2 --parallelism-config-dp-replicate-size 4",
            8,
            "pure data parallelism",
        ),
        (
            "--parallelism-config-tp-size 2 --parallelism-config-dp-shard-size 2",
            8,
            "does not match num_processes",
        ),
        ("--use-fsdp --parallelism-config-tp-size 8", 8, "no dimension for FSDP to shard"),
        ("--parallelism-config-sp-size 3", 8, "is not divisible by sequence_parallel_size 3"),
    ],
)
def test_accelerate_refuses(flags: str, gpus: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_flags("accelerate", flags, gpus=gpus)


def test_maxtext_puts_slices_outside_and_the_last_axis_inside() -> None:
    groups = from_flags(
        "maxtext",
        "--ici-fsdp-parallelism 2 --ici-tensor-parallelism 2 --ici-expert-parallelism 2 "
        "--dcn-data-parallelism 2 --hardware gpu",
    ).framework_groups
    assert groups["expert"][0] == [0, 1]
    assert groups["tensor"][0] == [0, 2]
    assert groups["fsdp"][0] == [0, 4]
    assert groups["data"][0] == [0, 8]


@pytest.mark.parametrize(
    ("flags", "gpus", "message"),
    [
        ("--ici-fsdp-parallelism 4 --dcn-data-parallelism 1", 8, "does not match the product of the ICI"),
        ("--ici-tensor-parallelism -1", 8, "more than one ICI parallelism axis"),
        ("--ici-fsdp-parallelism 0", 8, "must be -1 or at least 1"),
        ("--custom-mesh-and-rule ep-as-cp", 8, "names a file with axes of its own"),
    ],
)
def test_maxtext_refuses(flags: str, gpus: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_flags("maxtext", flags, gpus=gpus)


def test_a_known_recipe_gives_the_sizes_that_no_override_gives() -> None:
    """Megatron-Bridge's own Llama-3 8B recipe has CP 2; the override goes before the recipe's TP."""
    line = "torchrun --nproc_per_node=8 run_recipe.py --recipe llama3_8b_pretrain_config"
    layout = from_line(f"{line} model.tensor_model_parallel_size=2")
    assert [layout.reading.walk(axis).size for axis in ("tp", "cp", "dp")] == [2, 2, 2]
    (note,) = [note for note in layout.warnings if note.code == "recipe_read"]
    assert "context_parallel_size 2" in note.message
    assert [from_line(line).reading.walk(axis).size for axis in ("tp", "cp", "dp")] == [1, 2, 4]
    with pytest.raises(ConfigError, match=r"recognised as NeMo, but no key that shapes a mesh"):
        from_line("nemo llm pretrain --factory my_own_recipe", gpus=1024)


def test_every_recipe_of_the_table_is_laid_out_or_refused_by_its_rule() -> None:
    table = json.loads((FOLDER / "recipes.json").read_text(encoding="utf-8"))
    assert len(table["recipes"]) > 100
    for name, recipe in table["recipes"].items():
        sizes = [recipe.get(f"{axis}_model_parallel_size") or 1 for axis in ("tensor", "pipeline", "expert")]
        world = sizes[0] * sizes[1] * sizes[2] * (recipe.get("context_parallel_size") or 1)
        line = f"torchrun --nproc_per_node {world} run.py --recipe {name}"
        if (
            name == "glm45_355b_pretrain_config"
        ):  # its layers do not divide by its stages, and it lays out no others
            with pytest.raises(ConfigError, match=r"number of layers \(92\) should be divisible"):
                from_line(line)
            continue
        layout = from_line(line)
        for axis, size in (("tp", sizes[0]), ("pp", sizes[1]), ("ep", sizes[2])):
            assert layout.reading.walk(axis).size == size, (name, axis)
