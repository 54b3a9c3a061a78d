"""Two scenarios side by side as text: totals, axes, and the hops that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.display import format_bytes, format_seconds
from tracer.scenario.step import mesh_line

if TYPE_CHECKING:
    from tracer.trip.compare import ScenarioComparison, Side


def compare_text(compared: ScenarioComparison) -> str:
    """The whole comparison, A left and B right."""
    lines = []
    for letter, trip in (("A", compared.a), ("B", compared.b)):
        lines.append(f"{letter}  {trip.scenario.name or 'scenario'}: {mesh_line(trip.scenario)}")
    lines += ["", f"{'':<20}{'A':>14}{'B':>14}{'B / A':>9}"]
    lines += [_total(name, *pair) for name, pair in compared.totals.items()]
    lines += ["", f"{'axis':<6}{'crossings':>16}{'bytes':>26}{'time':>24}"]
    for axis, rows in compared.axes.items():
        shown = [
            f"{rows['crossings'][0]:g} → {rows['crossings'][1]:g}",
            " → ".join(format_bytes(int(value)) for value in rows["bytes"]),
            " → ".join(format_seconds(value) for value in rows["seconds"]),
        ]
        lines.append(f"{axis:<6}{shown[0]:>16}{shown[1]:>26}{shown[2]:>24}")
    differing = [pair for pair in compared.pairs if not pair.same]
    lines += ["", f"hops: {len(compared.pairs) - len(differing)} alike, {len(differing)} differ"]
    if differing:
        lines.append(f"{'layer':>5}  {'hop':<15} {'A':<36} B")
    lines += [
        f"{pair.layer or '-':>5}  {pair.kind:<15} {_side(pair.a):<36} {_side(pair.b)}" for pair in differing
    ]
    return "\n".join([*lines, *_assumptions(compared)])


def _total(name: str, a: float, b: float) -> str:
    show = format_seconds if name == "seconds" else (lambda value: f"{value:,.0f}")
    ratio = f"{b / a:.3g}" if a else "-"
    return f"{name.replace('_', ' '):<20}{show(a):>14}{show(b):>14}{ratio:>9}"


def _side(side: Side | None) -> str:
    if side is None:
        return "no such hop"
    word = "crossings" if side.crossings > 1 else "crossing"
    crossings = f", {side.crossings} {word}" if side.crossings else ""
    return f"{format_bytes(side.bytes)}{crossings}, {format_seconds(side.seconds)}"


def _assumptions(compared: ScenarioComparison) -> list[str]:
    first, second = (times.assumption for times in compared.times)
    return (
        ["", f"times: {first}"] if first == second else ["", f"times of A: {first}", f"times of B: {second}"]
    )
