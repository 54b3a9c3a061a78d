"""The engine and the oracle tell the same trip on every scenario hypothesis draws."""

from __future__ import annotations

from typing import Any

from comparing import differences, engine_groups, engine_trip
from hypothesis import given
from oracle import GROUP_NAMES, OracleMesh, walk
from strategies import many, meshes, scenarios

Scenario = dict[str, Any]


@many
@given(scenarios(kinds=True))
def test_trip(scenario: Scenario) -> None:
    """Hops, transfers, touched set, crossings by axis, ops, bytes by tier, running tallies."""
    assert differences(engine_trip(scenario), walk(scenario)) == []


@many
@given(scenarios(phase="decode", kinds=True))
def test_decode_trip(scenario: Scenario) -> None:
    """A new token: pass-Q, pass-KV and DCP, MLA and GQA, low latency by default."""
    assert differences(engine_trip(scenario), walk(scenario)) == []


@many
@given(meshes(layers=4))
def test_groups(mesh: Scenario) -> None:
    """Every group list, as sets of sets, and each list's members in rank order."""
    plain = OracleMesh({"mesh": mesh})
    groups = engine_groups({"mesh": mesh})
    assert set(groups) == set(GROUP_NAMES)
    for name in GROUP_NAMES:
        assert sorted(groups[name]) == sorted(plain.groups(name)), name
