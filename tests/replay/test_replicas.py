"""Replicas with prompts of their own meet in the experts, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from replay_cases import MOE, deployment

import tracer
from tracer.proof.replay import look, replay
from tracer.proof.replay.batch import ReplayBatch

SIX_CUTS = tracer.load_scenario("six-cuts")
AT_START = SIX_CUTS.with_token(replica=0, position=0)


def test_prompts_differ() -> None:
    batch = ReplayBatch.of(SIX_CUTS, None, seed=0)
    words = [tuple(batch.words[batch.replica == replica]) for replica in range(4)]
    assert len(set(words)) == 4


@pytest.mark.parametrize("prompts", [[64, 64, 64, 64], [48, 5, 17, 1], [16, 0, 0, 30]])
def test_each_equals_its_own_run(prompts: list[int]) -> None:
    """Every replica is compared with a single device that saw its prompt alone."""
    report = replay(AT_START, prompts=prompts)
    assert report.ok, report
    assert report.tokens_checked == sum(prompts)


def test_an_idle_replica_runs_a_dummy_batch() -> None:
    """Its rows are negative, are moved, and are tallied apart."""
    batch = ReplayBatch.of(AT_START, [8, 0, 8, 8], seed=0)
    idle = batch.replica == 1
    assert (batch.ids[idle] < 0).all()
    assert len(batch.ids[idle]) == 8, "one row for each chunk of each rank"
    report = replay(AT_START, prompts=[8, 0, 8, 8])
    assert report.ok
    assert 0 < report.padding_bytes < report.bytes_moved


def test_padding_is_negative_and_tallied_apart() -> None:
    scenario = deployment(MOE, {"tp": 2, "cp": 2, "ep": 4}, token={"prompt": 11})
    batch = ReplayBatch.of(scenario, None, seed=0)
    assert np.count_nonzero(batch.ids < 0) == 5
    report = replay(scenario)
    assert report.tokens_checked == 11
    assert report.padding_bytes > 0
    assert replay(deployment(MOE, {"tp": 2, "cp": 2, "ep": 4})).padding_bytes == 0


@pytest.mark.parametrize("prompts", [[64], [0, 0, 0, 0]])
def test_refuses_lengths_that_do_not_fit(prompts: list[int]) -> None:
    with pytest.raises(tracer.ConfigError, match="a length for each of the 4 replicas, not all of them 0"):
        replay(AT_START, prompts=prompts)


def test_refuses_to_follow_a_token_that_is_not_there() -> None:
    with pytest.raises(tracer.ConfigError, match=r"token.position=40 .*prompt of 8"):
        look(SIX_CUTS, prompts=[8, 8, 8, 8])
