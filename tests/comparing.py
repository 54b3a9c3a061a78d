"""Puts an engine's trip (its JSON) beside the oracle's and says in words where they differ."""

from __future__ import annotations

from collections import Counter
from typing import Any

from oracle import GROUP_NAMES, OracleTrip

from tracer.scenario.scenario import BareScenario
from tracer.scenario.scenario import Scenario as EngineScenario
from tracer.trip.trip import take_trip

Scenario = dict[str, Any]
Moves = Counter[tuple[Any, ...]]


def engine_trip(scenario: Scenario) -> dict[str, Any]:
    """The engine's trip of a scenario, as its JSON."""
    return take_trip(EngineScenario.from_dict(scenario)).to_dict()


def engine_groups(scenario: Scenario) -> dict[str, list[list[int]]]:
    """The engine's lists of groups, by name; a replica is a stage's tp and cp together."""
    mesh = BareScenario.from_dict(scenario).mesh
    axes = {name: ("tp", "cp") if name == "replica" else name for name in GROUP_NAMES}
    return {name: mesh.groups(varying).tolist() for name, varying in axes.items()}


def moves_of(transfers: list[tuple[int, int, int, str, str]]) -> Moves:
    """Transfers as a multiset; weight pulls are summed for each pair of ranks."""
    moves: Moves = Counter()
    for src, dst, size, tier, role in transfers:
        if role == "weights":
            moves[src, dst, tier, role] += size
        else:
            moves[src, dst, size, tier, role] += 1
    return moves


def engine_moves(hop: dict[str, Any]) -> Moves:
    """The transfers of one hop of the JSON."""
    keys = ("src", "dst", "bytes", "tier", "role")
    return moves_of([tuple(transfer[key] for key in keys) for transfer in hop["transfers"]])


def differences(trip: dict[str, Any], oracle: OracleTrip) -> list[str]:
    """One line for each disagreement, none when both tell the same trip."""
    found = []

    def compare(what: str, engine: Any, expected: Any) -> None:
        if engine != expected:
            found.append(f"{what}: engine {engine}, oracle {expected}")

    compare("touched", sorted(trip["touched"]), sorted(oracle.touched))
    log = trip["log"]
    for key in ("gpus_touched", "world_size", "node_crossings", "comm_ops", "bytes", "bytes_by_tier"):
        compare(key, log[key], oracle.log[key])
    compare("weight_bytes", log.get("weight_bytes", 0), oracle.log["weight_bytes"])
    by_axis = {axis: count for axis, count in log["node_crossings_by_axis"].items() if count}
    compare("node_crossings_by_axis", by_axis, oracle.log["node_crossings_by_axis"])
    kinds = [(hop["layer"], hop["kind"]) for hop in trip["hops"]]
    expected_kinds = [(hop.layer, hop.kind) for hop in oracle.hops]
    if kinds != expected_kinds:
        return [*found, f"hops: engine {kinds}, oracle {expected_kinds}"]
    for hop, expected in zip(trip["hops"], oracle.hops, strict=True):
        where = f"layer {expected.layer} {expected.kind}"
        for key in ("stage", "dead"):
            compare(f"{where} {key}", hop[key], getattr(expected, key))
        if expected.axis is not None:
            compare(f"{where} axis", hop["axis"], expected.axis)
        compare(f"{where} tally", hop["tally"], expected.tally)
        engine, plain = engine_moves(hop), moves_of(expected.moves)
        if engine != plain:
            only_engine, only_oracle = sorted(engine - plain), sorted(plain - engine)
            found.append(f"{where}: only engine {only_engine}, only oracle {only_oracle}")
    return found
