"""The traffic page: bytes and time an axis with the formula, and every order of the axes ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query import scenario_of
from tracer.expected_traffic import expected_traffic
from tracer.orders import rank_orders
from tracer.traffic_text import format_seconds, traffic_footer
from tracer.trip_text import format_bytes, mesh_line

if TYPE_CHECKING:
    from tracer.axis_traffic import AxisTraffic
    from tracer.expected_traffic import ExpectedTraffic
    from tracer.orders import Orders

Payload = dict[str, Any]


def traffic_report(query: dict[str, str]) -> Payload:
    """Lines of expected traffic, what they assume, and the ranked orders.

    Raises:
        ConfigError: when the scenario does not work, or lacks what a formula needs.
    """
    scenario = scenario_of(query)
    traffic = expected_traffic(scenario)
    return {
        "name": scenario.name or "scenario",
        "mesh_line": mesh_line(scenario),
        "lines": _lines(traffic),
        "notes": traffic_footer(traffic),
        "orders": _orders(rank_orders(scenario)),
    }


def _lines(traffic: ExpectedTraffic) -> list[Payload]:
    most = max((line.nvlink_bytes + line.ib_bytes for line in traffic.lines), default=0) or 1
    return [_line(traffic, line, most) for line in traffic.lines]


def _line(traffic: ExpectedTraffic, line: AxisTraffic, most: float) -> Payload:
    """One axis; ``bars`` are its bytes by tier, in hundredths of the busiest line's."""
    ratio = traffic.ratio_to_tp(line)
    return {
        "axis": line.axis.upper(),
        "part": line.part.replace("_", " "),
        "per": line.per,
        "nvlink": format_bytes(round(line.nvlink_bytes)),
        "ib": format_bytes(round(line.ib_bytes)),
        "bars": [100 * line.nvlink_bytes / most, 100 * line.ib_bytes / most],
        "time": format_seconds(line.seconds),
        "ratio": "" if ratio is None else f"{ratio:.3g}×",
        "formula": line.formula,
        "numbers": line.numbers,
    }


def _orders(orders: Orders) -> Payload:
    given = next((entry for entry in orders.ranked if entry.is_given), None)
    return {
        "ranked": [
            {
                "order": entry.order,
                "ib": format_bytes(round(entry.ib_bytes)),
                "against": _against(entry.ib_bytes, given.ib_bytes if given else 0.0),
                "time": format_seconds(entry.seconds),
                "why": entry.why,
                "given": entry.is_given,
            }
            for entry in orders.ranked
        ],
        "refused": [f"{order}: {why}" for order, why in orders.refused],
    }


def _against(found: float, given: float) -> str:
    """IB bytes of an order over those of the scenario's own."""
    return f"{found / given:.3g}×" if given else "—"
