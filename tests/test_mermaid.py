"""Mermaid text within the limits of its renderers."""

from __future__ import annotations

import pytest

import tracer
from tracer.errors import ConfigError
from tracer.trip.export.mermaid import MAX_CHARACTERS, MAX_EDGES, to_mermaid
from tracer.trip.trip import take_trip


def test_six_cuts_draws_every_gpu_it_touches() -> None:
    trip = take_trip(tracer.load_scenario("six-cuts"))
    text = to_mermaid(trip)
    assert all(f'g{rank}["GPU {rank}"]' in text for rank in trip.touched)
    assert text.count("-.->") == len(
        {(t.src, t.dst) for h in trip.hops for t in h.transfers if t.tier == "ib"}
    )


def wide(dp: int) -> tracer.Scenario:
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["model"] |= {"experts": dp * 4, "top_k": 8, "layers": 60}
    tables["mesh"] |= {"dp": dp, "ep": dp * 4, "edp": None}
    tables["cluster"]["nodes"] = None
    tables["picks"] = {}
    return tracer.Scenario.from_dict(tables)


def test_many_gpus_are_drawn_by_node() -> None:
    text = to_mermaid(take_trip(wide(64)))
    assert "GPUs touched" in text
    assert "g1[" not in text
    assert text.count("-->") + text.count("-.->") <= MAX_EDGES
    assert len(text) <= MAX_CHARACTERS


def test_over_the_limits_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigError, match=r"over Mermaid's limits of 500 arrows.*export to \.svg"):
        to_mermaid(take_trip(wide(2048)))
