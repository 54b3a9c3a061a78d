"""Auxiliary loss, bias, capacity, collapse; and the permutation of a grouped GEMM."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.batch.permutation import grouped_against_loop, permute
from tracer.batch.router_balance import auxiliary_loss, capacity, dropped, simulate_collapse, updated_bias
from tracer.errors import ConfigError


def test_auxiliary_loss_is_least_when_even() -> None:
    even = np.full((8, 4), 0.25)
    picks = np.arange(8)[:, None] % 4
    assert auxiliary_loss(even, picks, 0.01) == pytest.approx(0.01)
    skewed = np.tile([0.7, 0.1, 0.1, 0.1], (8, 1))
    assert auxiliary_loss(skewed, np.zeros((8, 1), int), 0.01) == pytest.approx(0.01 * 4 * 0.7)


def test_bias_moves_against_the_load_by_a_fixed_step() -> None:
    assert updated_bias(np.zeros(3), np.array([9, 3, 0]), 0.001).tolist() == [-0.001, 0.001, 0.001]
    assert updated_bias(np.zeros(2), np.array([4, 4]), 0.001).tolist() == [0.0, 0.0]


def test_capacity_drops_what_comes_late() -> None:
    picks = np.array([[0, 1], [0, 2], [0, 1], [1, 0]])
    assert dropped(picks, 3, 2).tolist() == [[False, False], [False, False], [True, False], [True, True]]
    assert not dropped(picks, 3, 4).any()
    assert capacity(4, 2, 3, 1.0) == 3
    with pytest.raises(ConfigError, match="capacity_factor=0 must be a number above 0"):
        capacity(4, 2, 3, 0)


def test_a_router_collapses_without_a_remedy_and_not_with_a_bias() -> None:
    alone, weak, strong, bias = (
        simulate_collapse("none"),
        simulate_collapse("aux_loss", alpha=0.1),
        simulate_collapse("aux_loss", alpha=4.0),
        simulate_collapse("bias"),
    )
    assert alone.busy_share[-1] > 0.9
    assert alone.dead >= 20
    assert weak.busy_share[-1] > 0.9
    assert strong.imbalance[-1] < 2
    assert bias.imbalance[-20:].mean() < 1.6
    assert bias.dead == 0


@given(st.integers(1, 40), st.integers(1, 4), st.integers(4, 12), st.integers(0, 9))
def test_permutation_is_argsort_and_bincount(tokens: int, top_k: int, experts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    picks = rng.random((tokens, experts)).argsort(1)[:, :top_k]
    found = permute(picks, experts)
    order = np.argsort(picks.ravel(), kind="stable")
    assert found.gather.tolist() == (order // top_k).tolist()
    assert found.counts.tolist() == np.bincount(picks.ravel(), minlength=experts).tolist()
    assert (found.ends - found.starts == found.counts).all()
    assert found.starts[0] == 0
    assert found.ends[-1] == tokens * top_k
    assert (picks[found.gather, found.pick] == np.repeat(np.arange(experts), found.counts)).all()
    buffer = np.arange(tokens)[found.gather]
    assert (buffer[found.scatter] == np.arange(tokens)[:, None]).all()


def test_permutation_leaves_out_what_is_no_pick() -> None:
    found = permute(np.array([[1, -1], [-1, -1]]), 3)
    assert found.gather.tolist() == [0]
    assert found.scatter.tolist() == [[0, -1], [-1, -1]]
    assert found.counts.tolist() == [0, 1, 0]
    with pytest.raises(ConfigError, match=r"picks\[0, 1\]=3 must be from 0 to 2"):
        permute(np.array([[1, 3]]), 3)


def test_a_loop_over_experts_wastes_waves() -> None:
    """32 picks over 256 experts: the loop launches one GEMM an expert, each a fraction of a wave."""
    counts = np.zeros(256, np.int64)
    counts[:32] = 1
    loop, grouped = grouped_against_loop(counts, 2048)
    assert (loop.launches, grouped.launches) == (32, 1)
    assert loop.tiles == grouped.tiles == 32 * 16
    assert (loop.waves, grouped.waves) == (32, 4)
    assert loop.fill == pytest.approx(16 / 132)
    assert grouped.fill == pytest.approx(512 / 528)
    assert grouped.useful_rows == pytest.approx(1 / 128)
    empty, _ = grouped_against_loop(np.zeros(4, np.int64), 2048)
    assert (empty.launches, empty.waves, empty.fill) == (0, 0, 0.0)
