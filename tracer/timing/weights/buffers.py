"""The double buffer of DWDP over a whole pass: when copies run, when compute stalls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tracer.display import exact_sum
from tracer.errors import ConfigError, finite_number, whole_number


@dataclass(frozen=True, slots=True)
class PassSlices:
    """(start, end) in seconds of each MoE layer's attention, experts and copy, in order of layers."""

    attention: tuple[tuple[float, float], ...]
    experts: tuple[tuple[float, float], ...]
    copies: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        """End of the last layer."""
        return self.experts[-1][1]

    @property
    def stall_seconds(self) -> float:
        """Seconds in which a layer waited for its experts."""
        return exact_sum(e[0] - a[1] for a, e in zip(self.attention, self.experts, strict=True))


def run_pass(
    layers: int,
    attention_seconds: float,
    experts_seconds: float,
    copy_seconds: float,
    *,
    buffers: int = 2,
    lead_seconds: float = 0.0,
    slowdown: float = 1.0,
) -> PassSlices:
    """``layers`` equal MoE layers whose experts are copied ahead into ``buffers`` buffers.

    A copy starts when the one before it has ended and the layer that last used its buffer is done; the
    first ones start with the pass, ``lead_seconds`` (dense layers) before the first MoE layer. Attention
    runs ``slowdown`` times slower while a copy is in flight, for the memory system is shared.

    Raises:
        ConfigError: for a time that is not above 0, no buffer, or a slowdown below 1.
    """
    whole_number("dwdp.layers", layers)
    whole_number("dwdp.buffers", buffers)
    attention = finite_number("dwdp.attention_seconds", attention_seconds, unit="seconds")
    experts = finite_number("dwdp.experts_seconds", experts_seconds, unit="seconds")
    copy = finite_number("dwdp.copy_seconds", copy_seconds, unit="seconds")
    if finite_number("dwdp.slowdown", slowdown, unit="seconds") < 1:
        raise ConfigError("dwdp.slowdown", slowdown, "must be 1 or more", "try 1.0")
    clock = finite_number("dwdp.lead_seconds", lead_seconds, zero=True, unit="seconds")
    looked_at: list[tuple[float, float]] = []
    worked: list[tuple[float, float]] = []
    copied: list[tuple[float, float]] = []
    for layer in range(layers):
        while len(copied) < min(layers, layer + buffers):
            released = worked[len(copied) - buffers][1] if len(copied) >= buffers else 0.0
            start = max(copied[-1][1] if copied else 0.0, released)
            copied.append((start, start + copy))
        end = slowed_end(clock, attention, copied[layer : layer + 2], slowdown)
        looked_at.append((clock, end))
        start = max(end, copied[layer][1])
        clock = start + experts
        worked.append((start, clock))
    return PassSlices(tuple(looked_at), tuple(worked), tuple(copied))


def slowed_end(start: float, seconds: float, busy: Iterable[tuple[float, float]], slowdown: float) -> float:
    """End of ``seconds`` of work from ``start`` on, ``slowdown`` times slower within the ``busy`` spans.

    Spans are in order and do not overlap.

    >>> slowed_end(0.0, 4.0, [(1.0, 3.0)], 2.0)
    5.0
    """
    left, now = seconds, start
    for begin, end in busy:
        if end <= now:
            continue
        free = max(0.0, begin - now)
        if left <= free:
            return now + left
        left, now = left - free, max(now, begin)
        done = (end - now) / slowdown
        if left <= done:
            return now + left * slowdown
        left, now = left - done, end
    return now + left
