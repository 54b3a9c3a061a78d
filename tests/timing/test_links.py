"""Links, hops and collectives: units, closed forms, monotonicity, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing.drawing import few

import tracer
from tracer.display import format_seconds
from tracer.errors import ConfigError
from tracer.mesh.cluster import Link
from tracer.timing.collectives import COLLECTIVES, busbw_factor, collective_seconds, latency_steps
from tracer.trip.clock import LinkRates, hop_time, transfer_seconds, trip_time
from tracer.trip.trip import take_trip

BAD_NUMBERS = st.one_of(
    st.floats(max_value=-1e-9), st.just(float("nan")), st.just(float("inf")), st.text(max_size=3), st.none(),
    st.booleans(),
)  # fmt: skip


def test_a_transfer_is_latency_and_bytes_over_bandwidth_in_seconds():
    assert transfer_seconds(Link(50e9, 2e-6), 100_000) == 2e-6 + 100_000 / 50e9


def hop(scenario: tracer.Scenario, kind: str, layer: int = 1) -> tracer.Hop:
    return next(h for h in take_trip(scenario).hops if h.kind == kind and h.layer == layer)


def test_a_forwarded_copy_waits_for_the_relay_and_a_straight_one_does_not():
    """Six-cuts, layer 1: 11 ⇒ 3 over IB, then 3 → 2 over NVLink; 11 → 13 meanwhile."""
    six = tracer.load_scenario("six-cuts")
    time = hop_time(hop(six, "dispatch"), LinkRates(Link(450e9, 1e-6), Link(50e9, 5e-6)))
    assert time.seconds == pytest.approx(5e-6 + 8192 / 50e9 + 1e-6 + 8192 / 450e9, rel=1e-12)
    assert (time.binding, time.ib_seconds) == ("ib", pytest.approx(5e-6 + 8192 / 50e9))


def test_combine_takes_as_long_as_dispatch_when_rows_are_as_large():
    six, rates = tracer.load_scenario("six-cuts"), LinkRates(Link(450e9, 1e-6), Link(50e9, 5e-6))
    there, back = (hop_time(hop(six, kind), rates).seconds for kind in ("dispatch", "combine"))
    assert there == pytest.approx(back)


def test_copies_of_one_port_follow_one_another():
    """Layer 3: 11 → 15 and 11 → 8 leave through one NVLink port."""
    six = tracer.load_scenario("six-cuts")
    assert hop_time(hop(six, "dispatch", 3), LinkRates.of(six.cluster)).seconds == 2 * 8192 / 450e9


@pytest.mark.parametrize(("algorithm", "steps"), [("ring", 3), ("direct", 1)])
def test_a_ring_of_tp_pays_its_latencies(algorithm: str, steps: int):
    data = tracer.load_scenario("six-cuts").to_dict()
    data["mesh"].update(tp=4, dp=2, tp_algo=algorithm, edp=None)
    scenario = tracer.Scenario.from_dict(data | {"token": {"prompt": 64}})
    time = hop_time(hop(scenario, "all_gather"), LinkRates(Link(450e9, 1e-6), Link(50e9)))
    assert time.seconds == pytest.approx(steps * 1e-6 + 3 * 8192 / 450e9)


def test_landing_takes_no_time():
    six = tracer.load_scenario("six-cuts")
    time = hop_time(take_trip(six).hops[0], LinkRates.of(six.cluster))
    assert (time.seconds, time.binding) == (0, None)


def test_the_log_and_the_json_carry_the_times_and_the_schema_knows_them():
    jsonschema = pytest.importorskip("jsonschema")
    trip = take_trip(tracer.load_scenario("six-cuts"))
    data, times = trip.to_dict(), trip_time(trip)
    assert [each["seconds"] for each in data["hops"]] == [each.seconds for each in times.hops]
    assert data["hops"][-1]["seconds_since_landing"] == pytest.approx(times.seconds) == data["seconds"]
    assert format_seconds(times.seconds) in str(trip).splitlines()[3 + len(trip.hops)]
    assert "450 GB/s" in data["seconds_assume"]
    schema = Path(tracer.__file__).parent / "data" / "schemas" / "trip.schema.json"
    jsonschema.validate(data, json.loads(schema.read_text()))


def test_weights_pulled_in_time_are_said_to_be_pulled_late():
    data = tracer.load_scenario("six-cuts").to_dict()
    data["mesh"]["contract"] = "dwdp"
    times = trip_time(take_trip(tracer.Scenario.from_dict(data)))
    assert "not ahead" in times.assumption
    assert times.seconds > 1e-3


@pytest.mark.parametrize(
    ("kind", "factor"),
    [("all_reduce", 1.5), ("all_gather", 0.75), ("reduce_scatter", 0.75), ("all_to_all", 0.75),
     ("gather", 0.75), ("scatter", 0.75), ("broadcast", 1), ("reduce", 1), ("send_recv", 1)],
)  # fmt: skip
def test_busbw_factors_are_those_of_nccl_tests(kind: str, factor: float):
    assert busbw_factor(kind, 4) == factor


@few
@given(
    st.sampled_from(COLLECTIVES), st.integers(2, 64), st.floats(1, 1e12), st.sampled_from(["ring", "direct"])
)
def test_without_latency_the_bus_runs_at_the_links_rate(kind: str, ranks: int, size: float, algorithm: str):
    seconds = collective_seconds(kind, size, ranks, Link(50e9), algorithm)
    assert busbw_factor(kind, ranks) * size / seconds == pytest.approx(50e9)


@few
@given(st.sampled_from(COLLECTIVES), st.integers(1, 64), st.floats(0, 1e12), st.floats(0, 1e12))
def test_more_bytes_never_take_less_time(kind: str, ranks: int, first: float, second: float):
    low, high = sorted((first, second))
    link = Link(50e9, 1e-6)
    assert collective_seconds(kind, low, ranks, link) <= collective_seconds(kind, high, ranks, link)


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    link = Link(450e9, 2e-6)
    parts = sum(collective_seconds(kind, 1e6, 8, link) for kind in ("reduce_scatter", "all_gather"))
    assert collective_seconds("all_reduce", 1e6, 8, link) == pytest.approx(parts)
    assert latency_steps("all_reduce", 8) == 14
    assert latency_steps("all_reduce", 8, "direct") == 2


def test_a_group_of_one_takes_no_time():
    assert collective_seconds("all_reduce", 1e9, 1, Link(1e9, 1.0)) == 0


@few
@given(BAD_NUMBERS)
def test_bad_bytes_are_refused(size: object):
    with pytest.raises(ConfigError, match=r"total_bytes.*must be a finite number of 0 or more"):
        collective_seconds("all_gather", size, 4, Link(1e9))  # type: ignore[arg-type]


def test_words_that_are_no_collective_are_refused():
    with pytest.raises(ConfigError, match="collective='all_gathr' must be all_reduce"):
        busbw_factor("all_gathr", 4)
    with pytest.raises(ConfigError, match="algorithm='tree' must be ring or direct"):
        collective_seconds("all_gather", 1, 4, Link(1e9), "tree")
