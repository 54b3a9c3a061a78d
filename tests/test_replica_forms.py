"""Closed forms with replicas against plain loops: every home, every position, every choice of experts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import lcm
from typing import Any

import pytest
from draws import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import slot_tables

from tracer.scenario.scenario import Scenario
from tracer.traffic.chance import HitChance
from tracer.traffic.dispatch import expected_copies, expected_messages
from tracer.traffic.moe import pulled_bytes
from tracer.trip.hop import Part, Where
from tracer.trip.hops.ep import dispatch_from, pulls_to
from tracer.trip.hops.routes import tied_ep_ranks


def tables(ep: int, etp: int, per_node: int, slots: list[int], experts: int, top_k: int) -> dict[str, Any]:
    model = {"layers": 1, "hidden": 8, "heads": 1, "head_dim": 8, "vocab": 8, "expert_hidden": 8}
    return {
        "model": model | {"experts": experts, "top_k": top_k},
        "mesh": {"dp": ep * etp, "ep": ep, "etp": etp},
        "cluster": {"gpus_per_node": per_node},
        "placement": {"kind": "table", "slots": slots},
    }


@st.composite
def placed(draw: st.DrawFn) -> dict[str, Any]:
    """A few GPUs, nodes of any size, and a table of slots in any order."""
    ep, etp = draw(st.integers(2, 6)), draw(st.sampled_from([1, 1, 2]))
    experts = draw(st.integers(2, 6))
    slots = draw(slot_tables(experts, ep))
    return tables(ep, etp, draw(st.integers(1, 4)), slots, experts, draw(st.integers(1, min(3, experts))))


def plain_copies(scenario: Scenario, positions: int) -> dict[str, float]:
    """Copies a token by tier, over the first positions and all picks, from the hops' own transfers."""
    model, homes = scenario.model, range(scenario.mesh.world_size)
    choices = list(combinations(range(model.experts or 0), model.top_k or 0))
    found = {"nvlink": 0.0, "ib": 0.0}
    for home in homes:
        for position in range(positions):
            for picks in choices:
                where = Where(1, 0, position, home, Part.MOE, picks)
                for transfer in dispatch_from(scenario, where, home):
                    found[str(transfer.tier)] += 1
    return {tier: count / (len(homes) * positions * len(choices)) for tier, count in found.items()}


def turns(scenario: Scenario) -> int:
    """After so many positions the ties of all homes begin anew."""
    placement = scenario.placement_of(1)
    return lcm(*(
        len(tied_ep_ranks(scenario, placement, 0, home, expert))
        for home in range(scenario.mesh.world_size)
        for expert in range(placement.experts)
    ))  # fmt: skip


@settings(max_examples=draws(60), suppress_health_check=[HealthCheck.too_slow])
@given(placed())
def test_copies_expected_over_positions_are_those_of_every_position(drawn: dict[str, Any]) -> None:
    scenario = Scenario.from_dict(drawn)
    copies = expected_copies(scenario, 1)
    assert {"nvlink": copies.nvlink, "ib": copies.ib} == pytest.approx(
        plain_copies(scenario, turns(scenario))
    )
    low = Scenario.from_dict(drawn | {"mesh": drawn["mesh"] | {"dispatch": "low_latency"}})
    plain = plain_copies(low, turns(low))
    assert (copies.messages, copies.messages_ib) == pytest.approx((sum(plain.values()), plain["ib"]))
    assert expected_messages(low, 1) == pytest.approx((sum(plain.values()), plain["ib"]))


@settings(max_examples=draws(60), suppress_health_check=[HealthCheck.too_slow])
@given(placed())
def test_pulled_weights_are_those_of_every_puller(drawn: dict[str, Any]) -> None:
    scenario = Scenario.from_dict(drawn | {"mesh": drawn["mesh"] | {"contract": "dwdp"}})
    plain = {"nvlink": 0, "ib": 0}
    for rank in range(scenario.mesh.world_size):
        for transfer in pulls_to(scenario, Where(1, 0, 0, rank, Part.MOE), rank):
            plain[str(transfer.tier)] += transfer.bytes
    found = pulled_bytes(scenario)
    assert found == pytest.approx(tuple(size / scenario.mesh.world_size for size in plain.values()))


def test_a_part_of_the_turns_moves_a_little_more_or_less() -> None:
    """Experts 0 and 1 share a GPU at every other position, so a batch of one position has its own mean."""
    scenario = Scenario.from_dict(tables(4, 1, 4, [2, 3, 2, 3, 0, 1, 0, 3], 4, 2))
    assert turns(scenario) == 6
    copies = expected_copies(scenario, 1)
    assert plain_copies(scenario, 6)["nvlink"] == pytest.approx(copies.nvlink)
    assert plain_copies(scenario, 1)["nvlink"] < 0.97 * copies.nvlink


def test_turns_that_do_not_matter_to_a_gpu_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 to 13 replicas begin anew after 30,030 positions; a GPU holds one expert, whose turns alone count."""
    asked: list[int] = []
    of_set = HitChance.of_set

    def counted(chance: HitChance, experts: Iterable[int]) -> float:
        asked.append(1)
        return of_set(chance, experts)

    monkeypatch.setattr(HitChance, "of_set", counted)
    replicas = (2, 3, 5, 7, 11, 13)
    slots = [expert for expert, count in enumerate(replicas) for _ in range(count)] + [6]
    gpus = len(slots)
    copies = expected_copies(Scenario.from_dict(tables(gpus, 1, 1, slots, 7, 1)), 1)
    assert copies.ib == pytest.approx(6 / 7)  # each home has one of seven experts itself
    assert len(asked) <= gpus * sum(slots.count(expert) for expert in slots)
