"""EPLB's published example, its global policy, and a scenario balanced by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.batch.eplb import pack, rebalance
from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario

# deepseek-ai/EPLB README at d52c72d (MIT): the weights of its example and the table it prints.
WEIGHT = [
    [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
    [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
]
PUBLISHED = [
    [5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1],
    [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1],
]
# Worked out by an independent run of the described procedure: the README prints no global example.
GLOBAL = [
    [10, 6, 10, 7, 0, 2, 11, 4, 5, 9, 5, 4, 8, 3, 1, 1],
    [1, 10, 2, 4, 5, 11, 5, 0, 6, 7, 6, 3, 8, 8, 9, 7],
]


def test_the_published_example() -> None:
    found = rebalance(np.array(WEIGHT, float), slots=16, groups=4, nodes=2, gpus=8)
    assert found.policy == "hierarchical"
    assert found.slots.tolist() == PUBLISHED
    assert found.gpu_load[0].tolist() == [121.5, 86.5, 125.0, 113.0, 147.5, 131.5, 156.0, 152.0]


def test_the_global_policy() -> None:
    found = rebalance(np.array(WEIGHT, float), slots=16, groups=3, nodes=2, gpus=8)
    assert found.policy == "global"
    assert found.slots.tolist() == GLOBAL
    assert found.gpu_load[1].tolist() == [123.0, 123.0, 125.5, 118.5, 172.0, 157.5, 172.0, 164.5]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.data())
def test_any_table_is_whole(nodes: int, gpus: int, groups: int, size: int, data: st.DataObject) -> None:
    """Every expert has a slot, every GPU as many, loads add up, and groups stay on their node."""
    experts = groups * nodes * size * gpus
    slots = experts + nodes * gpus * data.draw(st.integers(0, 3))
    loads = np.array([data.draw(st.lists(st.integers(0, 99), min_size=experts, max_size=experts))], float)
    found = rebalance(loads, slots=slots, groups=groups * nodes, nodes=nodes, gpus=nodes * gpus)
    assert sorted(set(found.slots[0].tolist())) == list(range(experts))
    assert found.slots.shape == (1, slots)
    assert found.gpu_load.sum() == pytest.approx(loads.sum())
    group_of = found.slots[0].reshape(nodes, -1) // (experts // (groups * nodes))
    homes = [set(row.tolist()) for row in group_of]
    assert sum(map(len, homes)) == groups * nodes


def test_packing_keeps_order_when_every_pack_takes_one() -> None:
    assert pack(np.array([1.0, 9.0, 4.0]), 3) == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"slots": 8}, r"eplb.slots=8 must hold all 12 experts; try slots = 16"),
        ({"slots": 17}, r"eplb.slots=17 must divide over 8 GPUs; try slots = 24"),
        ({"nodes": 3}, r"eplb.gpus=8 must divide over 3 nodes"),
        ({"groups": 5}, r"eplb.groups=5 must divide 12 experts"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, int], words: str) -> None:
    sizes: dict[str, Any] = {"slots": 16, "groups": 4, "nodes": 2, "gpus": 8}
    with pytest.raises(ConfigError, match=words):
        rebalance(np.array(WEIGHT, float), **(sizes | changed))


def test_a_skewed_scenario_is_balanced() -> None:
    """The plan shares a load evenly over replicas; tokens go to the nearest one, so less evens out."""
    pytest.importorskip("numba")
    from tracer.batch.eplb_scenario import rebalanced
    from tracer.batch.picks.draws import DrawnPicks, popularity_of

    scenario = load_scenario("six-cuts").with_(picks=())
    picks = DrawnPicks.of_model(scenario.model, 4000, popularity=popularity_of("zipf", 32, skew=0.8), seed=2)
    found = rebalanced(scenario, picks, slots=48)
    report = found.to_dict()
    assert report["before"]["gpu_imbalance"] > 2
    assert report["planned"]["gpu_imbalance"] < 1.1
    assert report["planned"]["gpu_imbalance"] < report["after"]["gpu_imbalance"] < 1.7
    assert found.after.load_by_expert.tolist() == found.before.load_by_expert.tolist()
    assert report["after"]["bytes_by_tier"]["ib"] < report["before"]["bytes_by_tier"]["ib"]
    slots = report["placement"]["slots_by_layer"]
    assert sorted(map(int, slots)) == list(range(1, 9))
