"""Whether a matmul over so many rows is bound by arithmetic or by reading its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.dtype import BYTES
from tracer.hardware import hardware_preset

if TYPE_CHECKING:
    from tracer.scenario import Scenario

Bound = tuple[str, dict[str, float], str]


def bound_words(scenario: Scenario, rows: int) -> Bound:
    """(sentence, figures, why only stated) for weights that ``rows`` rows share.

    A weight of b bytes is read once and does 2 FLOP a row: ``2 · rows / b`` FLOP a byte, against the GPU's
    peak FLOP/s over its HBM bytes/s (both from its data sheet figures; the roofline of one matmul).
    """
    size = BYTES[scenario.dtype.weights]
    intensity = 2 * rows / size
    figures: dict[str, float] = {"rows": rows, "flop_per_byte": intensity}
    ridge = _ridge(scenario, size)
    if ridge is None:
        usual = "memory-bound" if scenario.decodes else "compute-bound"
        return (
            f"matmuls of {rows:,} row{'s' * (rows > 1)}: {intensity:,.4g} FLOP a weight byte, "
            f"usually {usual}",
            figures,
            "no peak rates known: name cluster.hardware that has them",
        )
    word = "compute-bound" if intensity >= ridge else "memory-bound"
    against = f"{intensity:,.4g} FLOP a weight byte, the ridge is at {ridge:,.4g}"
    words = f"matmuls of {rows:,} row{'s' * (rows > 1)} are {word}: {against}"
    return words, figures | {"ridge_flop_per_byte": ridge}, ""


def _ridge(scenario: Scenario, size: int) -> float | None:
    """Peak FLOP/s over HBM bytes/s of the named hardware, for weights of ``size`` bytes."""
    if scenario.cluster.hardware is None:
        return None
    hardware = hardware_preset(scenario.cluster.hardware)
    peak = hardware.fp8_flops if size == 1 else hardware.bf16_flops
    if peak is None or hardware.hbm_bytes_per_s is None:
        return None
    return peak / hardware.hbm_bytes_per_s
