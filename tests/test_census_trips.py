"""Σ of the hops of a batch's tokens is its census, on any scenario hypothesis draws and in named cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from census_cases import Case, cases, check
from draws import draws
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from plain_census import Batch, assert_census, plain_census
from strategies import scenarios

from tracer.scenario.scenario import Scenario as EngineScenario

pytest.importorskip("numba")

from tracer.batch.census.take import landed_batch, landed_census
from tracer.scenario.files import load_scenario

Scenario = dict[str, Any]
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(suppress_health_check=SLOW_DRAWS)
@given(scenarios(), st.data())
def test_sum_of_trips_is_the_census(drawn: Scenario, data: st.DataObject) -> None:
    scenario = EngineScenario.from_dict(drawn)
    model = scenario.model
    assume(model.moe_layers)
    count = data.draw(st.integers(1, 8), label="tokens")
    replicas = st.integers(0, scenario.mesh.dp - 1)
    positions = st.integers(0, scenario.token.prompt - 1)
    tokens = data.draw(st.lists(st.tuples(replicas, positions), min_size=count, max_size=count))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000), label="picks seed"))
    scores = rng.random((model.moe_layers, count, model.experts or 0))
    batch = Batch(scenario, tuple(tokens), scores.argsort(-1)[:, :, : model.top_k])
    assert_census(batch.counted(threads=1), plain_census(batch))


@pytest.mark.parametrize("name", ["six-cuts", "six-cuts-pp-inside-dp"])
def test_the_whole_batch_of_a_preset(name: str) -> None:
    scenario = load_scenario(name).with_(picks=())
    picks, _ = landed_batch(scenario)
    prompt = scenario.token.prompt
    batch = Batch(scenario, tuple(divmod(index, prompt) for index in range(picks.shape[1])), picks)
    assert_census(batch.counted(), plain_census(batch))
    assert landed_census(scenario).tokens == 4 * prompt


@settings(suppress_health_check=SLOW_DRAWS, max_examples=draws(30))
@given(scenarios(contracts=["ep", "dwdp"]), st.integers(0, 1000))
def test_weights_are_pulled_once_a_layer(drawn: Scenario, seed: int) -> None:
    """Under dwdp the census counts a rank's pulls once a layer; a trip of position 0 shows the same."""
    scenario = EngineScenario.from_dict(drawn)
    model = scenario.model
    assume(model.moe_layers and scenario.plan.contract == "dwdp")
    rng = np.random.default_rng(seed)
    picks = rng.random((model.moe_layers, 1, model.experts or 0)).argsort(-1)[:, :, : model.top_k]
    batch = Batch(scenario, ((0, 0),), picks)
    census = batch.counted(threads=1)
    assert_census(census, plain_census(batch))
    assert not census.sent.any()


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_every_branch_of_the_census(case: Case) -> None:
    batch = case.batch()
    check(case, batch, plain_census(batch))
