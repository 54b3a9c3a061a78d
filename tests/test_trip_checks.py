"""What the pytest plugin's assertions say, without pytest between."""

from __future__ import annotations

import pytest

from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario
from tracer.trip.checks import axis_problem, log_problems
from tracer.trip.trip import Trip, take_trip


@pytest.fixture(scope="module")
def trip() -> Trip:
    return take_trip(load_scenario("six-cuts"))


def test_nothing_is_said_of_counts_that_hold(trip: Trip):
    assert log_problems(trip, gpus=23, crossings=15, ops=41) == []
    assert log_problems(trip, crossings=trip.log.node_crossings_by_axis) == []
    assert log_problems(trip) == []


def test_too_many_part_at_the_hop_that_goes_past(trip: Trip):
    numbers, hop = log_problems(trip, crossings=6)
    assert numbers == "node crossings: expected 6, the trip has 15"
    # After layer 4 the log has 6; the pipeline's send is the seventh (counting rules, section 8).
    assert hop == ("  they part at hop 21 (layer 4, pp_send): 11⇒27, which takes the count from 6 to 7")


def test_too_few_stop_at_the_last_hop_that_counts(trip: Trip):
    numbers, hop = log_problems(trip, gpus=24)
    assert numbers == "GPUs touched: expected 24, the trip has 23"
    assert hop.startswith("  the trip stops counting at hop 40 (layer 8, dispatch): 27⇒19")


def test_an_axis_is_counted_apart(trip: Trip):
    assert log_problems(trip, crossings={"ep": 13})[0] == "node crossings by ep: expected 13, the trip has 14"
    assert "hop 41 (layer 8, combine)" in log_problems(trip, crossings={"ep": 13})[1]
    assert log_problems(trip, crossings={"tp": 1})[1] == "  no hop of the trip adds to it"
    with pytest.raises(ConfigError, match="axis='dq' is not asked about"):
        log_problems(trip, crossings={"dq": 1})


def test_an_axis_inside_a_node_and_one_that_leaves(trip: Trip):
    assert axis_problem(trip, "tp") is None
    assert axis_problem(trip, "cp") is None
    assert axis_problem(trip, "ep") == "ep leaves its node at hop 4 (layer 1, dispatch): 11⇒3 11→13 3→2"
    # No hop moves anything on dp, but its groups span nodes all the same.
    assert axis_problem(trip, "dp") == "the dp group of GPU 1 (1 5 9 13) spans nodes 0, 1"
    with pytest.raises(ConfigError, match="axis='sp' is not asked about"):
        axis_problem(trip, "sp")
