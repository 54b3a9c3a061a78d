"""The lines of a pass: what each piece of a layer takes, what binds it, and what its time rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.display import format_bytes, format_seconds
from tracer.mesh.axes import Axis
from tracer.timing.basis import PEAK_BASIS

if TYPE_CHECKING:
    from tracer.timing.calibration.answer import Estimate
    from tracer.timing.pass_time import PassTime


def known_words(whole: PassTime) -> str:
    """The pass's floor, its expected error and its interval, or why there is none."""
    floor = f"floor {format_seconds(whole.floor_seconds)} at peak"
    error, interval = whole.error, whole.interval_seconds
    if error is None or interval is None:
        return f"{floor}; no error known: over a tenth of it rests on calls or sizes that were not measured"
    low, high = map(format_seconds, interval)
    return f"{floor}; expected error {error:.1%}, nine of ten between {low} and {high}, by its parts' errors"


@dataclass(frozen=True, slots=True)
class PassRow:
    """One line of a pass: seconds and floor of a layer's piece, what binds it, what the time rests on."""

    name: str
    seconds: float
    floor_seconds: float
    binds: str
    basis: str


def pass_rows(whole: PassTime) -> Iterator[PassRow]:
    """Operators, small kernels, exchanges and traffic of a pass in order."""
    for name, each in whole.operators:
        binds = f"{each.bound}, {each.operator.intensity:.3g} FLOP/B"
        yield PassRow(name, each.seconds, each.floor_seconds, binds, basis_words(each.estimate))
    for name, exchange in whole.exchange.items():
        sizes = [format_bytes(size) for size in (exchange.nvlink_bytes, exchange.ib_bytes)]
        binds = f"{exchange.binding or 'nothing'}: {sizes[0]} NVLink, {sizes[1]} IB a GPU"
        basis = basis_words(exchange.estimate)
        yield PassRow(name, exchange.seconds, exchange.floor_seconds, binds, basis)
    for line in whole.traffic.lines:
        if not (line.axis == Axis.EP and whole.exchange):
            name = f"{line.axis} {line.part.replace('_', ' ')}"
            binds = f"{line.tier or 'nothing'}, a {line.per}"
            basis = basis_words(whole.axes.get((line.axis, line.part)))
            yield PassRow(name, whole.line_seconds(line), line.seconds, binds, basis)


def basis_words(found: Estimate | None) -> str:
    """What a time rests on, with its expected error."""
    if found is None:
        return PEAK_BASIS
    return f"{found.basis}; " + ("error unknown" if found.error is None else f"error {found.error:.1%}")
