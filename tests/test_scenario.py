"""A deployment and the question asked of it: what fits, what changes together, and what needs a model."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from math import fsum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer
from tracer.display import exact_sum, running_sums
from tracer.errors import ConfigError
from tracer.memory.reports import groups_report, rank_report
from tracer.mesh.mesh import Mesh
from tracer.scenario.deployment import BareDeployment, Deployment
from tracer.scenario.files import load_bare_scenario
from tracer.scenario.placement import Placement
from tracer.scenario.plan import Contract, DispatchMode, Plan, Sp
from tracer.scenario.scenario import BareScenario, Scenario, with_model
from tracer.scenario.token import Phase

BARE = {"mesh": {"tp": 2, "dp": 4, "ep": 4}, "token": {"gpu": 3}}


def test_tables_without_a_model_are_a_bare_scenario(tmp_path: Any) -> None:
    bare = BareScenario.from_dict(BARE)
    assert type(bare) is BareScenario
    assert type(bare.deployment) is BareDeployment
    assert (bare.home, bare.replica) == (3, 1)
    assert BareScenario.from_toml(bare.to_toml()) == bare
    assert groups_report(bare, "ep")["groups"]["ep"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert rank_report(bare, 3)["holds"] is None
    path = tmp_path / "mesh.toml"
    path.write_text(bare.to_toml(), encoding="utf-8")
    assert load_bare_scenario(path) == bare
    for load in (
        lambda: tracer.load_scenario(path),
        lambda: Scenario.from_dict(BARE),
        lambda: with_model(bare),
    ):
        with pytest.raises(
            ConfigError, match=r"model is not given and is needed to take a trip; add a \[model\] table"
        ):
            load()


def test_tables_with_a_model_are_a_scenario_whoever_reads_them() -> None:
    tables = tracer.load_scenario("six-cuts").to_dict()
    found = BareScenario.from_dict(tables)
    assert type(found) is Scenario
    assert found == Scenario.from_dict(tables) == with_model(found)


def test_words_are_kept_as_members_of_their_enums() -> None:
    plan = Plan(sp="off", contract="ag_rs", dispatch="low_latency")  # type: ignore[arg-type]
    assert (plan.sp, plan.contract, plan.dispatch) == (Sp.OFF, Contract.AG_RS, DispatchMode.LOW_LATENCY)
    assert type(plan.sp) is Sp
    scenario = tracer.load_scenario("six-cuts-decode")
    assert scenario.phase is Phase.DECODE
    assert type(scenario.to_dict()["phase"]) is str
    with pytest.raises(ConfigError, match=r"phase='decoding' must be prefill or decode"):
        scenario.with_(phase="decoding")


def test_with_changes_the_question_the_deployment_or_both() -> None:
    scenario = tracer.load_scenario("six-cuts")
    moved = scenario.with_(plan=dataclasses.replace(scenario.plan, sp=Sp.OFF), picks=(), name="no SP")
    assert (moved.plan.sp, moved.picks, moved.name) == (Sp.OFF, (), "no SP")
    assert (moved.token, moved.mesh, moved.model) == (scenario.token, scenario.mesh, scenario.model)
    assert scenario.with_(deployment=scenario.deployment) == scenario
    assert scenario.with_() == scenario


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tokn": None},
            r"tokn is no part of a scenario, and no key of its .*; did you mean 'token'",
        ),
        ({"mesh": Mesh.build(tp=2)}, r"cluster\.world_size=32 must be the mesh's 2 ranks"),
        (
            {"mesh": Mesh.build(tp=2, cp=2, dp=4, pp=2, ep=8)},
            r"32 experts on 16 EP ranks' must hold .* 8 EP ranks",
        ),
        (
            {"placement": Placement.linear(64, 16)},
            r"64 experts on 16 EP ranks' must hold the model's 32 experts",
        ),
        (
            {"layer_placements": ((9, Placement.linear(32, 16)),)},
            r"slots_by_layer\.9='a table' is for a layer",
        ),
        ({"picks": ((1, (0,)),)}, r"picks\.1=\[0\] must name top_k"),
        ({"plan": Plan(stage_layers=(1, 2))}, r"must list 2 stages that add up to 8 layers"),
    ],
)
def test_with_checks_all_parts_again(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tracer.load_scenario("six-cuts").with_(**changes)


def test_experts_without_a_placement_are_placed_in_a_line() -> None:
    scenario = tracer.load_scenario("six-cuts").with_(placement=None)
    assert scenario.placement_of(1) == Placement.linear(32, 16)
    assert scenario.placement == scenario.deployment.placement


def test_stages_layers_and_ranks_say_where_they_belong() -> None:
    scenario = tracer.load_scenario("deepseek-v3-prefill-ep32-tp4")
    deployment = scenario.deployment
    assert isinstance(deployment, Deployment)
    found = [deployment.layers_of(stage) for stage in range(scenario.mesh.stages)]
    assert [layer for layers in found for layer in layers] == list(range(1, scenario.model.layers + 1))
    assert all(deployment.stage_of_layer(layer) == at for at, layers in enumerate(found) for layer in layers)
    for layer in (0, scenario.model.layers + 1):
        with pytest.raises(ConfigError, match=rf"layer={layer} must be from 1 to"):
            deployment.stage_of_layer(layer)
    six = tracer.load_scenario("six-cuts")
    assert [six.stage_of(rank) for rank in (0, 15, 16, 31)] == [0, 0, 1, 1]
    assert (six.mesh.dispatch_size, six.mesh.replica_size) == (16, 4)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_running_sums_are_exact_so_far(values: list[float]) -> None:
    exact = [float(sum(map(Fraction, values[: end + 1]))) for end in range(len(values))]
    assert list(running_sums(values)) == exact
    assert exact[-1] == fsum(values)


def test_sums_too_large_for_a_float_are_infinite() -> None:
    assert exact_sum([1.7e308, 1.7e308]) == float("inf")
    assert list(running_sums([1.7e308, 1.7e308, 1.0, float("inf")])) == [1.7e308, *[float("inf")] * 3]


def test_the_clock_since_the_landing_ends_with_the_trips_seconds() -> None:
    told = tracer.take_trip(tracer.load_scenario("six-cuts")).to_dict()
    assert told["hops"][-1]["seconds_since_landing"] == told["seconds"]
