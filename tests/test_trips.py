"""Several tokens on one map: sums of their own trips, where they meet, and the busiest links."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from token_batches import FEW, batches

import tracer
from app.query.token_names import read_token_names
from tracer.trip.hop import WEIGHT_KINDS
from tracer.trip.trip import take_trip
from tracer.trip.trips import MAX_TOKENS, Trips, take_trips


@FEW
@given(batches())
def test_each_token_keeps_its_own_trip(trips: Trips) -> None:
    scenario = trips.scenario
    assert trips.trips[0] == take_trip(
        scenario.with_token(replica=scenario.replica, position=scenario.position)
    )
    for trip in trips.trips[1:]:
        assert trip.scenario.picks == ()
        assert trip == take_trip(trip.scenario)
    hops = [hop for step in trips.steps for _, hop in step.hops]
    assert len(hops) == sum(len(trip.hops) for trip in trips.trips)
    for token, trip in enumerate(trips.trips):
        own = [hop for step in trips.steps for taker, hop in step.hops if taker == token]
        assert own == list(trip.hops)


@FEW
@given(batches())
def test_loads_add_up(trips: Trips) -> None:
    expected: Counter[tuple[int, int, str]] = Counter()
    for trip in trips.trips:
        for hop in trip.hops:
            if hop.kind not in WEIGHT_KINDS:
                for move in hop.transfers:
                    expected[move.src, move.dst, str(move.tier)] += move.bytes
    assert {(load.src, load.dst, load.tier): load.bytes for load in trips.links} == expected
    totals = trips.totals
    assert sum(load.bytes for load in trips.links) == totals["bytes"] == sum(totals["bytes_by_tier"].values())
    assert totals["node_crossings"] == sum(load.transfers for load in trips.links if load.tier == "ib")
    for direction in ("in", "out"):
        ports = [port for port in trips.ports if port.direction == direction]
        assert sum(port.bytes for port in ports) == totals["bytes"]
    assert [port.seconds for port in trips.ports] == sorted((p.seconds for p in trips.ports), reverse=True)
    assert set(trips.touched) == {gpu for trip in trips.trips for gpu in trip.touched}
    last = trips.tallies[-1]
    assert (last.gpus_touched, last.node_crossings, last.bytes) == (
        totals["gpus_touched"], totals["node_crossings"], totals["bytes"],
    )  # fmt: skip
    assert len(trips.tallies) == len(trips.steps)


@FEW
@given(batches())
def test_meetings_are_all_pairs_on_one_gpu_in_one_hop(trips: Trips) -> None:
    for step in trips.steps:
        found = {(meeting.gpu, token) for meeting in step.meetings for token in meeting.tokens}
        expected = set()
        for token, hop in step.hops:
            for other, theirs in step.hops:
                if token != other:
                    expected |= {(gpu, token) for gpu in hop.touched & theirs.touched}
        assert found == expected


@FEW
@given(batches())
def test_json_follows_its_schema(trips: Trips) -> None:
    text = (resources.files("tracer") / "data" / "schemas" / "trips.schema.json").read_text()
    data = trips.to_dict()
    jsonschema.validate(data, json.loads(text))
    assert json.loads(json.dumps(data)) == data
    assert str(trips)


def test_replicas_meet_at_their_experts() -> None:
    """Tokens of replicas 2 and 3 first share a GPU where their picks send them."""
    trips = take_trips(tracer.load_scenario("six-cuts"), [40, (3, 40)])
    first = next(step for step in trips.steps if step.meetings)
    assert (first.hop.layer, first.hop.kind) == (1, "dispatch")
    assert trips.trips[0].log.node_crossings == 15
    assert [trip.scenario.home for trip in trips.trips] == [11, 15]


def test_tokens_of_a_replica_meet_in_attention() -> None:
    trips = take_trips(tracer.load_scenario("six-cuts"), [0, 40])
    first = next(step for step in trips.steps if step.meetings)
    assert (first.hop.layer, first.hop.kind) == (1, "kv_exchange")
    assert [meeting.gpu for meeting in first.meetings] == [8, 9, 10, 11]


def test_the_last_position_alone_goes_through_the_head() -> None:
    trips = take_trips(tracer.load_scenario("six-cuts"), [40, 63])
    assert [(str(step.hop.kind), step.tokens) for step in trips.steps[-2:]] == [
        ("head_copy", (1,)), ("logits_gather", (1,)),
    ]  # fmt: skip
    dead = trips.to_dict()["steps"][-3]["dead"]
    assert dead == [0]


def test_two_hundred_tokens_of_deepseek() -> None:
    trips = take_trips(tracer.load_scenario("deepseek-v3-prefill-ep32"), [(0, p) for p in range(200)])
    assert len(trips.trips) == 200
    assert trips.links[0].tier == "ib"
    assert "… 176 more" in str(trips)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], r"tokens='0 tokens' must be 1 to 512 tokens"),
        ([3, (2, 3)], r"names position 3 of replica 2 twice"),
        (range(MAX_TOKENS + 1), r"tokens='513 tokens' must be 1 to 512 tokens"),
        ([99], r"token\.position=99 must lie in the prompt of 64"),
        ([(4, 0)], r"token\.replica=4 must be one of the 4 replicas"),
    ],
)
def test_wrong_tokens(tokens: Any, message: str) -> None:
    with pytest.raises(tracer.ConfigError, match=message):
        take_trips(tracer.load_scenario("six-cuts"), tokens)


@pytest.mark.parametrize("text", ["", "x", "1,", "1-", "3-1", "-1", "1:2:3", "1.5", "0-99999999", "9" * 40])
def test_wrong_names_of_tokens(text: str) -> None:
    with pytest.raises(tracer.ConfigError, match=r"--tokens='.*' must (be positions|run upwards)"):
        read_token_names(text, 0)
