"""Addresses: what a query string says, and what it may not say."""

from __future__ import annotations

import pytest
from draws import draws
from hypothesis import HealthCheck, given, settings
from strategies import scenarios

from app.query.address import MAX_QUERY, flatten, scenario_of, tables_of_query
from tracer import ConfigError, Scenario, load_scenario


def test_an_empty_query_is_the_reference_trip() -> None:
    assert scenario_of({}) == load_scenario("six-cuts")


def test_keys_change_the_preset_and_the_pages_own_keys_do_not() -> None:
    found = scenario_of({"scenario": "six-cuts", "hop": "4", "token.position": "3", "picks.1": "0,31"})
    assert (found.position, found.home) == (3, 8)
    assert dict(found.picks)[1] == (0, 31)


def test_a_decode_pool_is_a_preset_and_never_a_file() -> None:
    pytest.importorskip("plotly")
    from app.reports.decode.decode import decode_report

    with pytest.raises(ConfigError, match="is not a preset"):
        decode_report({"decode": __file__})


def test_traffic_of_a_mesh_too_large_to_wait_for_ranks_no_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("plotly")
    from app.reports.traffic import traffic

    monkeypatch.setattr("tracer.traffic.orders.MAX_RANKED", 767)
    blocks = traffic.traffic_report({})["blocks"]
    told = [block["text"] for block in blocks if block["kind"] == "note"]
    unranked = "Orders are not ranked: world_size=32 in each of 24 orders is more than"
    assert any(text.startswith(unranked) for text in told)
    assert "Every order" not in [block.get("caption") for block in blocks]


def test_a_single_pick_of_a_top_1_model_is_a_list() -> None:
    found = scenario_of({"model.top_k": "1", "picks": "", "picks.1": "[5]"})
    assert dict(found.picks) == {1: (5,)}


def test_an_empty_value_takes_out_a_key_or_a_table() -> None:
    assert "nodes" not in tables_of_query({"cluster.nodes": ""})["cluster"]
    found = scenario_of({"picks": "", "model": "", "model.preset": "mixtral-8x7b", "mesh.ep": "8"})
    assert found.model.layers == 32


@settings(max_examples=draws(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_any_scenario_survives_the_address(table: dict[str, object]) -> None:
    scenario = Scenario.from_dict(table)
    assert scenario_of({"scenario": "", **flatten(scenario.to_dict())}) == scenario


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"scenario": "six-cut"}, "is not a preset; did you mean 'six-cuts'"),
        ({"mash.tp": "2"}, "is not a key of a scenario; did you mean 'mesh'"),
        ({"mesh.tq": "2"}, "mesh.tq='?2'? is not a known key"),
        ({"mesh.tp": "two"}, "must be a whole number"),
        ({"mesh.tp.x": "2"}, "is not a key of a scenario"),
        ({"name": "x" * MAX_QUERY}, "is over 16,384 characters"),
    ],
)
def test_wrong_addresses_name_the_key(query: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        scenario_of(query)
