"""ModelSpec: defaults, layer questions, round trip, and an error for every rule."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.errors import ConfigError
from tracer.model.router_kind import RouterKind
from tracer.model.spec import ModelSpec
from tracer.model.weight_format import WeightFormat, stored_bytes

SIX_CUTS = {
    "layers": 8, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128,
    "experts": 32, "top_k": 2, "expert_hidden": 2048, "vocab": 128000,
}  # fmt: skip
MLA = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
BAD_INTEGERS = [0, -1, True, 1.5, float("nan"), float("inf"), "8", [8], 10**40]


def test_only_layers_is_required_and_absent_fields_are_none() -> None:
    spec = ModelSpec.from_dict({"layers": 3})
    assert (spec.hidden, spec.heads, spec.kv_heads, spec.head_dim, spec.experts, spec.router) == (None,) * 6
    assert (spec.dense_layers, spec.shared_experts, spec.tie_embeddings, spec.left_out) == (0, 0, False, ())


def test_defaults_that_follow_from_other_fields() -> None:
    spec = ModelSpec(layers=2, hidden=512, heads=8, experts=4, expert_hidden=64, shared_experts=2)
    assert (spec.kv_heads, spec.head_dim, spec.v_head_dim, spec.shared_hidden) == (8, 64, 64, 128)
    assert ModelSpec(layers=2, hidden=500, heads=8).head_dim is None
    latent = ModelSpec(layers=2, hidden=512, heads=8, kv_lora_rank=64)
    assert (latent.mla, latent.head_dim, latent.v_head_dim) == (True, None, None)


@pytest.mark.parametrize(
    ("dense", "moe"),
    [
        (0, [1, 2, 3, 4, 5]),
        (3, [4, 5]),
        (5, []),
        ([1, 3, 5], [2, 4]),
        ([5, 1], [2, 3, 4]),
        ([], [1, 2, 3, 4, 5]),
    ],
)
def test_which_layers_have_experts(dense: object, moe: list[int]) -> None:
    spec = ModelSpec.from_dict({"layers": 5, "experts": 4, "dense_layers": dense})
    assert [layer for layer in range(1, 6) if spec.is_moe(layer)] == moe
    assert spec.moe_layers == len(moe)


def test_without_experts_every_layer_is_dense() -> None:
    spec = ModelSpec(layers=5)
    assert spec.moe_layers == 0
    assert not any(spec.is_moe(layer) for layer in range(1, 6))


@pytest.mark.parametrize("layer", [0, 6, -1])
def test_a_layer_that_is_not_there(layer: int) -> None:
    with pytest.raises(ConfigError, match=r"layer=-?\d must be from 1 to 5; try 5"):
        ModelSpec(layers=5, experts=2).is_moe(layer)


def test_kv_values_of_grouped_queries_and_of_mla() -> None:
    assert ModelSpec.from_dict(SIX_CUTS).kv_values_per_token == 2 * 8 * 128
    assert ModelSpec(layers=1, heads=4, head_dim=192, v_head_dim=128).kv_values_per_token == 4 * (192 + 128)
    spec = ModelSpec.from_dict({"layers": 1, "hidden": 7168, "heads": 128} | MLA)
    assert (spec.kv_values_per_token, spec.qk_head_dim) == (576, 192)


def test_a_size_that_is_needed_and_absent_is_named_with_a_reason() -> None:
    with pytest.raises(
        ConfigError, match=r"model.hidden is not given and is needed to send a row; add it to \[model\]"
    ) as caught:
        ModelSpec(layers=1).need("hidden", "send a row")
    assert (caught.value.field, caught.value.got) == ("model.hidden", None)
    with pytest.raises(
        ConfigError, match=r"model.kv_heads is not given and is needed to count the K/V of a token"
    ):
        _ = ModelSpec(layers=1).kv_values_per_token
    with pytest.raises(ConfigError, match=r"model.qk_rope_head_dim is not given and is needed"):
        _ = ModelSpec(layers=1, kv_lora_rank=512).kv_values_per_token


@pytest.mark.parametrize("value", BAD_INTEGERS, ids=repr)
@pytest.mark.parametrize(
    "field", ["layers", "hidden", "heads", "vocab", "experts", "dense_hidden", "kv_lora_rank"]
)
def test_a_size_that_is_not_a_whole_number_above_zero(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"model\.{field}=.* must be a whole number from 1 to "):
        ModelSpec.from_dict({"layers": 4, field: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"layers": 4_097},
            r"model.layers=4097 must be a whole number from 1 to 4096; try 4096",
        ),
        ({"kv_heads": 5}, r"model.kv_heads=5 must divide heads=32; try 4"),
        ({"kv_heads": 64}, r"model.kv_heads=64 must divide heads=32; try 32"),
        ({"top_k": 33}, r"model.top_k=33 must be at most experts=32; try 32"),
        ({"dense_layers": 9}, r"model.dense_layers=9 must be a whole number from 0 to 8; try 8"),
        ({"dense_layers": -1}, r"model.dense_layers=-1 must be a whole number from 0 to 8; try 0"),
        ({"dense_layers": [0]}, r"model.dense_layers=0 must be a whole number from 1 to 8"),
        ({"dense_layers": [9]}, r"model.dense_layers=9 must be a whole number from 1 to 8"),
        ({"dense_layers": [2, 2]}, r"model.dense_layers=\[2, 2\] must name each layer once; write \[2\]"),
        ({"dense_layers": "3"}, r"model.dense_layers='3' must be a whole number"),
        ({"dense_layers": [True]}, r"model.dense_layers=True must be a whole number"),
        ({"shared_experts": -1}, r"model.shared_experts=-1 must be a whole number from 0"),
        ({"shared_hidden": 64}, r"model.shared_hidden=64 needs shared experts; add shared_experts = 1"),
        (
            {"expert_groups": 8},
            r"model.top_groups is not given and must come with expert_groups; add top_groups",
        ),
        ({"top_groups": 8}, r"model.expert_groups is not given and must come with top_groups"),
        ({"expert_groups": 5, "top_groups": 2}, r"model.expert_groups=5 must divide experts=32; try 4"),
        ({"expert_groups": 4, "top_groups": 5}, r"model.top_groups=5 must be at most expert_groups=4; try 4"),
        (
            {"expert_groups": 32, "top_groups": 1},
            r"model.top_k=2 must be at most the experts of the groups kept=1",
        ),
        (
            {"router": "softmax_topc"},
            r"model.router='softmax_topc' must be one of .*did you mean 'softmax_topk'",
        ),
        ({"router": 3}, r"model.router=3 must be one of"),
        ({"routed_scale": float("nan")}, r"model.routed_scale=nan must be a number above 0"),
        ({"routed_scale": 0}, r"model.routed_scale=0 must be a number above 0"),
        ({"routed_scale": "2.5"}, r"model.routed_scale='2.5' must be a number above 0"),
        ({"routed_scale": 10**400}, r"model.routed_scale=.* must be a number above 0"),
        ({"renormalise": 1}, r"model.renormalise=1 must be true or false"),
        ({"tie_embeddings": "no"}, r"model.tie_embeddings='no' must be true or false"),
        ({"weights": "bf61"}, r"model.weights='bf61' must be one of .*did you mean 'bf16'"),
        ({"expert_weights": 4}, r"model.expert_weights=4 must be one of"),
        ({"name": " "}, r"model.name=' ' must be a text that is not blank"),
        ({"source": 3}, r"model.source=3 must be a text"),
        ({"left_out": "vision"}, r"model.left_out='vision' must be a list of texts"),
        ({"q_lora_rank": 8}, r"model.q_lora_rank=8 is a part of MLA, and model.kv_lora_rank is absent"),
        ({"hiden": 4096}, r"model.hiden=4096 is not a known key; did you mean 'hidden'\?"),
        ({"_dense_set": [1]}, r"model._dense_set=\[1\] is not a known key"),
    ],
)
def test_every_rule_names_its_field_and_a_fix(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelSpec.from_dict(SIX_CUTS | change)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_k", 2),
        ("expert_hidden", 8),
        ("shared_experts", 1),
        ("router", "topk_softmax"),
        ("routed_scale", 2.5),
    ],
)
def test_a_field_about_experts_without_experts(field: str, value: object) -> None:
    with pytest.raises(
        ConfigError, match=rf"model.{field}=.* describes experts, and model.experts is absent"
    ):
        ModelSpec.from_dict({"layers": 4, field: value})


@pytest.mark.parametrize("table", [None, [], "model", 3, {1: 2}])
def test_what_is_not_a_table(table: object) -> None:
    with pytest.raises(ConfigError, match=r"model(=.*| is not given and) must be a table of named values"):
        ModelSpec.from_dict(table)  # type: ignore[arg-type]


def test_layers_must_be_given() -> None:
    with pytest.raises(ConfigError, match=r"model.layers is not given and is needed to lay out the model"):
        ModelSpec.from_dict({"hidden": 8, "layers": None})


@st.composite
def tables(draw: st.DrawFn) -> dict[str, object]:
    """A valid [model] table with any subset of the optional fields that fit together."""
    layers, groups, per_group = draw(st.integers(1, 40)), draw(st.integers(1, 8)), draw(st.integers(1, 8))
    kv_heads, share = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    table: dict[str, object] = {"layers": layers, "heads": kv_heads * share, "kv_heads": kv_heads}
    if draw(st.booleans()):
        top_groups = draw(st.integers(1, groups))
        table |= {"experts": groups * per_group, "top_k": draw(st.integers(1, top_groups * per_group))}
        table |= {
            "expert_groups": groups,
            "top_groups": top_groups,
            "expert_hidden": draw(st.integers(1, 99)),
        }
        table |= {"router": draw(st.sampled_from(RouterKind)), "routed_scale": draw(st.floats(0.1, 20))}
        table |= {"shared_experts": draw(st.integers(0, 3)), "renormalise": draw(st.booleans())}
        table |= {"expert_weights": draw(st.sampled_from(WeightFormat))}
    if draw(st.booleans()):
        table |= MLA
    listed = st.lists(st.integers(1, layers), unique=True)
    table |= {"dense_layers": draw(st.integers(0, layers) | listed), "hidden": draw(st.integers(1, 9999))}
    return table | {
        "name": draw(st.none() | st.just("m")),
        "left_out": draw(st.lists(st.just("part"), max_size=1)),
    }


@given(tables())
def test_round_trip_through_json_is_exact(table: dict[str, object]) -> None:
    spec = ModelSpec.from_dict(table)
    again = ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert hash(again) == hash(spec)
    assert again.to_dict() == spec.to_dict()
    assert again.moe_layers == sum(again.is_moe(layer) for layer in range(1, again.layers + 1))


@given(
    st.dictionaries(
        st.sampled_from([*ModelSpec(layers=1).to_dict(), "bogus"]), st.from_type(object) | st.integers()
    )
)
def test_any_table_reads_or_is_refused_with_the_one_error(table: dict[str, object]) -> None:
    try:
        ModelSpec.from_dict(table)
    except ConfigError as error:
        assert error.field.startswith("model")


@given(st.sampled_from(WeightFormat), st.integers(1, 400), st.integers(1, 400))
def test_stored_bytes_grow_with_the_matrix(stored: WeightFormat, rows: int, columns: int) -> None:
    size = stored_bytes(stored, rows, columns)
    assert size >= rows * columns / 2
    assert stored_bytes(stored, rows + 2, columns) > size
    assert stored_bytes(stored, rows, columns + 2) > size


def test_the_vocabulary_imports_only_the_light_part_of_the_standard_library() -> None:
    light = "__future__ collections dataclasses difflib enum functools math sys typing tracer"
    allowed = set(light.split())
    folder = Path(sys.modules["tracer"].__file__ or "").parent
    for name in ("errors", "model/spec", "model/router_kind", "model/weight_format"):
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        modules |= {
            each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names
        }
        assert {module.split(".")[0] for module in modules} <= allowed, name
