"""What is said of counts and probabilities on the way, for one token and for several."""

from __future__ import annotations

import pytest

from layouts.compose.scene_of_trip import build_scene
from tracer import load_scenario, take_trip
from tracer.trip.trips import take_trips

ASKED = load_scenario("six-cuts").with_(dispatch="low_latency", routing_metadata=True)
KINDS = ("counts_reduce", "counts_gather", "probs_dispatch")


@pytest.mark.parametrize("kind", KINDS)
def test_one_and_several_tokens_are_told(kind: str) -> None:
    one = build_scene(take_trip(ASKED))
    hop = next(hop for hop in one.hops if hop.kind == kind)
    assert all((hop.words.title, hop.words.what, hop.words.why, hop.words.stop))
    said = "a probability" if kind == "probs_dispatch" else "counts by expert"
    assert {move.why for move in hop.moves} == {said}
    several = build_scene(take_trips(ASKED, [(0, 1), (2, 5)]))
    moves = [move for hop in several.hops if hop.kind == kind for move in hop.moves]
    assert moves
    assert all(move.why.startswith("counts and probabilities: ") for move in moves)
