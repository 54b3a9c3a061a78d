"""Both phases side by side, a generation's running totals, who reads final rows, and replicas that meet."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, scenarios

import tracer
from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario
from tracer.serving.generation import generate
from tracer.serving.lockstep import lockstep, meeting_replicas
from tracer.serving.phases import phase_table


@pytest.fixture(scope="module")
def six_cuts() -> Scenario:
    return tracer.load_scenario("six-cuts")


def changed(scenario: Scenario, **tables: dict[str, Any]) -> Scenario:
    base = scenario.to_dict()
    base["mesh"]["edp"] = base["cluster"]["nodes"] = None
    for table, keys in tables.items():
        base[table] |= keys
    return Scenario.from_dict(base)


def test_each_cell_is_computed_or_says_why_not(six_cuts: Scenario) -> None:
    rows = {row.axis: row for row in phase_table(six_cuts).rows}
    assert list(rows) == ["dp", "cp", "sp", "tp", "ep", "pp"]
    stated = {
        (axis, name)
        for axis, row in rows.items()
        for name in ("prefill", "decode")
        if getattr(row, name).reason
    }
    assert stated == {("tp", "prefill"), ("tp", "decode"), ("pp", "prefill")}
    assert rows["cp"].prefill.figures == {"tokens_per_rank": 32, "kv_bytes": 4096}
    assert rows["cp"].decode.figures == {
        "query_bytes": 8192,
        "partial_bytes": 8448,
        "context_kv_bytes": 64 * 4096,
    }
    assert rows["sp"].prefill.figures["rows_per_rank"] == 16
    assert rows["sp"].decode.figures["rows_per_rank"] == 1
    assert rows["tp"].prefill.figures["bytes_per_gpu"] == 32 * 4096 * 2
    assert rows["ep"].prefill.figures["tokens_per_expert"] == 256 * 2 / 32
    assert rows["ep"].decode.figures["tokens_per_expert"] == 16 * 2 / 32
    assert "no NVLink relay" in rows["ep"].decode.text
    assert rows["pp"].decode.figures["send_seconds"] == pytest.approx(8192 / 50e9)


def test_latency_and_rates_turn_stated_cells_into_computed_ones(six_cuts: Scenario) -> None:
    slow = changed(six_cuts, cluster={"nvlink_latency_s": 2e-6})
    row = next(row for row in phase_table(slow).rows if row.axis == "tp")
    assert row.prefill.computed
    assert "bound by latency" in row.decode.text
    assert "memory-bound" in row.decode.text
    nameless = changed(six_cuts, cluster={"hardware": None})
    row = next(row for row in phase_table(nameless).rows if row.axis == "tp")
    assert "usually compute-bound" in row.prefill.text
    assert "no peak rates known" in row.prefill.reason


def test_prefill_of_a_long_prompt_is_compute_bound_and_decode_is_not(six_cuts: Scenario) -> None:
    row = next(row for row in phase_table(changed(six_cuts, token={"prompt": 4096})).rows if row.axis == "tp")
    assert "compute-bound" in row.prefill.text
    assert "memory-bound" in row.decode.text


@few
@given(scenarios())
def test_every_scenario_has_a_table(table: dict[str, Any]) -> None:
    scenario = Scenario.from_dict(table)
    if scenario.plan.kv_exchange == "hierarchical":
        with pytest.raises(ConfigError, match="no framework decodes over two levels"):
            phase_table(scenario)
        return
    assert str(phase_table(scenario)).count("\n") == 17
    assert scenario.with_phase("decode").position == scenario.token.prompt


def test_a_generation_adds_up_on_one_mesh(six_cuts: Scenario) -> None:
    whole = generate(six_cuts, 3)
    assert [(leg.name, leg.position) for leg in whole.legs] == [
        ("prefill", 63), ("decode", 64), ("decode", 65), ("decode", 66),
    ]  # fmt: skip
    trips = [leg.trip for leg in whole.legs if leg.trip]
    assert whole.total.comm_ops == sum(trip.log.comm_ops for trip in trips) == 43 + 3 * 51
    assert whole.total.bytes == sum(trip.log.bytes for trip in trips)
    assert whole.total.node_crossings == sum(trip.log.node_crossings for trip in trips)
    assert whole.total.gpus_touched == len({rank for trip in trips for rank in trip.touched})
    assert whole.legs[-1].since == pytest.approx(sum(leg.seconds for leg in whole.legs))
    assert [leg.home for leg in whole.legs] == [9, 11, 9, 11]
    assert "3 decode steps, 4 tokens" in str(whole)


def test_a_generation_over_two_pools_has_a_transfer(six_cuts: Scenario) -> None:
    decode = changed(six_cuts.with_phase("decode"), mesh={"tp": 1, "cp": 1, "dp": 32, "pp": 1, "ep": 32})
    whole = generate(six_cuts, 1, decode)
    prefill, transfer, step = whole.legs
    assert transfer.tally.bytes - prefill.tally.bytes == 2 * 8 * 128 * 8 * 2
    assert transfer.seconds == pytest.approx(64 * 32_768 / 50e9)
    assert step.home >= 32
    assert step.tally.gpus_touched > transfer.tally.gpus_touched > prefill.tally.gpus_touched
    assert "the transfer counts this position's K/V" in str(whole)
    assert whole.to_dict()["legs"][1]["transfer"]["bytes"] == 64 * 32_768


def test_a_generations_steps_are_counted(six_cuts: Scenario) -> None:
    with pytest.raises(ConfigError, match=r"steps=0 must be a whole number of at least 1"):
        generate(six_cuts, 0)
    with pytest.raises(ConfigError, match=r"is more than the 1000 that one answer holds"):
        generate(six_cuts, 1001)


def test_given_picks_are_the_followed_tokens_alone(six_cuts: Scenario) -> None:
    own = generate(six_cuts.with_token(position=63), 1).legs[0].trip
    assert own is not None
    assert own.scenario.picks == six_cuts.picks
    other = generate(six_cuts, 1).legs[0].trip
    assert other is not None
    assert other.scenario.picks == ()


def test_all_replicas_meet_when_they_share_the_experts(six_cuts: Scenario) -> None:
    assert meeting_replicas(six_cuts) == ((0, 1, 2, 3),)
    assert meeting_replicas(changed(six_cuts, mesh={"ep": 4})) == ((0,), (1,), (2,), (3,))
    assert meeting_replicas(changed(six_cuts, mesh={"ep": 8})) == ((0, 1), (2, 3))
    assert meeting_replicas(changed(six_cuts, mesh={"contract": "dwdp"})) == ((0,), (1,), (2,), (3,))
    alone = changed(six_cuts, mesh={"contract": "tp", "ep": 1, "etp": 2})
    assert meeting_replicas(alone) == ((0,), (1,), (2,), (3,))


@few
@given(
    st.tuples(*[st.sampled_from([1, 2, 3, 4])] * 4),
    st.permutations(["tp", "cp", "dp", "pp"]),
    st.permutations(["etp", "ep", "edp"]),
    st.data(),
)
def test_replicas_that_share_a_dispatch_group_meet_and_through_them_others(
    sizes: tuple[int, ...], order: list[str], expert_order: list[str], data: st.DataObject
) -> None:
    mesh: dict[str, Any] = dict(zip(("tp", "cp", "dp", "pp"), sizes, strict=True))
    stage = sizes[0] * sizes[1] * sizes[2]
    mesh["ep"] = data.draw(st.sampled_from([ep for ep in range(1, stage + 1) if stage % ep == 0]))
    mesh |= {"order": "-".join(order), "expert_order": "-".join(expert_order)}
    model = {"layers": sizes[3], "experts": mesh["ep"], "top_k": 1}
    scenario = Scenario.from_dict({"mesh": mesh, "model": model})
    groups = [{replica} for replica in range(sizes[2])]
    for place in range(stage):
        members = scenario.mesh.group(scenario.mesh.rank_in_stage(0, place), "dispatch")
        joined = {scenario.mesh.dense.coordinate(rank, "dp") for rank in members}
        met = set().union(*(group for group in groups if group & joined))
        groups = [met, *(group for group in groups if not group & joined)]
    assert sorted(meeting_replicas(scenario)) == sorted(tuple(sorted(group)) for group in groups)


def test_the_slowest_replica_sets_the_pace(six_cuts: Scenario) -> None:
    step = lockstep(six_cuts, [1, 2, 0, 4], moe=1.0, dummy=0.5)
    assert step.length == 8 * (4 + 1)
    assert step.waited == (8 * 3, 8 * 2, 8 * 3.5, 0)
    assert {meeting.slowest for meeting in step.meetings} == {(3, 3, 3, 3)}
    assert step.dummies == (2,)
    assert step.lost_share == pytest.approx(68 / 160)
    assert step.lost_gpu_time == 68 * 4
    assert "replica 2: waits 28 for replica 3, runs a dummy batch" in str(step)


def test_groups_that_do_not_meet_keep_their_own_pace(six_cuts: Scenario) -> None:
    step = lockstep(changed(six_cuts, mesh={"ep": 8}), [1, 2, 0, 4])
    assert step.ends == (16, 16, 32, 32)
    assert step.waited == (8, 0, 32, 0)
    free = lockstep(changed(six_cuts, mesh={"contract": "dwdp"}), [1, 2, 0, 4])
    assert free.ends == (8, 16, 0, 32)
    assert (free.dummies, free.lost_share) == ((), 0)


def test_dense_layers_are_no_meetings(six_cuts: Scenario) -> None:
    model = {"dense_layers": [1, 2, 3, 5, 6, 7], "dense_hidden": 64}
    base = six_cuts.to_dict()
    base["model"] |= model
    step = lockstep(Scenario.from_dict(base | {"picks": {}}), [1, 2, 3, 4])
    assert [meeting.layer for meeting in step.meetings] == [4, 8]
    assert step.meetings[0].waits == (12, 8, 4, 0)


@pytest.mark.parametrize(
    ("loads", "message"),
    [
        ([1, 2], r"must give one load for each of the 4 replicas"),
        ([1, 2, 3, -1], r"loads\[3\]=-1 must be a finite number of 0 or more"),
        ([1, 2, 3, float("nan")], r"loads\[3\]=nan must be a finite number"),
    ],
)
def test_loads_are_checked(six_cuts: Scenario, loads: list[float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        lockstep(six_cuts, loads)
