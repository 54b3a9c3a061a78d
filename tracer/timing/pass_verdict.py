"""Two passes beside each other: which is faster, and whether that is more than the times are wrong by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_seconds
from tracer.mesh.hardware import hardware_preset
from tracer.timing.pass_time import pass_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracer.scenario.scenario import Scenario


MOST_NAMES = 6
LINKS_ERROR = 0.25
"""Median error of times by links alone on DeepEP's low-latency tables (tracer.proof.published.deepep)."""


def not_told_apart(seconds: Mapping[str, float]) -> str:
    """Which variants, timed by links alone, are closer to the fastest than such times are wrong by.

    >>> not_told_apart({"a": 1.0, "b": 1.2, "c": 2.0})
    'times by links alone were wrong by 25 % (median of published tables): that close to the fastest (a): b'
    """
    fastest = min(seconds, key=lambda name: seconds[name])
    least = seconds[fastest]
    close = [name for name, each in seconds.items() if name != fastest and each <= least * (1 + LINKS_ERROR)]
    said = f"times by links alone were wrong by {100 * LINKS_ERROR:.0f} % (median of published tables)"
    if not close:
        return f"{said}: none is that close to the fastest ({fastest})"
    shown = ", ".join(close[:MOST_NAMES])
    more = f" and {len(close) - MOST_NAMES} more" if len(close) > MOST_NAMES else ""
    return f"{said}: that close to the fastest ({fastest}): {shown}{more}"


@dataclass(frozen=True, slots=True)
class PassVerdict:
    """Seconds of two passes and their expected relative errors, None where one is not known."""

    seconds: tuple[float, float]
    errors: tuple[float | None, float | None]

    @property
    def difference(self) -> float:
        """How much longer the slower one takes, as a share of the faster."""
        return max(self.seconds) / min(self.seconds) - 1

    @property
    def error(self) -> float | None:
        """The larger expected error; None unless both are known."""
        one, other = self.errors
        return None if one is None or other is None else max(one, other)

    @property
    def certain(self) -> bool | None:
        """Whether they differ by more than the error; None where that cannot be told."""
        return None if self.error is None else self.difference > self.error

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "seconds": list(self.seconds),
            "errors": list(self.errors),
            "difference": self.difference,
            "beyond_the_error": self.certain,
        }

    def __str__(self) -> str:
        a, b = map(format_seconds, self.seconds)
        apart = f"{self.difference:.1%} apart" if self.difference < 1 else f"{self.difference + 1:.3g} times"
        head = f"one pass by measured kernels: A {a}, B {b}, {apart}"
        if self.error is None:
            return f"{head}; no error is known for such passes, so that the faster one is not certain"
        if self.certain:
            return f"{head}, beyond the expected error of {self.error:.1%}"
        return f"{head}: closer than the expected error of {self.error:.1%}, so that neither is faster"


def compare_passes(a: Scenario, b: Scenario) -> PassVerdict | None:
    """Both passes of the scenarios' own batches; None where a cluster names no GPU.

    Raises:
        ConfigError: when a model lacks a size, or the hardware a rate.
    """
    names = (a.cluster.hardware, b.cluster.hardware)
    if names[0] is None or names[1] is None:
        return None
    one, other = pass_time(a, hardware_preset(names[0])), pass_time(b, hardware_preset(names[1]))
    return PassVerdict((one.seconds, other.seconds), (one.error, other.error))
