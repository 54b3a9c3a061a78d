"""Replay: the whole of six-cuts' batch on virtual GPUs, against the trips of its tokens alone."""

from __future__ import annotations

from benchmarks.ratios import Ratio, interleave
from tracer.proof.replay import replay
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.trip.trip import take_trip


def all_trips(scenario: Scenario) -> None:
    """The trip of every token of every replica."""
    for replica in range(scenario.mesh.dp):
        for position in range(scenario.token.prompt):
            take_trip(scenario.with_token(replica=replica, position=position))


def run() -> list[Ratio]:
    """Arrays, one device, and comparing every transfer cost a few times the trips."""
    scenario = load_scenario("six-cuts")
    report = replay(scenario)
    if not report.ok:
        raise SystemExit(str(report))
    return [
        interleave(
            "replay of six-cuts, against its 256 trips",
            lambda: replay(scenario),
            lambda: all_trips(scenario),
            rounds=5,
            at_most=5,
        )
    ]
