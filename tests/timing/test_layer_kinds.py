"""A pass through layers that are not alike: each takes its own kind's time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset
from tracer.model.layers import HeadAttention, LayerKind, LinearAttention
from tracer.scenario.scenario import Scenario
from tracer.timing.batch import TimedBatch
from tracer.timing.kind_work import core_operator, seen_pairs
from tracer.timing.pass_time import pass_time

H100 = hardware_preset("h100")
FULL = {"type": "full", "heads": 8, "kv_heads": 2, "head_dim": 64, "v_head_dim": 64}
MODEL = {"hidden": 512, "vocab": 1000, "heads": 8, "kv_heads": 2, "head_dim": 64, "dense_hidden": 1024}


def scenario(model: dict[str, Any], **mesh: int) -> Scenario:
    tables = {"model": model, "cluster": {"hardware": "h100"}, "mesh": mesh, "token": {"prompt": 512}}
    return Scenario.from_dict(tables)


@pytest.mark.parametrize("rates", ["peak", "calibrated"])
def test_kinds_that_are_all_alike_take_what_alike_layers_take(rates: str) -> None:
    alike = scenario(MODEL | {"layers": 3}, tp=2, cp=2)
    kinds = [{"layers": "1-3", "attention": FULL, "feed_forward": {"width": 1024}}]
    named = scenario({"layers": 3, "hidden": 512, "vocab": 1000, "layer_kinds": kinds}, tp=2, cp=2)
    one, other = pass_time(alike, H100, rates=rates), pass_time(named, H100, rates=rates)
    assert other.kinds and not one.kinds
    assert other.seconds == pytest.approx(one.seconds, rel=0.02)
    assert other.floor_seconds == pytest.approx(one.floor_seconds)
    assert other.layer_seconds == pytest.approx([one.dense_layer_seconds] * 3, rel=0.02)


@pytest.mark.parametrize("name", ["gpt-oss-20b", "qwen3.5-35b-a3b", "nemotron-3-nano-30b-a3b"])
def test_a_pass_is_the_sum_of_its_layers(name: str) -> None:
    for mesh in ({"tp": 2, "cp": 2, "pp": 2}, {"tp": 2, "pp": 2}):
        whole = pass_time(scenario({"preset": name}, **mesh), H100)
        assert sum(whole.stage_seconds) == pytest.approx(sum(whole.layer_seconds))
        assert whole.seconds == pytest.approx(sum(whole.layer_seconds) + whole.send_seconds)
        both = zip(whole.layer_seconds, model_preset(name).layer_kinds, strict=True)
        moe = [each for each, kind in both if kind.is_moe]
        assert whole.moe_layer_seconds == pytest.approx(sum(moe) / len(moe))
        assert sum(seconds for seconds, _ in whole.timed_parts) == pytest.approx(whole.seconds)


def plain_pairs(attention: HeadAttention, batch: TimedBatch) -> Iterator[tuple[int, int]]:
    """(query, key) of one request, one by one."""
    window = attention.window or 1 << 40
    for query in range(batch.past, batch.past + batch.new):
        for key in range(query + 1):
            chunk = attention.type == "chunked" and query // window == key // window
            if query - key < window if attention.type != "chunked" else chunk:
                yield query, key


WORDS = ["full", "sliding", "chunked"]


@given(st.sampled_from(WORDS), st.integers(1, 9), st.integers(0, 20), st.integers(1, 20))
def test_pairs_are_those_a_plain_loop_meets(word: str, window: int, past: int, new: int) -> None:
    given_window = {} if word == "full" else {"window": window}
    attention = HeadAttention(**(FULL | {"type": word}), **given_window)  # type: ignore[arg-type]
    batch = TimedBatch(3, new, past)
    assert seen_pairs(attention, batch) == 3 * sum(1 for _ in plain_pairs(attention, batch))


def test_a_window_reads_its_own_positions_and_a_state_none() -> None:
    batch = TimedBatch.decoding(1, 16_383)
    window = LayerKind(attention=HeadAttention(**(FULL | {"type": "sliding", "window": 128})))  # type: ignore[arg-type]
    full = LayerKind(attention=HeadAttention(**FULL))  # type: ignore[arg-type]
    kv, own = 2 * 2 * 64 * 2, 8 * 128 * 2
    assert core_operator(window, batch, 1, "").row_bytes == 128 * kv + own
    assert core_operator(full, batch, 1, "").row_bytes == 16_384 * kv + own
    linear = LinearAttention(type="gated_delta_net", key_heads=2, value_heads=4, key_dim=8, value_dim=16)  # type: ignore[arg-type]
    short, long = (
        core_operator(LayerKind(attention=linear), TimedBatch.decoding(1, context), 1, "")
        for context in (1, 1_000_000)
    )
    assert short == long
    assert short.flops == 6 * 4 * 8 * 16
