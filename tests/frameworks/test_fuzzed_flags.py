"""Whatever is pasted: a layout or a ConfigError, never a traceback, and never a large allocation."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from draws import draws
from frameworks.drawn_flags import words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer.errors import ConfigError
from tracer.frameworks import FRAMEWORKS, from_flags, from_line
from tracer.frameworks.config_files import parse_config
from tracer.model.spec import ModelSpec

MODELS = [
    None,
    ModelSpec(layers=6, hidden=512, heads=16, kv_heads=4, experts=24, top_k=2, expert_hidden=64),
    ModelSpec(
        layers=61, hidden=7168, heads=128, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128,
        experts=256, top_k=8, expert_hidden=2048, expert_groups=8, top_groups=4,
    ),
    ModelSpec(layers=4, hidden=64, heads=4),
]  # fmt: skip
#: A launch is a whole scenario.
FEWER = settings(max_examples=draws(60), suppress_health_check=[HealthCheck.too_slow])


def outcome(make: Any) -> dict[str, Any] | None:
    """The layout as JSON, or None where it is refused; anything else raises."""
    try:
        layout = make()
        table: dict[str, Any] = layout.to_dict()
    except ConfigError as error:
        assert error.field and error.rule and error.fix
        assert len(str(error)) < 4000
        return None
    assert str(layout)
    json.dumps(table)
    return table


@pytest.mark.parametrize("name", FRAMEWORKS)
@FEWER
@given(data=st.data())
def test_fuzzed_flags(name: str, data: st.DataObject) -> None:
    line = data.draw(words(name))
    gpus = data.draw(st.sampled_from([None, 1, 2, 4, 6, 8, 8, 16, 16, 32, 64, 96]))
    model = data.draw(st.sampled_from(MODELS))
    version = data.draw(st.sampled_from([None, None, None, "1.1.0", "0.2", "old", "x"]))
    strict = data.draw(st.sampled_from([False, False, True]))
    per_node = data.draw(st.sampled_from([None, 1, 4, 8]))
    table = outcome(
        lambda: from_flags(
            name, line, gpus=gpus, gpus_per_node=per_node, version=version, model=model, strict=strict
        )
    )
    if table is None:
        return
    everyone = list(range(table["world_size"]))
    for groups in table["groups"].values():
        assert sorted(rank for group in groups for rank in group) == everyone
    for group_name, groups in table["framework_groups"].items():
        if group_name not in ("embd", "pos_embd"):
            assert sorted(rank for group in groups for rank in group) == everyone, group_name
    held = {rank for ranks in table["expert_ranks"].values() for rank in ranks}
    assert held in (set(), set(everyone)) or len(table["expert_ranks"]) < len(everyone)
    if name != "maxtext":  # its axes have a part in a slice and one between, with others in the middle
        assert "not_expressible" not in {note["code"] for note in table["warnings"]}


LINE_PIECES = st.sampled_from(
    [
        "torchrun", "--nnodes", "2", "--nproc-per-node", "8", "vllm", "serve", "-tp", "4", "deepspeed",
        "\\\n", "\n", "'", '"', "$X", "X=3", "export", "python", "-m", "sglang.launch_server",
        "--tp=8", "#", "|", "&&", ";", "srun", "-N", "mpirun", "-n", "--mca", "pretrain_gpt.py", "(",
        ")", "A=(", "trtllm-serve", "--tp_size",
    ]
)  # fmt: skip


@FEWER
@given(pieces=st.lists(st.one_of(LINE_PIECES, LINE_PIECES, st.text(max_size=8)), max_size=14))
def test_fuzzed_lines(pieces: list[str]) -> None:
    outcome(lambda: from_line(" ".join(pieces), gpus=None))
    outcome(lambda: from_flags("vllm", " ".join(pieces), gpus=16))
    outcome(lambda: from_flags("megatron", pieces, gpus=16))


TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "parallelism", "tp", "dp", "pp", "tensor_parallel_size", "cp_config", "cp_type",
                    "x", "tensor_parallel", "autotp_size", "data_parallel_shard_degree",
                    "expert_parallel",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize("name", FRAMEWORKS)
@FEWER
@given(tree=st.dictionaries(st.text(max_size=5), TREES, max_size=3), nested=TREES)
def test_fuzzed_files(name: str, tree: dict[str, Any], nested: object) -> None:
    for tables in (tree, nested, {"parallelism": nested}, {"tensor_parallel_size": nested}):
        if isinstance(tables, dict):
            outcome(lambda tables=tables: from_flags(name, [], gpus=8, file=tables))


@FEWER
@given(text=st.text(max_size=60), suffix=st.sampled_from([".yaml", ".toml", ".json"]))
def test_fuzzed_file_texts(text: str, suffix: str) -> None:
    try:
        parse_config(text, suffix)
    except ConfigError as error:
        assert error.fix


HUGE = {
    "megatron": "--tensor-model-parallel-size 1000 --expert-model-parallel-size 1000000",
    "vllm": "-tp 8 -dp 125000000 --enable-expert-parallel",
    "sglang": "--tp-size 1000000000 --ep-size 1000",
    "tensorrt-llm": "--tp_size 1000000 --pp_size 1000 --ep_size 1000",
    "torchtitan": "--parallelism.tensor_parallel_degree 8 --parallelism.expert_parallel_degree 1000",
    "deepspeed": "--num-mp 8 --ep-size 125000000",
    "nanotron": "--tp 1000 --pp 1000",
    "accelerate": "--parallelism-config-tp-size 8 --parallelism-config-dp-shard-size 125000000",
    "maxtext": "--ici-tensor-parallelism 8 --ici-expert-parallelism 1000",
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_thousand_million_gpus_cost_nothing_until_listed(name: str) -> None:
    tracemalloc.start()
    layout = from_flags(name, HUGE[name], gpus=10**9)
    text = str(layout)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert layout.world_size == 10**9
    assert "1000000000 GPUs" in text
    assert peak < 20_000_000
    with pytest.raises(ConfigError, match="ranks whose groups can all be listed"):
        layout.to_dict()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_more_gpus_than_that_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="gpus"):
        from_flags(name, [], gpus=10**9 + 1)


def test_many_words_and_deep_tables_are_refused() -> None:
    with pytest.raises(ConfigError, match="are more than 20000 words"):
        from_flags("vllm", "-tp 2 " * 20_000, gpus=2)
    wide = {f"key{i}": i for i in range(30_000)}
    with pytest.raises(ConfigError, match="is too large"):
        from_flags("vllm", [], gpus=2, file=wide)
    lines = [f"k{i}: &b{i + 1} {{p: *b{i}, q: *b{i}}}" for i in range(40)]
    bomb = "\n".join(["a: &b0 [x, x]", *lines])
    with pytest.raises(ConfigError, match="is too large"):
        from_flags("vllm", [], gpus=2, file=parse_config(bomb, ".yaml"))


@pytest.mark.parametrize(
    ("name", "flags", "message"),
    [
        ("sglang", "--tp 2 --ep-num-redundant-experts 1000000000", "physical experts"),
        ("vllm", "-dp 2 -ep --enable-eplb --num-redundant-experts 1000000000", "physical experts"),
        ("megatron", "--hierarchical-context-parallel-sizes" + " 1" * 70, "are more than 16 levels"),
        ("megatron", "--hierarchical-context-parallel-sizes" + " 1" * 5000, "are more than 4096"),
        (
            "trtllm",
            '--dwdp_config \'{"dwdp_size": 2, "num_experts_per_worker": 1000000000}\'',
            "local ranges of 1000000000 experts",
        ),
    ],
)
def test_sizes_that_would_fill_memory_are_refused(name: str, flags: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_flags(name, flags, gpus=2, model=MODELS[1])
