"""A hop's numbers: rows around it, the partial attentions and their merge, the router, the relay's sum."""

from __future__ import annotations

import json

import numpy as np
import pytest
from replay_cases import MOE, deployment

import tracer
from tracer.proof.replay import Look, look
from tracer.trip.trip import take_trip


@pytest.fixture(scope="module")
def seen() -> Look:
    return look(tracer.load_scenario("six-cuts"))


def rows_on(seen: Look, layer: int, kind: str, state: int) -> dict[int, np.ndarray]:
    """The token's rows by GPU, before (0), after each step, and so after (-1) a hop."""
    (found,) = [each for each in seen.hops if each.hop.layer == layer and each.hop.kind == kind]
    assert found.scene is not None
    return {held.rank: held.values[0] for held in found.scene.states[state]}


def test_hops_are_those_of_the_trip(seen: Look) -> None:
    assert tuple(each.hop for each in seen.hops) == take_trip(seen.scenario).hops
    assert [each.index for each in seen.hops] == list(range(len(seen.hops)))


def test_all_gather_copies_the_row(seen: Look) -> None:
    before, after = rows_on(seen, 1, "all_gather", 0), rows_on(seen, 1, "all_gather", -1)
    assert set(before) == {11}
    assert set(after) == {10, 11}
    assert (after[10] == before[11]).all()


def test_reduce_scatter_sums_the_partial_rows(seen: Look) -> None:
    before, after = rows_on(seen, 1, "reduce_scatter", 0), rows_on(seen, 1, "reduce_scatter", -1)
    assert np.allclose(before[10] + before[11], after[11], rtol=0, atol=1e-12)


def test_kv_reaches_the_cp_partners(seen: Look) -> None:
    after = rows_on(seen, 1, "kv_exchange", -1)
    assert set(after) == {8, 9, 10, 11}
    assert (after[9] == after[11]).all()
    assert (after[8] == after[10]).all()
    assert not (after[8] == after[9]).any(), "the other half of the heads"


def test_dispatch_goes_through_the_relay(seen: Look) -> None:
    first, second = rows_on(seen, 1, "dispatch", 1), rows_on(seen, 1, "dispatch", 2)
    assert set(first) == {11, 13, 3}
    assert set(second) == {11, 13, 3, 2}


def test_what_the_relay_summed(seen: Look) -> None:
    (relay,) = seen.relay_sums(1)
    assert relay.rank == 3
    before, after = rows_on(seen, 1, "combine", 0), rows_on(seen, 1, "combine", -1)
    assert set(before) == {2, 13}
    assert (relay.values[0] == before[2]).all()
    assert np.allclose(before[2] + before[13], after[11], rtol=0, atol=1e-12)


def test_partial_attentions_and_their_merge(seen: Look) -> None:
    """``O = (w1·O1 + w2·O2) / (w1 + w2)``, on each of the two TP ranks."""
    both = seen.attention_of(1)
    assert [each.rank for each in both] == [10, 11]
    for each in both:
        one, two = each.partials
        assert (one.source_cp, two.source_cp) == (1, 0)
        top = np.maximum(one.top, two.top)
        weights = [np.exp(part.top - top) * part.total for part in (one, two)]
        merged = (weights[0][:, None] * one.out + weights[1][:, None] * two.out) / sum(weights)[:, None]
        assert np.allclose(merged, each.merged, rtol=0, atol=1e-12)
        assert np.allclose(one.weight + two.weight, 1)
        assert np.allclose(one.weight, weights[0] / sum(weights))


def test_router_scores_and_weights(seen: Look) -> None:
    (router,) = seen.router_of(1)
    assert router.rank == 11
    assert tuple(router.experts) == (5, 27)
    assert np.isclose(router.scores.sum(), 1), "a softmax over 32 experts"
    picked = router.scores[[5, 27]]
    assert np.allclose(router.weights, picked / picked.sum())


def test_both_layouts_of_a_layer(seen: Look) -> None:
    layouts = seen.layouts_of(2)
    assert layouts[0] == ("all_gather", "[T/(cp·tp), d]", "[T/cp, d]")
    assert layouts[2] == ("reduce_scatter", "[T/cp, d] partial sums", "[T/(cp·tp), d]")
    gather = next(each for each in seen.hops if each.hop.layer == 2)
    assert gather.scene is not None
    before, after = gather.scene.states[0][0], gather.scene.states[-1][0]
    assert (before.shape, after.shape) == ((16, 64), (32, 64))
    assert seen.attention_of(2)[0].output_shape == (32, 8, 4)


def test_layouts_without_sp_and_of_a_latent() -> None:
    off = look(deployment(MOE, {"tp": 2, "cp": 2, "ep": 4, "sp": "off"}))
    assert off.layouts_of(1)[1] == ("all_reduce", "[T/cp, d] partial sums", "[T/cp, d] on every TP rank")
    assert len(off.router_of(1)) == 2, "every TP rank routes its own copy"
    latent = look(deployment("deepseek-v3", {"tp": 2, "cp": 2, "dp": 8, "ep": 32}))
    exchange = next(each for each in latent.hops if each.hop.kind == "kv_exchange")
    assert exchange.after == "[T, kv_lora + rope]"


def test_pulled_weights_move_no_row() -> None:
    seen = look(deployment(MOE, {"tp": 2, "dp": 2, "ep": 4, "contract": "dwdp"}))
    pull = next(each for each in seen.hops if each.hop.kind == "weight_pull")
    assert pull.scene is None
    assert pull.to_dict()["states"] == []


def test_numbers_are_json(seen: Look) -> None:
    told = json.loads(json.dumps([each.to_dict() for each in seen.hops]))
    assert told[1]["kind"] == "all_gather"
    assert told[1]["states"][0][0]["shape"] == [16, 64]
    attention = json.loads(json.dumps(seen.attentions[0].to_dict()))
    assert [part["source_cp"] for part in attention["partials"]] == [1, 0]
    assert json.loads(json.dumps(seen.routers[0].to_dict()))["experts"] == [5, 27]
