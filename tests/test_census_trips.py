"""Σ of the trips of a batch's tokens is the batch's census, on any scenario hypothesis draws."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies import scenarios

from tracer.scenario import Scenario as EngineScenario

pytest.importorskip("numba")

from tracer.census.homes import GivenHomes
from tracer.census.take import landed_batch, landed_census, take_census
from tracer.picks.source import ArrayPicks
from tracer.presets import load_scenario
from tracer.trip import take_trip

Scenario = dict[str, Any]
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
MOE_KINDS = {
    "ep": ("dispatch", "combine"),
    "ag_rs": ("dispatch", "combine"),
    "tp": ("all_gather", "all_reduce", "reduce_scatter"),
}


def trips_of(scenario: EngineScenario, tokens: list[tuple[int, int]], picks: np.ndarray) -> dict[str, Any]:
    """Messages, bytes by tier and pulled bytes of the MoE blocks of these tokens' trips."""
    contract = str(scenario.plan.contract)
    sent: Counter[tuple[int, int]] = Counter()
    back: Counter[tuple[int, int]] = Counter()
    pulled: dict[tuple[int, int, int], int] = {}
    sizes = {"sent": Counter(), "back": Counter()}
    layers = [n for n in range(1, scenario.need_model().layers + 1) if scenario.need_model().is_moe(n)]
    for number, (replica, position) in enumerate(tokens):
        own = tuple((layer, tuple(picks[i, number].tolist())) for i, layer in enumerate(layers))
        moved = replace(scenario.with_token(gpu=None, replica=replica, position=position), picks=own)
        for hop in take_trip(moved).hops:
            for t in hop.transfers:
                if hop.kind == "weight_pull":
                    pulled[hop.layer, t.src, t.dst] = t.bytes
                elif hop.part == "moe" and hop.kind in MOE_KINDS.get(contract, ()):
                    outward = t.role in ("row", "dispatch", "forward")
                    (sent if outward else back)[t.src, t.dst] += 1
                    sizes["sent" if outward else "back"][str(t.tier)] += t.bytes
    return {"sent": sent, "back": back, "pulled": pulled, "bytes": sizes}


def cells(matrix: np.ndarray) -> Counter[tuple[int, int]]:
    return Counter({(int(i), int(j)): int(matrix[i, j]) for i, j in zip(*np.nonzero(matrix), strict=True)})


def assert_same(scenario: EngineScenario, tokens: list[tuple[int, int]], picks: np.ndarray) -> None:
    mesh, landing = scenario.mesh, scenario.landing
    homes = []
    for replica, position in tokens:
        cp, tp = landing.place_of(position)
        homes.append(mesh.rank(tp=tp, cp=cp, dp=replica, pp=0))
    found = GivenHomes.of_ranks(scenario, np.array(homes))
    found = replace(found, prompt_positions=np.array([position for _, position in tokens]))
    census = take_census(scenario, ArrayPicks(picks), homes=found, threads=1)
    trips = trips_of(scenario, tokens, picks)
    assert cells(census.sent) == trips["sent"]
    assert cells(census.returned) == trips["back"]
    assert {t: n for t, n in census.bytes_by_tier("dispatch").items() if n} == dict(trips["bytes"]["sent"])
    assert {t: n for t, n in census.bytes_by_tier("combine").items() if n} == dict(trips["bytes"]["back"])
    copies = 1 if scenario.plan.contract == "tp" or scenario.plan.sp != "off" else mesh.size_of("tp")
    wide = picks.shape[2] + len(scenario.always_picked)
    assert census.picks == picks.shape[0] * picks.shape[1] * wide * copies


@settings(suppress_health_check=SLOW_DRAWS)
@given(scenarios(), st.data())
def test_sum_of_trips_is_the_census(drawn: Scenario, data: st.DataObject) -> None:
    scenario = EngineScenario.from_dict(drawn)
    model = scenario.need_model()
    assume(model.moe_layers)
    count = data.draw(st.integers(1, 8), label="tokens")
    replicas = st.integers(0, scenario.mesh.size_of("dp") - 1)
    positions = st.integers(0, scenario.token.prompt - 1)
    tokens = data.draw(st.lists(st.tuples(replicas, positions), min_size=count, max_size=count))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000), label="picks seed"))
    scores = rng.random((model.moe_layers, count, model.experts or 0))
    assert_same(scenario, tokens, scores.argsort(-1)[:, :, : model.top_k])


@pytest.mark.parametrize("name", ["six-cuts", "six-cuts-pp-inside-dp"])
def test_the_whole_batch_of_a_preset(name: str) -> None:
    scenario = replace(load_scenario(name), picks=())
    picks, _ = landed_batch(scenario)
    prompt = scenario.token.prompt
    tokens = [divmod(index, prompt) for index in range(picks.shape[1])]
    assert_same(scenario, tokens, picks)
    assert landed_census(scenario).tokens == 4 * prompt


@settings(suppress_health_check=SLOW_DRAWS, max_examples=30)
@given(scenarios(contracts=["ep", "dwdp"]), st.integers(0, 1000))
def test_weights_are_pulled_once_a_layer(drawn: Scenario, seed: int) -> None:
    """Under dwdp the census counts a rank's pulls once a layer; a trip of position 0 shows the same."""
    scenario = EngineScenario.from_dict(drawn)
    model = scenario.need_model()
    assume(model.moe_layers and scenario.plan.contract == "dwdp")
    rng = np.random.default_rng(seed)
    picks = rng.random((model.moe_layers, 1, model.experts or 0)).argsort(-1)[:, :, : model.top_k]
    homes = GivenHomes.of_ranks(scenario, np.array([scenario.mesh.rank(tp=0, cp=0, dp=0, pp=0)]))
    census = take_census(scenario, ArrayPicks(picks), homes=homes, threads=1)
    total: Counter[tuple[int, int]] = Counter()
    for (_, src, dst), size in trips_of(scenario, [(0, 0)], picks)["pulled"].items():
        total[src, dst] += size
    assert cells(census.pulled_bytes) == total
    assert not census.sent.any()
