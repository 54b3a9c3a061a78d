"""What the project promises of its mesh."""

import tracer


def test_our_own_tracer_is_ours():
    assert tracer.SPANS[0] == "request"


def test_tp_stays_inside_a_node(take_trip, assert_axis_stays_inside_node):
    assert_axis_stays_inside_node(take_trip("mesh.toml"), "tp")


def test_what_a_token_costs(take_trip, assert_trip_log):
    assert_trip_log(take_trip("mesh.toml"), gpus=9, crossings={"ep": 8, "tp": 0}, ops=16)
