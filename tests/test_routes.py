"""Which copy of an expert serves a source, and what is said where no relay is."""

from __future__ import annotations

import pytest

from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.trip.hop import Part, Where
from tracer.trip.hops.ep import dispatch, weight_pull
from tracer.trip.hops.routes import tied_ep_ranks

TWO_COPIES = {
    "cluster": {"gpus_per_node": 2},
    "model": {"layers": 1, "hidden": 8, "experts": 2, "top_k": 1},
    "mesh": {"dp": 4, "ep": 4},
    "placement": {"kind": "table", "slots": [0, 1, 0, 1]},
}


@pytest.mark.parametrize(
    ("source", "expert", "ranks"),
    [(0, 0, [0]), (2, 0, [2]), (1, 0, [0]), (3, 0, [2]), (0, 1, [1]), (3, 1, [3])],
)
def test_its_own_copy_serves_a_source_then_its_nodes(source: int, expert: int, ranks: list[int]) -> None:
    scenario = Scenario.from_dict(TWO_COPIES)
    placement = scenario.placement_of(1)
    assert list(tied_ep_ranks(scenario, placement, 0, source, expert)) == ranks


def test_a_missing_relay_is_said_once_a_source_and_gpu() -> None:
    scenario = Scenario.from_dict(
        TWO_COPIES
        | {"cluster": {"gpus_per_node": 3, "nodes": 2}, "token": {"replica": 2}, "picks": {"1": [1]}}
        | {"placement": {"kind": "table", "slots": [0, 0, 0, 1]}}
    )
    hop = dispatch(scenario, Where(1, 0, scenario.position, scenario.home, Part.MOE, (1,)))
    assert hop.note == "GPU 2 has no relay for GPU 3: sent straight"
    relayed = load_scenario("six-cuts").with_(picks=())
    where = Where(1, 0, relayed.position, relayed.home, Part.MOE, (5, 27))
    assert dispatch(relayed, where).note == ""


@pytest.mark.parametrize(("per_node", "note"), [(8, ""), (4, "WARNING: the dwdp group spans nodes")])
def test_pulls_are_every_slice_that_is_not_here(per_node: int, note: str) -> None:
    """An expert of 3 x 8 x 5 bf16 elements is cut in three of 80 bytes; GPU 0 has a slice of two."""
    scenario = Scenario.from_dict(
        {
            "cluster": {"gpus_per_node": per_node},
            "model": {"layers": 1, "hidden": 8, "experts": 4, "top_k": 1, "expert_hidden": 5},
            "mesh": {"dp": 6, "etp": 3, "ep": 2, "contract": "dwdp"},
        }
    )
    pulls = weight_pull(scenario, Where(1, 0, 0, 0, Part.MOE, (0,)))
    assert {(pull.src, pull.dst): pull.bytes for pull in pulls.transfers} == {
        (source, 0): 2 * 80 for source in range(1, 6)
    }
    assert pulls.note.startswith(note)
    assert bool(pulls.note) == bool(note)
