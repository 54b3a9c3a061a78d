"""Two trips beside each other: hops face their counterparts, and each axis adds up to the log."""

from __future__ import annotations

from typing import Any

from draws import draws
from hypothesis import HealthCheck, given, settings
from strategies import scenarios

from tracer import Scenario, load_scenario, take_trip
from tracer.trip.compare import axis_totals, compare_trips


def test_a_trip_compared_with_itself_does_not_differ() -> None:
    trip = take_trip(load_scenario("six-cuts"))
    found = compare_trips(trip, trip)
    assert found.first_difference is None
    assert all(one is other for one, other in found.hops)


def test_the_swapped_mesh_crosses_for_experts_only() -> None:
    swapped, six = load_scenario("six-cuts-pp-inside-dp"), load_scenario("six-cuts")
    found = compare_trips(take_trip(six), take_trip(swapped))
    crossings = {one.axis: (one.crossings, other.crossings) for one, other in found.axes}
    assert crossings == {"tp": (0, 0), "cp": (0, 0), "ep": (14, 26), "pp": (1, 0)}


def test_hops_that_only_one_trip_has_face_nothing() -> None:
    six = load_scenario("six-cuts")
    without = Scenario.from_dict(six.to_dict() | {"mesh": six.to_dict()["mesh"] | {"sp": "off"}})
    pairs = compare_trips(take_trip(six), take_trip(without)).hops
    alone = [(one.kind if one else None, other.kind if other else None) for one, other in pairs[:6]]
    assert ("all_gather", None) in alone
    assert (None, "all_reduce") in alone


@settings(max_examples=draws(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(), scenarios())
def test_every_hop_is_paired_once_and_axes_add_up(a: dict[str, Any], b: dict[str, Any]) -> None:
    one, other = take_trip(Scenario.from_dict(a)), take_trip(Scenario.from_dict(b))
    found = compare_trips(one, other)
    assert [hop for hop, _ in found.hops if hop] == list(one.hops)
    assert [hop for _, hop in found.hops if hop] == list(other.hops)
    for trip in (one, other):
        totals = [axis_totals(trip, axis) for axis in ("tp", "cp", "ep", "pp")]
        assert sum(each.comm_ops for each in totals) == trip.log.comm_ops
        assert sum(each.crossings for each in totals) == trip.log.node_crossings
        assert sum(each.nvlink_bytes + each.ib_bytes for each in totals) == trip.log.bytes
