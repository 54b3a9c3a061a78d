"""One call answered by the fits that ship: its seconds, its basis and its expected error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.timing.calibration.fit import calibration
from tracer.timing.calibration.systems import between, known_hardware, nearness, reach_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracer.mesh.hardware import Hardware
    from tracer.timing.calibration.fit import Call

SCHEMA = 1
OTHER_MAKES = ("MI", "Gaudi", "TPU", "Trainium", "Ascend")
"""Names of hardware that does not run the measured kernels: the errors of transfers do not speak for it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds of one call, where they come from, and how wrong such answers were.

    ``error`` is the median relative error on measurements that the fit had not seen, ``error_p90`` the
    ninetieth percentile; both are None when there was nothing to compare with. ``floor_seconds`` is the
    physical lower bound at the data sheet's peak.
    """

    seconds: float
    basis: str
    error: float | None
    floor_seconds: float
    error_p90: float | None = None

    @property
    def interval_seconds(self) -> tuple[float, float] | None:
        """Seconds between which nine of ten measurements fall; None without an error."""
        if self.error_p90 is None:
            return None
        low = max(self.floor_seconds, self.seconds / (1 + self.error_p90))
        return low, self.seconds * (1 + self.error_p90)

    def to_dict(self) -> dict[str, object]:
        """Every field and the interval as plain JSON values."""
        interval = self.interval_seconds
        return {
            "schema": SCHEMA,
            "seconds": self.seconds,
            "basis": self.basis,
            "error": self.error,
            "error_p90": self.error_p90,
            "floor_seconds": self.floor_seconds,
            "interval_seconds": None if interval is None else list(interval),
        }


def answer(gpu: Hardware, ask: Callable[[Hardware], Call]) -> Estimate:
    """The call that ``ask`` describes, by the fit of the GPU itself, or of the nearest that has the variant.

    A transfer follows the data sheet's rates by the power that the kind was seen to follow them
    (:attr:`~tracer.timing.calibration.fit.Calibration.follows`): kernels written for one GPU reach less
    of a faster one.

    Raises:
        ConfigError: for a variant that was measured nowhere.
    """
    call = ask(gpu)
    known, work = calibration(call.kind), call.work(*call.sizes)
    for distance, system in nearness(gpu):
        fit = known.fits.get((system, work.variant))
        if fit is None:
            continue
        floor, outside, seconds = work.floor_seconds, fit.outside(work), 0.0
        source = f"measured fit {known_hardware(system).name}, {known.versions[system]}"
        error, spread = fit.error, fit.error_p90
        if distance:
            source = f"transfer to {gpu.name} by data sheet from {source}"
            error, spread = known.transfers.get(reach_of(distance), (None, None))
            seconds = ask(between(known_hardware(system), gpu, known.follows)).seconds(fit)
            if gpu.name.startswith(OTHER_MAKES):
                source, error, spread = f"{source}, whose maker's kernels are others", None, None
        if outside:
            source, error, spread = f"{source}, beyond the measured sizes", None, None
        seconds = max(seconds, floor) if distance else call.seconds(fit)
        return Estimate(seconds, source, error, floor, spread)
    raise ConfigError(call.kind, work.variant, "was not measured on any system", "choose another format")


def one_after_the_other(parts: list[Estimate]) -> Estimate:
    """Calls in a row: the sum, with the errors weighed by time."""
    if len(parts) == 1:
        return parts[0]
    seconds = sum(part.seconds for part in parts)

    def weighed(errors: Iterable[float | None]) -> float | None:
        shares = [
            None if error is None else error * part.seconds / seconds
            for error, part in zip(errors, parts, strict=True)
        ]
        known = [share for share in shares if share is not None]
        return sum(known) if len(known) == len(parts) else None

    basis = "; ".join(dict.fromkeys(part.basis for part in parts))
    floor = sum(part.floor_seconds for part in parts)
    errors = weighed(part.error for part in parts)
    return Estimate(seconds, basis, errors, floor, weighed(part.error_p90 for part in parts))
