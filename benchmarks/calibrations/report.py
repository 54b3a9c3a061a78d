"""Errors of a kind on rows, shapes and systems left out of its fit, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.calibrations.rows import SYSTEMS
from benchmarks.calibrations.specs import Spec
from benchmarks.calibrations.validate import (
    Prepared,
    as_calibration,
    fit_kind,
    follows_of,
    left_out,
    quantiles,
    transferred,
)
from tracer.timing.calibration.systems import known_hardware, nearness, reach_of

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class KindErrors:
    """Median and ninetieth percentile of relative errors of one kind.

    ``rows`` leaves single rows out, ``shapes`` all rows of a shape, ``transfer`` a whole system;
    ``by_variant`` (of ``rows``) and ``by_system`` (of ``transfer``) split them; ``follows`` is
    the power of the data sheet's rates that transfers take.
    """

    kind: str
    rows: Pair
    shapes: Pair
    transfer: Pair
    by_variant: dict[tuple[str, str], tuple[float, float, int]]
    by_system: dict[str, Pair]
    follows: float

    def of(self, system: str, variant: str) -> Pair:
        """Errors of a variant, or of the kind where its folds were too small to fit."""
        median, p90, _ = self.by_variant.get((system, variant), (*self.rows, 0))
        return median, p90

    def transfers(self) -> dict[str, Pair]:
        """Errors of transfers by how far apart the two data sheets are: the larger of those seen."""
        found: dict[str, Pair] = {}
        for system, pair in self.by_system.items():
            distance = next(far for far, _ in nearness(known_hardware(system)) if far)
            reach = reach_of(distance)
            known = found.get(reach, (0.0, 0.0))
            found[reach] = max(known[0], pair[0]), max(known[1], pair[1])
        return found

    def __str__(self) -> str:
        lines = [
            f"{self.kind}: rows left out {_shown(self.rows)}, shapes {_shown(self.shapes)}, "
            f"a system {_shown(self.transfer)} at rates to the power {self.follows:g}"
        ]
        lines += [
            f"  {system} {variant:<32} {median:6.1%} {p90:7.1%}  {count} rows"
            for (system, variant), (median, p90, count) in sorted(self.by_variant.items())
        ]
        lines += [f"  to {system} from the others: {_shown(pair)}" for system, pair in self.by_system.items()]
        return "\n".join(lines)


def _shown(pair: Pair) -> str:
    return f"{pair[0]:.1%} (p90 {pair[1]:.1%})"


def errors_of(kind: str, spec: Spec, data: Prepared) -> KindErrors:
    """Fit and look, several times over."""
    rows, shapes = left_out(kind, spec, data, "rows"), left_out(kind, spec, data, "shapes")
    groups: dict[tuple[str, str], list[float]] = {}
    for at, error in rows:
        groups.setdefault((data.rows[at].system, data.works[at].variant), []).append(error)
    split = {key: (*quantiles(values), len(values)) for key, values in groups.items()}
    follows = follows_of(as_calibration(fit_kind(kind, spec, data)), data)
    moved = {system: _to(kind, spec, data, system, follows) for system in SYSTEMS}
    everything = [error for errors in moved.values() for error in errors]
    return KindErrors(
        kind,
        quantiles(error for _, error in rows),
        quantiles(error for _, error in shapes),
        quantiles(everything),
        split,
        {system: quantiles(errors) for system, errors in moved.items() if errors},
        follows,
    )


def _to(kind: str, spec: Spec, data: Prepared, system: str, follows: float) -> Sequence[float]:
    """Errors on a system that the fit has not seen, by the nearest one that it has.

    ``follows``, one number a kind, has seen all systems.
    """
    others = [at for at, row in enumerate(data.rows) if row.system != system]
    fitted = as_calibration(fit_kind(kind, spec, data.part(others)))
    order = [name for distance, name in nearness(known_hardware(system)) if distance]
    return [error for _, error in transferred(fitted, data, system, order, follows)]
