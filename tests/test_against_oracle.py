"""The engine and the oracle tell the same trip on every scenario hypothesis draws."""

from __future__ import annotations

from typing import Any

from comparing import differences, engine_groups, engine_trip
from hypothesis import HealthCheck, given, settings
from oracle import GROUP_NAMES, OracleMesh, walk
from strategies import scenarios

Scenario = dict[str, Any]
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(suppress_health_check=SLOW_DRAWS)
@given(scenarios())
def test_trip(scenario: Scenario) -> None:
    """Hops, transfers, touched set, crossings by axis, ops, bytes by tier, running tallies."""
    assert differences(engine_trip(scenario), walk(scenario)) == []


@settings(suppress_health_check=SLOW_DRAWS)
@given(scenarios(contracts=["ep"]))
def test_trip_with_dispatch_and_combine(scenario: Scenario) -> None:
    """The same, spent on the contract with the most cases."""
    assert differences(engine_trip(scenario), walk(scenario)) == []


@settings(suppress_health_check=SLOW_DRAWS)
@given(scenarios(phase="decode"))
def test_decode_trip(scenario: Scenario) -> None:
    """A new token: pass-Q, pass-KV and DCP, MLA and GQA, low latency by default."""
    assert differences(engine_trip(scenario), walk(scenario)) == []


@settings(suppress_health_check=SLOW_DRAWS)
@given(scenarios())
def test_groups(scenario: Scenario) -> None:
    """Every group list, as sets of sets, and each list's members in rank order."""
    mesh = OracleMesh(scenario)
    groups = engine_groups(scenario)
    assert set(groups) == set(GROUP_NAMES)
    for name in GROUP_NAMES:
        assert sorted(groups[name]) == sorted(mesh.groups(name)), name
