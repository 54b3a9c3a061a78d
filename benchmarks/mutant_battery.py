"""What mutants meet first: trips, groups and batches, with what is right, told before any mutant lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from census_cases import Case, check, told
from comparing import differences, engine_groups, engine_trip
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracle import GROUP_NAMES, OracleMesh, OracleTrip, walk
from plain_census import Batch, Plain, assert_census, plain_census
from strategies import scenarios

from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario

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
    """Scenarios with what the oracle says of them, and batches with the sums of their tokens' hops."""

    trips: tuple[tuple[Tables, OracleTrip], ...]
    groups: tuple[tuple[Tables, dict[str, list[list[int]]]], ...]
    named: tuple[tuple[Case, Batch, dict[int, Plain]], ...]
    batches: tuple[tuple[Batch, dict[int, Plain]], ...]

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
        kept = [(batch, plain_census(batch)) for batch in batches if batch is not None][:CENSUSES]
        trips = tuple((tables, walk(tables)) for tables in drawn)
        return cls(trips, tuple(said), tuple(told()), tuple(kept))

    def check(self, part: str) -> None:
        """Raise where a part of the engine (the start of a path) and what was told before part."""
        if part == "tracer/batch/census":
            self._check_batches()
        else:
            self._check_trips()

    def _check_batches(self) -> None:
        for case, batch, plain in self.named:
            check(case, batch, plain)
        for batch, plain in self.batches:
            assert_census(batch.counted(threads=1), plain)

    def _check_trips(self) -> None:
        load_scenario("six-cuts")
        for tables, expected in self.trips:
            if differences(engine_trip(tables), expected):
                raise AssertionError("a trip differs")
        for tables, groups in self.groups:
            if {name: sorted(lists) for name, lists in engine_groups(tables).items()} != groups:
                raise AssertionError("groups differ")


def _batch(tables: Tables, seed: int) -> Batch | None:
    """A few tokens of a scenario with drawn picks; None without experts."""
    scenario = Scenario.from_dict(tables)
    model = scenario.model
    if not model.moe_layers:
        return None
    rng = np.random.default_rng(seed)
    replicas = rng.integers(0, scenario.mesh.dp, 6).tolist()
    positions = rng.integers(0, scenario.token.prompt, 6).tolist()
    scores = rng.random((model.moe_layers, 6, model.experts or 0))
    picks = scores.argsort(-1)[:, :, : model.top_k]
    return Batch(scenario, tuple(zip(replicas, positions, strict=True)), picks)
