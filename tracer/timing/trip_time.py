"""A trip with its time: seconds a hop and since the landing, link time only."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tracer.hop import HopKind
from tracer.timing.links import HopTime, LinkRates, hop_time

if TYPE_CHECKING:
    from tracer.trip import Trip


@dataclass(frozen=True, slots=True)
class TripTime:
    """Time of each hop of a trip and the sum after it, in seconds, at ``rates``.

    Only this one token's bytes are on the links: no other token, no arithmetic, no waiting.
    ``rates_name`` says whose rates they are.
    """

    hops: tuple[HopTime, ...]
    rates: LinkRates
    rates_name: str
    pulls_weights: bool = False

    @property
    def cumulative_seconds(self) -> tuple[float, ...]:
        """Seconds since the landing, after each hop."""
        return tuple(accumulate(hop.seconds for hop in self.hops))

    @property
    def seconds(self) -> float:
        """Seconds of the whole trip."""
        return sum(hop.seconds for hop in self.hops)

    @property
    def assumption(self) -> str:
        """What the times assume, in one line."""
        links = ", ".join(
            f"{name} {link.bytes_per_s / 1e9:g} GB/s"
            + (f" + {link.latency_s * 1e6:g} µs" if link.latency_s else "")
            for name, link in (("NVLink", self.rates.nvlink), ("IB", self.rates.ib))
        )
        pulls = "; weights are pulled when they are needed, not ahead" if self.pulls_weights else ""
        return f"links alone, this token alone, {self.rates_name} rates one way ({links}){pulls}"


def trip_time(trip: Trip, rates: LinkRates | None = None, rates_name: str = "the cluster's") -> TripTime:
    """Time of a trip's hops at ``rates``, or at those of the scenario's cluster."""
    rates = rates or LinkRates.of(trip.scenario.cluster)
    pulls = any(hop.kind is HopKind.WEIGHT_PULL for hop in trip.hops)
    return TripTime(tuple(hop_time(hop, rates) for hop in trip.hops), rates, rates_name, pulls)
