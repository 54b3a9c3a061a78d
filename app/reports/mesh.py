"""The mesh page: the values in force, and either what the mesh does or what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query.address import tables_of_query
from app.query.refusal import refusal
from app.reports.gpu_card import gpu_card
from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trip import Trip

Payload = dict[str, Any]


def mesh_report(query: dict[str, str]) -> Payload:
    """Values by key; then the trip's counts, or the error with its fix."""
    tables = tables_of_query(query)
    try:
        scenario = Scenario.from_dict(tables)
        return {"values": _values(scenario.to_dict(), tables), **_what_it_does(scenario)}
    except ConfigError as error:
        return {"values": _values(tables, tables), "wrong": refusal(error)}


def _values(tables: Payload, given: Payload) -> Payload:
    """Values by dotted key; a model by its preset's name when it was given so."""
    found = {
        f"{table}.{key}": value
        for table in ("mesh", "cluster", "token")
        for key, value in _table(tables, table).items()
    }
    model = _table(given, "model")
    return found | {"model.preset": model.get("preset", ""), "model.name": model.get("name", "")}


def _table(tables: Payload, name: str) -> Payload:
    """A table of the scenario; empty where the address put something else in its place."""
    found = tables.get(name)
    return found if isinstance(found, dict) else {}


def _what_it_does(scenario: Scenario) -> Payload:
    from tracer.scenario.step import mesh_line
    from tracer.trip.log import log_line
    from tracer.trip.trip import take_trip

    trip = take_trip(scenario)
    return {
        "mesh_line": mesh_line(scenario),
        "log_line": log_line(trip.log, scenario.cluster.domain_word, scenario.plan.weights_word),
        "counts": trip_counts(trip),
        "home": gpu_card(scenario, scenario.home),
        "toml": scenario.to_toml(),
        "token": {
            "token.position": scenario.position,
            "token.replica": scenario.replica,
        },
    }


def trip_counts(trip: Trip) -> list[tuple[str, str]]:
    """A trip's totals, as label and figure."""
    from tracer.display import format_bytes

    log, word = trip.log, trip.scenario.cluster.domain_word
    rows = [
        ("GPUs touched", f"{log.gpus_touched:,} of {log.world_size:,}"),
        (f"{word} crossings", f"{log.node_crossings:,}"),
        *((f"… by {axis.upper()}", f"{n:,}") for axis, n in log.node_crossings_by_axis.items() if n),
        ("comm ops", f"{log.comm_ops:,}"),
        ("bytes moved", format_bytes(log.bytes)),
        ("… over NVLink", format_bytes(log.bytes_by_tier["nvlink"])),
        ("… over InfiniBand", format_bytes(log.bytes_by_tier["ib"])),
    ]
    weights = f"weights {trip.scenario.plan.weights_word}"
    return rows + ([(weights, format_bytes(log.weight_bytes))] if log.weight_bytes else [])
