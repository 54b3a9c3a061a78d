"""Whether times are asked from fits of measurements or from the data sheet's peak."""

from __future__ import annotations

from enum import StrEnum

from tracer.errors import word_of

PEAK_BASIS = "peak: the data sheet's rates, a lower bound"


class Rates(StrEnum):
    """``calibrated``: fits of measured kernels where there are any; ``peak``: floors by the data sheet."""

    CALIBRATED = "calibrated"
    PEAK = "peak"


def rates_word(value: object) -> Rates:
    """The member that a user named.

    >>> rates_word("peak") is Rates.PEAK
    True

    Raises:
        ConfigError: for another word.
    """
    return word_of("rates", value, Rates)
