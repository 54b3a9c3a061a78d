"""Parameter counts: the totals of every model that ships, published tables, and a plain oracle."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_configs import PATTERNS, Table, configs, stored_data

from tracer.errors import ConfigError
from tracer.model.configs import model_preset, model_preset_names, read_config
from tracer.model.layers import HeadAttention, LatentAttention, MoeFfn
from tracer.model.parameters import count_parameters, expert_bytes, expert_parameters
from tracer.model.spec import ModelSpec
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart, weight_matrices

TOTALS: dict[str, dict[str, int]] = stored_data("model_totals")["models"]
GIB = 2**30


def test_every_model_that_ships_has_a_checked_total() -> None:
    assert sorted([*TOTALS, *stored_data("current_models")["models"]]) == list(model_preset_names())


@pytest.mark.parametrize("name", sorted(TOTALS))
def test_totals_of_the_models_that_ship(name: str) -> None:
    spec, checked = model_preset(name), TOTALS[name]
    count = count_parameters(spec)
    assert count.total == checked["total_params"]
    small = [
        each
        for each in weight_matrices(spec)
        if each.part in (WeightPart.BIASES, WeightPart.INDEXER)
        or each.name in ("q_norm", "k_norm", "index_k_norm")
    ]
    total, active = (
        sum(each.copies * each.elements for each in small),
        sum(each.used * each.elements for each in small),
    )
    assert count.total - total == checked["total_params_no_bias_no_mtp"]
    assert count.active - active == checked["active_params_incl_embed_and_head"]
    assert spec.moe_layers == checked["moe_layers"]
    assert spec.kv_values_per_token == checked["kv_values_per_token_per_layer"]
    assert spec.layers * spec.kv_values_per_token * 2 == checked["kv_bytes_per_token_bf16"]
    if spec.experts is not None:
        assert expert_parameters(spec) == checked["expert_params"]


@pytest.mark.parametrize(
    ("name", "mlp", "attention", "ends", "active", "total", "checkpoint_gib"),
    [
        ("gpt-oss-120b", 114.71e9, 0.96e9, 1.16e9, 5.13e9, 116.83e9, 60.8),
        ("gpt-oss-20b", 19.12e9, 0.64e9, 1.16e9, 3.61e9, 20.91e9, 12.8),
    ],
)
def test_gpt_oss_against_its_published_table(
    name: str, mlp: float, attention: float, ends: float, active: float, total: float, checkpoint_gib: float
) -> None:
    """gpt-oss model card, table 1: unembedding counts as active and embedding does not; biases are in it."""
    count = count_parameters(model_preset(name))
    embedding = count.of(WeightPart.EMBEDDING).total
    assert count.of(WeightPart.EXPERTS).total + count.of(WeightPart.ROUTER).total == pytest.approx(
        mlp, rel=1e-3
    )
    assert count.of(WeightPart.ATTENTION).total == pytest.approx(attention, rel=0.01)
    assert embedding + count.of(WeightPart.LM_HEAD).total == pytest.approx(ends, rel=0.01)
    assert count.active - embedding == pytest.approx(active, rel=0.005)
    assert count.total == pytest.approx(total, rel=1e-3)
    assert count.weight_bytes / GIB == pytest.approx(checkpoint_gib, rel=0.003)


def test_deepseek_v3_against_its_weight_documentation() -> None:
    """README_WEIGHTS.md of DeepSeek-V3: 671B in all; 36.6B active with the head and without the embedding."""
    count = count_parameters(model_preset("deepseek-v3"))
    assert round(count.total / 1e9) == 671
    assert round((count.active - count.of("embedding").active) / 1e9, 1) == 36.6


def test_one_expert_in_store_by_hand() -> None:
    v3, oss = model_preset("deepseek-v3"), model_preset("gpt-oss-120b")
    weights = 3 * 7168 * 2048
    assert expert_bytes(v3) == weights + 3 * 4 * 56 * 16
    assert expert_bytes(dataclasses.replace(v3, expert_weights=None)) == 2 * weights
    assert (
        expert_bytes(dataclasses.replace(v3, expert_weights=None, weights=None), WeightFormat.FP8) == weights
    )
    assert expert_bytes(oss) == 3 * 2880 * (2880 // 2 + 2880 // 32)


def test_fp8_bytes_of_a_latent_by_hand() -> None:
    """kv_a is [576, 7168]: 4.5 blocks of 128 rows have 5 rows of scales."""
    spec = ModelSpec.from_dict(
        {
            "layers": 1,
            "hidden": 7168,
            "heads": 1,
            "vocab": 1,
            "dense_hidden": 1,
            "attention_weights": "fp8_block128",
        }
        | {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    )
    blocks = 2 * 56 + 5 * 56 + 2 * 4 + 56 * 1
    weights = 192 * 7168 + 576 * 7168 + 256 * 512 + 7168 * 128
    assert count_parameters(spec).of(WeightPart.ATTENTION).weight_bytes == weights + 4 * blocks


def test_heads_whose_values_have_a_width_of_their_own() -> None:
    table = {"layers": 1, "hidden": 10, "heads": 4, "kv_heads": 2, "head_dim": 7, "v_head_dim": 3}
    count = count_parameters(ModelSpec.from_dict(table | {"vocab": 1, "dense_hidden": 1}))
    assert count.of(WeightPart.ATTENTION).total == 10 * (4 * 7 + 2 * 7 + 2 * 3 + 4 * 3)


def test_the_parts_of_fp8_v3() -> None:
    count = count_parameters(model_preset("deepseek-v3"))
    for part in (WeightPart.EMBEDDING, WeightPart.LM_HEAD, WeightPart.ROUTER, WeightPart.NORMS):
        assert count.of(part).weight_bytes == 2 * count.of(part).total
    for part in (WeightPart.ATTENTION, WeightPart.DENSE, WeightPart.SHARED, WeightPart.EXPERTS):
        assert 1 < count.of(part).weight_bytes / count.of(part).total < 1.001
    assert sum(each.weight_bytes for each in count.parts) == count.weight_bytes


def test_a_tied_head_is_counted_once() -> None:
    spec = model_preset("llama-3.1-8b")
    tied = count_parameters(dataclasses.replace(spec, tie_embeddings=True))
    assert count_parameters(spec).total - tied.total == 128256 * 4096
    assert (tied.of("lm_head").total, tied.of("lm_head").part) == (0, WeightPart.LM_HEAD)


def test_print_shows_the_table_and_what_is_left_out() -> None:
    text = str(count_parameters(model_preset("deepseek-v3.2")))
    assert "671,877,929,216" in text
    assert "left out: 1 multi-token-prediction layer(s)" in text


@pytest.mark.parametrize("field", ["vocab", "hidden", "heads", "dense_hidden", "expert_hidden", "top_k"])
def test_a_size_the_count_needs_is_named(field: str) -> None:
    table = {"layers": 2, "dense_layers": 1, "hidden": 64, "heads": 4, "vocab": 100, "dense_hidden": 64}
    table |= {"experts": 4, "top_k": 2, "expert_hidden": 32}
    del table[field]
    with pytest.raises(
        ConfigError,
        match=rf"model\.({field}|kv_heads|head_dim) is not given and is needed to count the parameters",
    ):
        count_parameters(ModelSpec.from_dict(table | {"head_dim": 16}))


def plain_count(spec: ModelSpec) -> tuple[int, int]:
    """Total and active parameters by a loop over the layers, with each matrix written out."""
    d, h = spec.hidden or 0, spec.heads or 0
    total = active = (1 if spec.tie_embeddings else 2) * (spec.vocab or 0) * d + d
    for layer in range(1, spec.layers + 1):
        here = 2 * d
        if spec.kv_lora_rank:
            nope, rope, v = spec.qk_nope_head_dim or 0, spec.qk_rope_head_dim or 0, spec.v_head_dim or 0
            r, q = spec.kv_lora_rank, spec.q_lora_rank
            here += (d * q + q + q * h * (nope + rope)) if q else d * h * (nope + rope)
            here += d * (r + rope) + r + r * h * (nope + v) + h * v * d
            mixer = spec.kind_of(layer).attention
            assert isinstance(mixer, LatentAttention)
            heads, width = mixer.index_heads, mixer.index_dim
            here += heads and heads * width * (q or d) + width * d + heads * d + 2 * width
        else:
            size, kv = spec.head_dim or 0, spec.kv_heads or 0
            here += 2 * d * h * size + 2 * d * kv * size
            mixer = spec.kind_of(layer).attention
            assert isinstance(mixer, HeadAttention)
            here += 2 * size * (mixer.qk_norm == "head") + (h + 2 * kv) * size * mixer.qkv_bias
            here += d * mixer.out_bias + h * mixer.sinks
        routed = picked = 0
        if spec.is_moe(layer):
            one = 3 * d * (spec.expert_hidden or 0)
            here += (
                d * (spec.experts or 0) + 3 * d * (spec.shared_hidden or 0) + (d if spec.shared_gate else 0)
            )
            part = spec.kind_of(layer).feed_forward
            assert isinstance(part, MoeFfn)
            here += (spec.experts or 0) * part.router_bias
            one += (2 * (spec.expert_hidden or 0) + d) * part.bias
            routed, picked = (spec.experts or 0) * one, (spec.top_k or 0) * one
        else:
            here += 3 * d * (spec.dense_hidden or 0)
        total, active = total + here + routed, active + here + picked
    return total, active


FAMILY_CONFIGS = st.sampled_from(sorted(PATTERNS)).flatmap(configs)


@given(FAMILY_CONFIGS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_random_configs_count_as_the_plain_loop_does(config: Table) -> None:
    spec = read_config(config).spec
    count = count_parameters(spec)
    assert (count.total, count.active) == plain_count(spec)
    assert 0 < count.active <= count.total
    assert count.weight_bytes >= count.total / 2


@given(FAMILY_CONFIGS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_counts_grow_with_every_size(config: Table) -> None:
    spec = read_config(config).spec
    if spec.layer_kinds:
        return
    before = count_parameters(spec)
    for field in ("layers", "vocab", "dense_hidden", "expert_hidden", "kv_lora_rank", "v_head_dim"):
        value = getattr(spec, field)
        if value is None:
            continue
        after = count_parameters(dataclasses.replace(spec, **{field: value + 1}))
        assert after.total >= before.total
        assert after.active >= before.active
    more = count_parameters(dataclasses.replace(spec, layers=spec.layers + 1))
    assert more.total > before.total


@given(FAMILY_CONFIGS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_more_experts_cost_a_token_only_their_router_rows(config: Table) -> None:
    spec = read_config(config).spec
    if not spec.moe_layers or spec.experts is None or spec.layer_kinds:
        return
    groups = math.lcm(spec.experts, spec.expert_groups or 1) // spec.experts
    more = dataclasses.replace(spec, experts=spec.experts + (spec.expert_groups or 1) * groups)
    before, after = count_parameters(spec), count_parameters(more)
    added = (more.experts or 0) - spec.experts
    assert after.active - before.active == spec.moe_layers * added * (spec.hidden or 0)
    assert after.total - before.total == spec.moe_layers * added * (
        (spec.hidden or 0) + expert_parameters(spec)
    )
