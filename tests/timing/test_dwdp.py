"""Tokens against weights: bytes, windows, buffers, contention, rendezvous, crossover, checklist, chooser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing.drawing import few

from tracer.errors import ConfigError
from tracer.mesh.cluster import Link
from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset
from tracer.proof.published.dwdp import source_group
from tracer.timing.batch import TimedBatch
from tracer.timing.weights.buffers import run_pass, slowed_end
from tracer.timing.weights.checklist import dwdp_checklist, resident_bytes
from tracer.timing.weights.chooser import Workload, choose_contract
from tracer.timing.weights.contention import pull_seconds, stretch
from tracer.timing.weights.crossover import crossover_prompt, crossover_sequences, crossover_table
from tracer.timing.weights.group import MoeGroup
from tracer.timing.weights.layer import contest
from tracer.timing.weights.rendezvous import waiting_share

GROUP = source_group()
TIME = st.floats(1e-6, 10.0)


def test_remote_bytes_of_a_layer_by_hand():
    """192 of 256 experts x 3 matrices of 7168 x 2048 x 4.5 bits."""
    assert GROUP.remote_bytes == 192 * 3 * 7168 * 2048 * 4.5 / 8
    assert GROUP.prefetch_seconds == GROUP.remote_bytes / 900e9


def test_keeping_more_experts_pulls_fewer():
    more = replace(GROUP, local_experts=100)
    assert more.remote_bytes == GROUP.remote_bytes * 156 / 192


def test_copies_that_leave_a_rank():
    assert GROUP.exchange_bytes(1) == 6 * (7168 * 4.5 / 8 + 2 * 7168)
    every = replace(GROUP, copies="all").exchange_bytes(1)
    distinct = replace(GROUP, copies="distinct").exchange_bytes(1)
    assert distinct < every < GROUP.exchange_bytes(1)


def test_stall_and_window_are_two_sides_of_one_figure():
    for length in (1024, 32_768):
        found = contest(GROUP, TimedBatch.prompts(length))
        assert found.dwdp_seconds == found.dwdp_compute + found.stall_seconds
        assert (found.stall_seconds > 0) == (found.window_ratio < 1)


@few
@given(st.integers(1, 40), TIME, TIME, TIME, st.floats(1, 3))
def test_a_pass_is_no_shorter_than_its_work_and_its_copies(
    layers: int, attention: float, experts: float, copy: float, slowdown: float
):
    found = run_pass(layers, attention, experts, copy, slowdown=slowdown)
    assert found.seconds >= layers * (attention + experts) * (1 - 1e-9)
    assert found.seconds >= layers * copy * (1 - 1e-9)
    for layer in range(layers):
        assert found.experts[layer][0] >= found.copies[layer][1]
        if layer >= 2:
            assert found.copies[layer][0] >= found.experts[layer - 2][1]


@few
@given(st.integers(2, 40), TIME, TIME, TIME)
def test_a_double_buffer_runs_steadily_at_the_longer_of_compute_and_copy(
    layers: int, attention: float, experts: float, copy: float
):
    found = run_pass(layers, attention, experts, copy)
    steady = max(attention + experts, copy)
    assert found.seconds <= layers * steady + attention + experts + copy + 1e-9


def test_a_single_buffer_cannot_copy_beside_the_experts():
    one, two = (run_pass(20, 1.0, 1.0, 1.5, buffers=count).seconds for count in (1, 2))
    assert one == pytest.approx(20 * 2.5)
    assert two < one


def test_attention_beside_a_copy_is_slower():
    plain, slowed = (run_pass(58, 4.4, 5.0, 7.4, slowdown=factor) for factor in (1.0, 1.19))
    assert plain.seconds < slowed.seconds <= plain.seconds + 58 * 4.4 * 0.19 + 1e-9


@few
@given(TIME, TIME, TIME, st.floats(1, 4))
def test_slowed_work_ends_between_its_two_rates(start: float, seconds: float, end: float, slowdown: float):
    found = slowed_end(start, seconds, [(0.0, end)], slowdown)
    assert start + seconds <= found * (1 + 1e-12)
    assert found <= (start + seconds * slowdown) * (1 + 1e-12)


def test_readers_that_take_sources_in_turn_do_not_meet():
    assert pull_seconds(4, 1.0, (0.0,) * 4, order="rotated") == (3, 3, 3, 3)
    assert max(pull_seconds(4, 1.0, (0.0,) * 4, order="same")) == 5


def test_slices_shorten_the_wait_for_a_busy_source():
    source = GROUP.remote_bytes / 3
    spread = GROUP.prefetch_seconds
    whole = stretch(4, source, 900e9, spread_seconds=spread, trials=100)
    sliced = stretch(4, source, 900e9, spread_seconds=spread, slice_bytes=source / 64, trials=100)
    assert sliced.mean + 2 * sliced.error < whole.mean - 2 * whole.error
    assert sliced.mean >= 1 - 1e-9


def test_four_ranks_with_a_cv_of_a_fifth_wait_a_sixth_of_what_varies():
    """The mean of the largest of four normal draws is 1.0294 deviations."""
    found = waiting_share(4, 0.2)
    assert found.share == pytest.approx(1 - 1 / (1 + 0.2 * 1.02938), abs=1e-6)


@pytest.mark.parametrize("shape", ["normal", "lognormal", "uniform"])
def test_drawn_rounds_wait_as_long(shape: str):
    random, ranks, cv = np.random.default_rng(0), 16, 0.4
    sigma = np.sqrt(np.log1p(cv * cv))
    lengths = {
        "normal": lambda size: np.maximum(random.normal(1, cv, size), 0),
        "lognormal": lambda size: random.lognormal(-sigma * sigma / 2, sigma, size),
        "uniform": lambda size: random.uniform(1 - cv * 3**0.5, 1 + cv * 3**0.5, size),
    }[shape]((20_000, ranks))
    drawn = 1 - lengths.mean() / lengths.max(axis=1).mean()
    assert waiting_share(ranks, cv, shape=shape).share == pytest.approx(drawn, abs=4e-3)


def test_waiting_grows_with_ranks_spread_and_what_varies():
    base = waiting_share(4, 0.2).share
    assert base < waiting_share(8, 0.2).share
    assert base < waiting_share(4, 0.3).share
    assert base > waiting_share(4, 0.2, variable_share=0.5).share
    assert waiting_share(4, 0.0).share == pytest.approx(0, abs=1e-12)
    assert waiting_share(1, 0.2).share == pytest.approx(0, abs=1e-12)
    for shape in ("lognormal", "uniform"):
        assert waiting_share(4, 0.2, shape=shape).share == pytest.approx(base, rel=0.1)


def test_the_crossover_is_where_the_source_has_it_and_moves_as_it_says():
    first = crossover_prompt(GROUP)
    assert first is not None
    assert 8192 < first < 16_384
    assert (
        contest(GROUP, TimedBatch.prompts(first)).speedup
        >= 1
        > contest(GROUP, TimedBatch.prompts(first - 1)).speedup
    )
    table = {
        (c.sequences, c.bytes_per_s): c.prompt
        for c in crossover_table(GROUP, (1, 4), (Link(900e9), Link(450e9)))
    }
    assert table[4, 900e9] < table[1, 900e9] < table[1, 450e9]  # type: ignore[operator]
    count = crossover_sequences(GROUP, 1024)
    assert count is not None
    assert count > 1


def test_where_nothing_is_gained_there_is_no_crossover():
    free_tokens = replace(GROUP, fabric=Link(1e18), ranks=2)
    slow = replace(GROUP, fabric_share=1e-6)
    assert crossover_sequences(slow, 1) is None
    assert crossover_prompt(free_tokens) is not None


@pytest.mark.parametrize(
    ("batch", "options", "failed"),
    [
        (TimedBatch.prompts(32_768), {}, None),
        (TimedBatch.prompts(1024), {}, "compute window"),
        (TimedBatch.decoding(128, 4096), {}, "prefill"),
        (TimedBatch.prompts(32_768), {"nvlink_domains": 2}, "one NVLink island"),
        (TimedBatch.prompts(32_768), {"tp": 2}, "tensor parallelism"),
    ],
)
def test_the_checklist_names_what_fails(batch: TimedBatch, options: dict[str, int], failed: str | None):
    checks = dwdp_checklist(GROUP, batch, **options)
    first = next((check.name for check in checks if not check.holds), None)
    assert first == failed
    choice = choose_contract(GROUP, Workload(batch), **options)
    assert (choice.contract == "dwdp") == (failed is None)
    assert failed is None or failed in choice.reason


def test_islands_are_crossed_only_loudly():
    choice = choose_contract(GROUP, Workload(TimedBatch.prompts(32_768)), nvlink_domains=2)
    assert "the group spans 2: weights would cross" in str(choice)


def test_memory_counts_whole_attention_own_experts_and_two_buffers():
    need = resident_bytes(GROUP) + 2 * GROUP.remote_bytes
    memory = next(c for c in dwdp_checklist(GROUP, TimedBatch.prompts(1)) if c.name == "memory")
    assert memory.holds
    assert f"{need / 1e9:.4g} GB" in memory.why
    small = MoeGroup(model_preset("deepseek-v3"), hardware_preset("h100"), 4, Link(450e9))
    assert not next(c for c in dwdp_checklist(small, TimedBatch.prompts(1)) if c.name == "memory").holds


def test_the_chooser_guards_the_first_token_and_falls_back():
    batch = TimedBatch.prompts(16_384)
    exchange = 0.0
    free = choose_contract(GROUP, Workload(batch), exchange_seconds=exchange)
    assert free.contract == "ep"
    assert "a pass takes" in free.reason
    limit = choose_contract(GROUP, Workload(batch, ttft_limit_s=0.3), exchange_seconds=exchange)
    assert "over the limit of 0.3 s" in limit.reason
    both_late = choose_contract(GROUP, Workload(batch, 0.2, ttft_limit_s=0.3))
    assert both_late.contract == "dwdp"
    assert "neither contract keeps the limit" in both_late.reason


def test_all_gather_falls_back_to_ag_rs():
    group = replace(GROUP, copies="all")
    assert choose_contract(group, Workload(TimedBatch.prompts(128))).contract == "ag_rs"


def test_a_loaded_queue_makes_the_first_token_late():
    idle, busy, over = (
        choose_contract(GROUP, Workload(TimedBatch.prompts(16_384), passes_per_s=rate))
        for rate in (0.0, 1.8, 9.0)
    )
    assert idle.weights.ttft_seconds == idle.weights.pass_seconds
    assert busy.weights.ttft_seconds > 2 * busy.weights.pass_seconds
    assert over.weights.ttft_seconds == float("inf")
    assert "for ever" in str(over)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: replace(GROUP, ranks=1), r"group\.ranks=1 must be a whole number of at least 2"),
        (lambda: replace(GROUP, copies="few"), r"group\.copies='few' must be picks, distinct or all"),
        (lambda: replace(GROUP, local_experts=63), r"group\.local_experts=63 must be from 64 to 256"),
        (lambda: replace(GROUP, fabric_share=0), r"group\.fabric_share=0 must be above 0"),
        (lambda: replace(GROUP, fabric_share=1.5), r"group\.fabric_share=1\.5 must be a number from 0 to 1"),
        (lambda: run_pass(1, 0, 1, 1), r"dwdp\.attention_seconds=0 must be a finite number of seconds"),
        (lambda: run_pass(1, 1, 1, -1), r"dwdp\.copy_seconds=-1"),
        (lambda: run_pass(1, 1, 1, 1, buffers=0), r"dwdp\.buffers=0"),
        (lambda: run_pass(1, 1, 1, 1, slowdown=0.5), r"dwdp\.slowdown=0\.5 must be 1 or more"),
        (lambda: pull_seconds(1, 1.0, (0.0,)), r"pull\.ranks=1"),
        (lambda: pull_seconds(4, 1.0, (0.0,) * 4, order="wild"), r"pull\.order='wild' must be"),
        (lambda: waiting_share(0, 0.2), r"rendezvous\.ranks=0"),
        (lambda: waiting_share(4, -0.2), r"rendezvous\.cv=-0\.2"),
        (lambda: waiting_share(4, 0.9, shape="uniform"), r"rendezvous\.cv=0\.9 is more than uniform"),
        (lambda: Workload(TimedBatch.prompts(1), ttft_limit_s=0), r"workload\.ttft_limit_s=0"),
        (lambda: replace(GROUP, spec=model_preset("llama-3.1-8b"), local_experts=1),
         r"model\.experts is not given and is needed to cut experts"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(build: object, message: str):
    with pytest.raises(ConfigError, match=message):
        build()  # type: ignore[operator]
