"""Two passes beside each other: which is faster, and whether that is more than the times are wrong by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_seconds
from tracer.mesh.hardware import hardware_preset
from tracer.timing.pass_time import pass_time

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


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
        head = f"one pass by measured kernels: A {a}, B {b}, {self.difference:.1%} apart"
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
