"""FLOPs, bytes and roofs: worked by hand, against parameter counts, and on every model that ships."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing.drawing import few

from tracer.errors import ConfigError
from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset, model_preset_names
from tracer.model.parameters import count_parameters
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart
from tracer.timing.batch import TimedBatch
from tracer.timing.operators import (
    attention_operators,
    dense_layer,
    expert_load,
    expert_operator,
    ffn_operator,
    moe_layer,
    rate_of,
)
from tracer.timing.roofline import expert_points, expert_roof, layer_time, operator_time, ridge

H100 = hardware_preset("h100")
V3 = model_preset("deepseek-v3")


def test_linear_flops_are_two_a_parameter_and_token():
    batch = TimedBatch.prompts(100)
    flops = sum(o.flops for o in attention_operators(V3, batch) if o.name != "attention core")
    counted = count_parameters(V3).of(WeightPart.ATTENTION)
    assert flops * V3.layers == pytest.approx(2 * counted.active * 100, rel=1e-9)


def test_expert_flops_are_two_a_parameter_and_pair():
    operator = expert_operator(V3, expert_load(V3, 100))
    counted = count_parameters(V3).of(WeightPart.EXPERTS)
    assert operator.flops * V3.moe_layers == pytest.approx(2 * counted.active * 100)


def test_causal_pairs():
    assert TimedBatch.prompts(4).pairs == 4 + 3 + 2 + 1
    assert TimedBatch.decoding(3, 10).pairs == 3 * 11
    assert TimedBatch(2, 3, 5).pairs == 2 * (3 * 5 + 3 + 2 + 1)


def test_the_attention_core_of_mla_by_hand():
    """Prefill: 128 heads x (192 + 128); decode in the latent space: 128 x (576 + 512)."""
    prefill = attention_operators(V3, TimedBatch.prompts(10))[1]
    decode = attention_operators(V3, TimedBatch.decoding(1, 99))[1]
    assert prefill.flops == 2 * 128 * 55 * 320
    assert decode.flops == 2 * 128 * 100 * (576 + 512)


def test_grouped_query_attention_reads_its_kv_once():
    llama = model_preset("llama-3.1-8b")
    core = attention_operators(llama, TimedBatch.decoding(4, 999))[1]
    assert core.row_bytes == 2 * (4 * 32 * 256 + 4 * 1000 * 2 * 8 * 128)


def test_eight_requests_hit_57_of_256_experts():
    load = expert_load(V3, 8)
    assert load.hit == pytest.approx(57.4, abs=0.05)
    assert load.pairs / load.experts == 0.25


def test_512_tokens_an_expert_of_four_prompts_of_4096():
    load = expert_load(V3, 4 * 4096)
    assert load.pairs == 131_072
    assert load.tokens_per_expert == pytest.approx(512)


def test_ridges():
    assert ridge(H100) == pytest.approx(989e12 / 3.35e12)
    assert ridge(hardware_preset("b200"), "fp8_flops") == pytest.approx(4.5e15 / 7.7e12)
    with pytest.raises(ConfigError, match=r"cluster\.fp8_flops is not given and is needed to find the ridge"):
        ridge(hardware_preset("a100"), "fp8_flops")


def test_prefill_is_bound_by_compute_and_decode_by_memory():
    layer = moe_layer(V3, TimedBatch.prompts(16_384), expert_load(V3, 16_384))
    assert {each.bound for each in layer_time(layer, H100).operators} == {"compute"}
    few = moe_layer(V3, TimedBatch.decoding(8, 4096), expert_load(V3, 8))
    times = {each.operator.name: each.bound for each in layer_time(few, H100).operators}
    assert times["expert GEMMs"] == times["attention projections"] == "memory"


@pytest.mark.parametrize("name", [n for n in model_preset_names() if model_preset(n).moe_layers])
def test_every_moe_preset_leaves_the_memory_roof_somewhere(name: str):
    spec = model_preset(name)
    hardware = hardware_preset("b200") if spec.expert_weights == WeightFormat.NVFP4 else H100
    found = expert_roof(spec, hardware)
    assert found.batch == pytest.approx(found.tokens_per_expert * spec.experts / spec.top_k)
    if found.batch_with_rows is not None:
        assert found.batch_with_rows >= found.batch * 0.99
        below, at = expert_points(spec, hardware, [found.batch_with_rows - 1, found.batch_with_rows])
        assert (below.bound, at.bound) == ("memory", "compute")


def test_the_rows_of_narrow_experts_can_hold_them_under_the_roof():
    spec = replace(V3, expert_hidden=64, expert_weights=WeightFormat.BF16)
    assert expert_roof(spec, H100).batch_with_rows is None


@pytest.mark.parametrize("name", model_preset_names())
def test_every_preset_has_a_layer(name: str):
    spec = model_preset(name)
    batch = TimedBatch.prompts(128)
    layers = []
    if spec.moe_layers:
        layers.append(moe_layer(spec, batch, expert_load(spec, 128)))
    if spec.moe_layers < spec.layers:
        layers.append(dense_layer(spec, batch))
    for layer in layers:
        time = layer_time(layer, hardware_preset("b200"))
        assert 0 < time.roof_seconds <= time.seconds


@few
@given(st.integers(1, 4096), st.integers(1, 4096))
def test_more_tokens_never_take_less_time(first: int, second: int):
    low, high = sorted((first, second))
    times = [
        layer_time(moe_layer(V3, TimedBatch.prompts(n), expert_load(V3, n)), H100).seconds
        for n in (low, high)
    ]
    assert times[0] <= times[1]


@few
@given(st.integers(1, 1000), st.sampled_from([1, 2, 4, 8]))
def test_tp_divides_the_work_of_attention(tokens: int, tp: int):
    whole, cut = (attention_operators(V3, TimedBatch.prompts(tokens), size) for size in (1, tp))
    assert [each.flops / tp for each in whole] == pytest.approx([each.flops for each in cut])


def test_formats_have_their_rates():
    assert rate_of(WeightFormat.NVFP4) == "fp4_flops"
    assert rate_of(WeightFormat.FP8_BLOCK128) == "fp8_flops"
    assert rate_of(WeightFormat.MXFP4) == rate_of(WeightFormat.BF16) == "bf16_flops"


def test_a_plain_roof_without_rows_reads_weights_alone():
    operator = ffn_operator(V3, WeightPart.SHARED, 4)
    assert operator_time(operator, H100, rows=False).memory_seconds == operator.weight_bytes / 3.35e12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), r"batch\.sequences=0 must be a whole number of at least 1"),
        ((1, 0), r"batch\.new=0"),
        ((1, 1, -1), r"batch\.past=-1 must be a whole number of at least 0"),
        ((1, 1, 0, "train"), "batch.phase='train' must be prefill or decode"),
    ],
)
def test_bad_batches_are_refused(arguments: tuple[object, ...], message: str):
    with pytest.raises(ConfigError, match=message):
        TimedBatch(*arguments)  # type: ignore[arg-type]


def test_hardware_without_flops_is_refused():
    with pytest.raises(ConfigError, match=r"cluster\.fp8_flops is not given and is needed to time"):
        layer_time(dense_layer(V3, TimedBatch.prompts(1)), hardware_preset("a100"))
