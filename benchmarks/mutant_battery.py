"""What mutants meet first: the oracle's trips and groups, told before any mutant lives, and drawn batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from comparing import differences, engine_groups, engine_trip
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracle import GROUP_NAMES, OracleMesh, OracleTrip, walk
from strategies import scenarios
from test_census_trips import assert_same

from tracer.presets import load_scenario
from tracer.scenario import Scenario

TRIPS, CENSUSES = 30, 12
Tables = dict[str, Any]


def draw(strategy: st.SearchStrategy[Tables], count: int) -> list[Tables]:
    """The same scenarios in every run."""
    found: list[Tables] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(tables: Tables) -> None:
        found.append(tables)

    collect()
    return found


@dataclass(frozen=True, slots=True)
class Battery:
    """Scenarios with what the oracle says of them, and batches with the picks to be counted."""

    trips: tuple[tuple[Tables, OracleTrip], ...]
    groups: tuple[tuple[Tables, dict[str, list[list[int]]]], ...]
    batches: tuple[tuple[Scenario, list[tuple[int, int]], np.ndarray], ...]

    @classmethod
    def drawn(cls) -> Battery:
        """Drawn by hypothesis from a fixed seed."""
        drawn = [*draw(scenarios(), TRIPS), *draw(scenarios(phase="decode"), TRIPS)]
        meshes = [{"mesh": tables.get("mesh", {})} for tables in drawn[::2]]
        said = []
        for tables in meshes:
            plain = OracleMesh(tables)
            said.append((tables, {name: sorted(plain.groups(name)) for name in GROUP_NAMES}))
        batches = [_batch(tables, seed) for seed, tables in enumerate(drawn[:TRIPS])]
        kept = [batch for batch in batches if batch is not None][:CENSUSES]
        return cls(tuple((tables, walk(tables)) for tables in drawn), tuple(said), tuple(kept))

    def check(self) -> None:
        """Raise where the engine and the oracle part."""
        load_scenario("six-cuts")
        for tables, expected in self.trips:
            if differences(engine_trip(tables), expected):
                raise AssertionError("a trip differs")
        for tables, groups in self.groups:
            if {name: sorted(lists) for name, lists in engine_groups(tables).items()} != groups:
                raise AssertionError("groups differ")
        for scenario, tokens, picks in self.batches:
            assert_same(scenario, tokens, picks)


def _batch(tables: Tables, seed: int) -> tuple[Scenario, list[tuple[int, int]], np.ndarray] | None:
    """A few tokens of a scenario with drawn picks; None without experts."""
    scenario = Scenario.from_dict(tables)
    model = scenario.need_model()
    if not model.moe_layers:
        return None
    rng = np.random.default_rng(seed)
    replicas = rng.integers(0, scenario.mesh.size_of("dp"), 6).tolist()
    positions = rng.integers(0, scenario.token.prompt, 6).tolist()
    scores = rng.random((model.moe_layers, 6, model.experts or 0))
    picks = scores.argsort(-1)[:, :, : model.top_k]
    return scenario, list(zip(replicas, positions, strict=True)), picks
