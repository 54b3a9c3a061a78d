"""Closed forms of a decode step: the trips' own bytes, the published formulas, and what the pages say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from draws import draws
from hypothesis import HealthCheck, given, settings
from strategies import scenarios

from app.reports.traffic.traffic import traffic_report
from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.scenario.step import tokens_per_replica, with_tokens
from tracer.timing.pass_time import pass_time
from tracer.traffic.orders import rank_orders, with_order
from tracer.traffic.traffic import CommVolume, comm_volume
from tracer.trip.hop import WEIGHT_KINDS
from tracer.trip.hops.cp import attention_way
from tracer.trip.trip import take_trip

SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def decode(**mesh: Any) -> Scenario:
    tables = load_scenario("six-cuts-decode").to_dict()
    tables["mesh"] |= {"edp": None, **mesh}
    tables["token"] |= {"replica": 0}
    return Scenario.from_dict(tables | {"picks": {}})


def step_bytes(scenario: Scenario, picks: list[dict[int, tuple[int, ...]]]) -> Counter[tuple[str, str]]:
    """Bytes by axis and tier of all trips of a step, one a row; ``picks`` are each row's in turn."""
    landing, found = scenario.decode_landing, Counter[tuple[str, str]]()
    assert landing.padded == landing.batch
    for replica in range(scenario.mesh.dp):
        for cp in range(scenario.mesh.cp):
            position = landing.first_position_on(cp) + scenario.mesh.cp  # the last token was a new one too
            for slot in range(landing.batch):
                rider = scenario.with_token(replica=replica, position=position, slot=slot)
                for each in picks:
                    tables = rider.to_dict() | {"picks": {str(layer): list(p) for layer, p in each.items()}}
                    trip = take_trip(Scenario.from_dict(tables) if each else rider)
                    for hop in (hop for hop in trip.hops if hop.kind not in WEIGHT_KINDS):
                        for transfer in hop.transfers:
                            axis = "tp" if hop.part == "lm_head" else str(hop.axis)
                            found[axis, str(transfer.tier)] += transfer.bytes
    return found


def stated(traffic: CommVolume, axis: str, tier: str) -> float:
    """The lines' bytes over all GPUs."""
    lines = [line for line in traffic.lines if line.axis == axis]
    each = sum(getattr(line, f"{tier}_bytes") * line.times for line in lines)
    return each * traffic.scenario.mesh.world_size / traffic.scenario.mesh.stages


@settings(suppress_health_check=SLOW_DRAWS, deadline=None, max_examples=draws(25))
@given(scenarios(phase="decode", kinds=True))
def test_dense_axes_are_the_steps_own_bytes(drawn: dict[str, Any]) -> None:
    """Σ over every row of a step, its trip's tp, cp and pp bytes by tier, the LM head's too.

    Counts of routing go once a layer, not once a row: they are left out.
    """
    way = attention_way(Scenario.from_dict(drawn))
    mesh = drawn.get("mesh", {}) | {"decode_attention": way, "routing_metadata": False}
    whole = Scenario.from_dict(drawn | {"mesh": mesh})
    whole = with_tokens(whole, whole.mesh.replica_size)
    assert tokens_per_replica(whole) == whole.mesh.replica_size
    found, traffic = step_bytes(whole, [{}]), comm_volume(whole)
    for axis in ("tp", "cp", "pp"):
        for tier in ("nvlink", "ib"):
            assert stated(traffic, axis, tier) == pytest.approx(found[axis, tier]), (axis, tier)


@pytest.mark.parametrize("mesh", [{}, {"sp": "off"}, {"order": "tp-cp-pp-dp"}, {"tp": 4, "dp": 2, "ep": 16}])
def test_messages_to_experts_are_the_trips_when_every_expert_is_picked_as_often(mesh: dict[str, Any]) -> None:
    tables = decode(**mesh).to_dict()
    tables["model"] |= {"layers": 2, "experts": 16}
    small = Scenario.from_dict(tables | {"placement": None, "picks": {}})
    small = with_tokens(small, small.mesh.replica_size)
    turns = [{1: (e, (e + 1) % 16), 2: ((e + 5) % 16, (e + 6) % 16)} for e in range(16)]
    found, traffic = step_bytes(small, turns), comm_volume(small)
    for tier in ("nvlink", "ib"):
        assert stated(traffic, "ep", tier) * len(turns) == pytest.approx(found["ep", tier]), tier


def test_a_step_has_queries_and_partials_where_a_prompt_has_kv() -> None:
    step, prompt = comm_volume(decode()), comm_volume(load_scenario("six-cuts"))
    parts = {line.part: line for line in step.lines if line.axis == "cp"}
    assert [line.part for line in prompt.lines if line.axis == "cp"] == ["attention"]
    query, partials = parts["query_send"], parts["partials_return"]
    assert (query.formula, query.elements) == ("(cp-1)·(T/cp)·(n_h/tp)·d_h", 2 * 16 * 128)
    assert partials.formula == "(cp-1)·(T/cp)·(n_h/tp)·(d_v + m, ℓ)"
    assert partials.bytes == 2 * 16 * (128 * 2 + 2 * 4)
    assert "of experts on other islands" in next(line for line in step.lines if line.axis == "ep").formula
    passed = comm_volume(decode(decode_attention="pass_kv"))
    assert [line.part for line in passed.lines if line.axis == "cp"] == ["attention"]
    assert "decode: T = 4 padded new tokens per replica, one of each request" in str(step)
    assert "prefill: T = 64 padded tokens per replica" in str(prompt)
    assert (step.to_dict()["phase"], prompt.to_dict()["phase"]) == ("decode", "prefill")


def test_dcp_sends_queries_within_its_groups() -> None:
    line = next(line for line in comm_volume(decode(tp=16, cp=1, dp=1, dcp=2)).lines if line.axis == "cp")
    assert line.formula == "(dcp-1)·(T/cp)·(n_h/tp)·d_h"
    assert line.elements == tokens_per_replica(decode(tp=16, cp=1, dp=1)) * 2 * 128


def test_requests_of_a_step_are_asked_for_as_tokens() -> None:
    many = with_tokens(decode(), 128)
    assert (tokens_per_replica(many), many.decode_landing.batch) == (128, 64)
    assert tokens_per_replica(with_tokens(decode(), 1)) == 4
    with pytest.raises(ConfigError, match="tokens=0 must be a whole number"):
        with_tokens(decode(), 0)


def test_orders_rank_what_a_step_sends() -> None:
    orders = rank_orders(decode())
    own = next(entry for entry in orders.ranked if entry.is_given)
    assert own.ib_bytes == pytest.approx(comm_volume(decode()).ib_bytes_per_pass)
    assert own.ib_bytes != pytest.approx(rank_orders(load_scenario("six-cuts")).ranked[0].ib_bytes)
    moved = comm_volume(with_order(decode(), "dp-tp-cp-pp"))
    entry = next(e for e in orders.ranked if "dp-tp-cp-pp" in (e.order, *e.same_as))
    assert (entry.ib_bytes, entry.seconds) == (moved.ib_bytes_per_pass, moved.seconds_per_pass)
    assert orders.to_dict()["phase"] == "decode"
    assert "Per GPU and decode step." in str(orders)


def test_the_time_of_a_step_has_the_same_traffic() -> None:
    from tracer.mesh.hardware import hardware_preset

    timed = pass_time(decode(), hardware_preset("h100"), tokens=128).traffic
    assert timed.lines == comm_volume(with_tokens(decode(), 128)).lines


def test_the_page_says_which_phase() -> None:
    step, prompt = (traffic_report({"scenario": name}) for name in ("six-cuts-decode", "six-cuts"))
    heading = next(block["text"] for block in step["blocks"] if block["kind"] == "heading")
    assert heading == "Axis by axis, in decode"
    assert step["controls"][0]["label"] == "Requests a replica decodes in a step"
    assert step["controls"][0]["value"] == 4
    assert prompt["controls"][0]["label"] == "Tokens a replica"
