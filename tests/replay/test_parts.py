"""The pieces of replay alone: tables of rows, merged partials, cuts of the checkpoint, batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_cases import MOE, deployment

from tracer.proof.replay.batch import ReplayBatch
from tracer.proof.replay.checkpoint import draw_checkpoint
from tracer.proof.replay.layer.maths import attend, merge, rope
from tracer.proof.replay.layer.rows import RowKeyError, Rows
from tracer.proof.replay.layer.shards import cut_columns, cut_rows, cut_vocabulary, shard
from tracer.trip.itinerary import Rider, prefill, rider_of

RANDOM = np.random.default_rng(0)


@given(st.integers(1, 12), st.data())
def test_merged_partials_are_one_attention(keys: int, data: st.DataObject) -> None:
    """However the keys are split, in two or more parts, empty and unseen ones among them."""
    owner = np.array(data.draw(st.lists(st.integers(0, 3), min_size=keys, max_size=keys)))
    queries, places = RANDOM.standard_normal((5, 4, 6)), np.arange(5) * 2
    key_rows, values = RANDOM.standard_normal((keys, 2, 6)), RANDOM.standard_normal((keys, 2, 3))
    whole = attend(queries, key_rows, values, places, np.arange(keys))
    parts = [
        attend(
            queries, key_rows[owner == part], values[owner == part], places, np.arange(keys)[owner == part]
        )
        for part in range(4)
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = merge(merged, part)
    assert np.allclose(merged.out, whole.out, rtol=0, atol=1e-12)


def test_rope_depends_on_distance_alone() -> None:
    query, key = RANDOM.standard_normal((1, 1, 8)), RANDOM.standard_normal((1, 1, 8))

    def score(here: int, there: int) -> float:
        return float((rope(query, np.array([here])) * rope(key, np.array([there]))).sum())

    assert score(7, 3) == pytest.approx(score(107, 103))
    assert score(7, 3) != pytest.approx(score(7, 4))


def test_rows_are_placed_added_and_missed() -> None:
    rows = Rows.keyed(np.array([5, -2, 9]), np.array([[5.0], [-2.0], [9.0]]))
    assert rows.at(np.array([9, -2, 9]))[:, 0].tolist() == [9, -2, 9]
    assert rows.placed(np.array([5, 7]), np.array([[1.0], [7.0]])).values[:, 0].tolist() == [-2, 1, 7, 9]
    assert rows.added(np.array([9, 9, 0]), np.ones((3, 1))).values[:, 0].tolist() == [-2, 1, 5, 11]
    with pytest.raises(RowKeyError, match="no row under key 6"):
        rows.at(np.array([5, 6]))
    with pytest.raises(RowKeyError, match="no row under key 1"):
        Rows.empty(3).at(np.array([1]))


def test_cuts_put_together_again() -> None:
    matrix = RANDOM.standard_normal((6, 10))
    assert (np.concatenate([cut_columns(matrix, i, 4) for i in range(4)], axis=1) == matrix).all()
    assert (np.concatenate([cut_rows(matrix, i, 4) for i in range(4)]) == matrix).all()
    padded = np.concatenate([cut_vocabulary(matrix, i, 4) for i in range(4)])
    assert padded.shape == (8, 10)
    assert (padded[:6] == matrix).all()
    assert not padded[6:].any()


def test_a_rank_holds_its_share_and_no_more() -> None:
    """Half the heads of its stage's layers, its own experts; all 8 experts exist once a stage."""
    scenario = deployment({**MOE, "layers": 4}, {"tp": 2, "dp": 2, "pp": 2, "ep": 4})
    whole = draw_checkpoint(scenario.model, 0)
    held = [shard(scenario, whole, rank) for rank in range(8)]
    assert "1.q" in held[3]
    assert "1.q" not in held[4]
    assert held[4]["3.q"].shape == (64, 32)
    assert "embed" not in held[4]
    assert "head" not in held[3]
    experts = [name for rank in range(4) for name in held[rank] if name.startswith("1.expert")]
    assert len(experts) == len(set(experts)) == 8 * 3


def test_a_batch_covers_every_position_once() -> None:
    scenario = deployment(MOE, {"tp": 2, "cp": 2, "dp": 3}, token={"prompt": 13})
    batch = ReplayBatch.of(scenario, [13, 0, 16], seed=0)
    for replica, padded in enumerate((16, 8, 16)):
        assert sorted(batch.position[batch.replica == replica]) == list(range(padded))
    assert np.count_nonzero(batch.real) == 29
    assert batch.ids[batch.to_head].tolist() == [12, 2 * batch.span + 15]
    for row in np.flatnonzero(batch.real):
        token = scenario.with_token(
            replica=int(batch.replica[row]),
            position=int(batch.position[row]),
            prompt=batch.prompts[batch.replica[row]],
        )
        assert token.home == batch.home[row]


def test_a_rider_of_padding_takes_the_hops_of_a_token() -> None:
    """But for the LM head, which no padding reaches."""
    scenario = deployment(MOE, {"tp": 2, "ep": 2}, token={"prompt": 3, "position": 2})
    own = list(prefill(scenario))
    assert own == list(prefill(scenario, rider_of(scenario)))
    padding = list(prefill(scenario, Rider(3, 1, False, {})))
    assert [build for build, _ in padding] == [build for build, _ in own][:-2]
    assert all(where.position == 3 and where.home == 1 for _, where in padding)
