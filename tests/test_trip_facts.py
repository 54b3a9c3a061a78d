"""Single figures of a trip, by name."""

from __future__ import annotations

import pytest

from tracer import load_scenario, take_trip
from tracer.errors import ConfigError
from tracer.scenario.files import preset_names
from tracer.trip.facts import trip_fact, trip_facts


@pytest.mark.parametrize("name", preset_names())
def test_facts_are_those_of_the_trip(name: str) -> None:
    trip = take_trip(load_scenario(name))
    facts = trip_facts(trip)
    assert facts["gpus"] == trip.log.world_size
    assert facts["gpus_touched"] == len(trip.touched)
    assert facts["home"] == facts["home.0"] == trip.scenario.home
    gpus = [facts[key] for key in facts if key.startswith("expert_gpus.")]
    assert set(gpus) <= set(trip.touched)
    relays = {facts[key] for key in facts if key.startswith("relays.")}
    assert relays <= set(trip.touched)


def test_a_number_in_words_and_one_too_large_for_words() -> None:
    trip = take_trip(load_scenario("six-cuts"))
    assert trip_fact(trip, "experts_per_gpu~") == "two"
    assert trip_fact(trip, "experts~") == "32"
    assert trip_fact(trip, "bytes") == "532,480"


def test_an_unknown_fact_is_named() -> None:
    trip = take_trip(load_scenario("llama-3.1-405b"))
    with pytest.raises(ConfigError, match=r"fact='experts' is not one of this trip"):
        trip_fact(trip, "experts")
