"""Which calibrated GPU a piece of hardware is, or the nearest one by the data sheet."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import log

from tracer.mesh.hardware import Hardware, hardware_preset

CALIBRATED = ("h100", "h200", "b200")
NEAR, FAR = "near", "far"
FAR_FROM = 0.7
"""Distance above which a transfer counts as far: H100 to H200 is 0.13, H200 to B200 is 2.1."""
_SHEET = ("bf16_flops", "fp8_flops", "hbm_bytes_per_s", "nvlink_bytes_per_s")
_RATES = (*_SHEET, "fp4_flops", "ib_bytes_per_s")


@lru_cache(maxsize=64)
def known_hardware(name: str) -> Hardware:
    """The preset of a name, read once.

    Raises:
        ConfigError: for a name that does not ship.
    """
    return hardware_preset(name)


@lru_cache(maxsize=256)
def nearness(hardware: Hardware) -> tuple[tuple[float, str], ...]:
    """Calibrated systems, nearest first: (distance, name).

    The distance is Σ (logarithm of the ratio)^2 over the data sheet's rates that both state; 0 is the
    system itself.
    """
    return tuple(sorted((_distance(hardware, known_hardware(name)), name) for name in CALIBRATED))


def _distance(one: Hardware, other: Hardware) -> float:
    pairs = ((getattr(one, rate), getattr(other, rate)) for rate in _SHEET)
    return sum(log(mine / its) ** 2 for mine, its in pairs if mine and its)


def between(measured: Hardware, asked: Hardware, follows: float) -> Hardware:
    """The asked GPU as kernels of the measured one know it: every rate by (asked / measured)^follows.

    Rates that the measured one lacks stay as asked. With 1 it is the asked GPU, with 0 the measured one.
    """
    rates = {
        rate: its * (mine / its) ** follows
        for rate in _RATES
        if (mine := getattr(asked, rate)) and (its := getattr(measured, rate))
    }
    return asked if follows == 1 else replace(asked, **rates)


def reach_of(distance: float) -> str:
    """Whether a transfer over this distance is near (one generation) or far.

    >>> reach_of(0.13), reach_of(2.1)
    ('near', 'far')
    """
    return FAR if distance > FAR_FROM else NEAR
