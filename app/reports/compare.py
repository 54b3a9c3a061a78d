"""Two scenarios side by side, as the compare page shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from app.query.address import scenario_of
from app.reports.mesh import trip_counts
from layouts import build_scene, render_svg
from tracer.display import format_bytes
from tracer.scenario.step import mesh_line
from tracer.trip.compare import TripComparison, compare_trips
from tracer.trip.trip import Trip, take_trip

if TYPE_CHECKING:
    from tracer.trip.compare import AxisTotals
    from tracer.trip.hop import Hop

DEFAULTS = {"a": "scenario=six-cuts", "b": "scenario=six-cuts-pp-inside-dp"}
Row = list[str | bool]


def compare_report(query: dict[str, str]) -> dict[str, Any]:
    """Sides ``a`` and ``b``, each a query of its own inside the page's; then axes and hops.

    Raises:
        ConfigError: for what is wrong with either side.
    """
    queries = {side: query.get(side) or DEFAULTS[side] for side in DEFAULTS}
    trips = {side: take_trip(scenario_of(dict(parse_qsl(text)))) for side, text in queries.items()}
    found = compare_trips(trips["a"], trips["b"])
    return {
        "sides": [_side(trips[side], queries[side]) for side in ("a", "b")],
        "totals": _totals(trips["a"], trips["b"]),
        "axes": [_axis(one, other) for one, other in found.axes if one.comm_ops or other.comm_ops],
        "hops": _hops(found),
    }


def _side(trip: Trip, query: str) -> dict[str, Any]:
    return {
        "name": trip.scenario.name or "scenario",
        "query": query,
        "mesh_line": mesh_line(trip.scenario),
        "picture": render_svg(build_scene(trip), theme="page"),
    }


def _totals(a: Trip, b: Trip) -> list[Row]:
    left, right = dict(trip_counts(a)), dict(trip_counts(b))
    labels = dict.fromkeys([*left, *right])
    rows = [(label, left.get(label, "0"), right.get(label, "0")) for label in labels]
    return [[label, one, other, one != other] for label, one, other in rows]


def _axis(one: AxisTotals, other: AxisTotals) -> Row:
    texts = [
        f"{each.comm_ops} ops, {each.crossings} crossings, {format_bytes(each.nvlink_bytes)} NVLink, "
        f"{format_bytes(each.ib_bytes)} IB"
        for each in (one, other)
    ]
    return [one.axis.upper(), *texts, texts[0] != texts[1]]


def _hops(found: TripComparison) -> list[Row]:
    rows: list[Row] = []
    for one, other in found.hops:
        hop = one or other
        if hop is not None:
            place = f"layer {hop.layer} " if hop.layer else ""
            texts = [_moves(each) for each in (one, other)]
            rows.append([place + str(hop.kind).replace("_", " "), *texts, texts[0] != texts[1]])
    return rows


def _moves(hop: Hop | None) -> str:
    """From → to, InfiniBand as ⇒, as the trip log writes it."""
    if hop is None:
        return "—"
    if not hop.transfers:
        return "nothing moves" if not hop.held else "GPU " + ", ".join(map(str, hop.held))
    shown = [f"{t.src}{'⇒' if t.tier == 'ib' else '→'}{t.dst}" for t in hop.transfers[:8]]
    more = len(hop.transfers) - 8
    return " ".join(shown) + (f" … {more} more" if more > 0 else "")
