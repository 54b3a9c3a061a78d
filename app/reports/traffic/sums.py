"""Traffic figures and their units: of one pass as a whole, and line by line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tracer.display import format_bytes, format_seconds

if TYPE_CHECKING:
    from tracer.traffic.traffic import CommVolume

Sum = tuple[str, float, Callable[[float], str]]
"""A figure's name, its value, and how it is written."""


def line_name(axis: str, part: str) -> str:
    """The name of a line: an axis and its part of the model."""
    return f"{axis.upper()} {part.replace('_', ' ')}"


def sums_of(traffic: CommVolume) -> list[Sum]:
    """One forward pass, or one decode step, averaged over all GPUs."""
    word = "step" if traffic.scenario.decodes else "pass"
    return [
        (f"over InfiniBand, a GPU and {word}", traffic.ib_bytes_per_pass, format_bytes),
        (f"over NVLink, a GPU and {word}", traffic.nvlink_bytes_per_pass, format_bytes),
        ("when hops follow one another", traffic.seconds_per_pass, format_seconds),
    ]


def lines_of(traffic: CommVolume) -> list[Sum]:
    """What each axis sends over InfiniBand, and its time."""
    found: list[Sum] = []
    for line in traffic.lines:
        name = f"{line_name(line.axis, line.part)}, a {line.per}"
        found.append((f"{name}: InfiniBand", line.ib_bytes, format_bytes))
        found.append((f"{name}: time", line.seconds, format_seconds))
    return found
