"""How long a trip takes on its links: each transfer, each hop of the token, and the sum since the landing.

Only the time of links counts: no other token is on the way, and nothing is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tracer.display import exact_sum, running_sums
from tracer.mesh.cluster import Link, Tier
from tracer.trip.hop import WEIGHT_KINDS, HopKind, Role

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.trip.hop import Hop, Transfer
    from tracer.trip.trip import Trip


_AFTER: dict[str, tuple[str, ...]] = {
    Role.FORWARD: (Role.DISPATCH,),
    Role.SUM: (Role.RESULT,),
    Role.ROW: (Role.ROW, Role.PARTIAL),
    Role.PARTIAL: (Role.PARTIAL,),
    Role.KV: (Role.KV,),
}
"""What a rank must have received within the hop before it can send a role on."""

_NEVER_WAIT = {(HopKind.DISPATCH, Role.ROW), (HopKind.COMBINE, Role.PARTIAL)}
"""Roles that are the sender's own in these hops (all-gather and reduce-scatter of a MoE block)."""


class LinkRates(NamedTuple):
    """The two links of a GPU, one direction each: NVLink inside an NVLink domain, IB between domains."""

    nvlink: Link
    ib: Link

    @classmethod
    def of(cls, cluster: Cluster) -> LinkRates:
        """The cluster's own links: peak rates unless the scenario states others."""
        return cls(cluster.nvlink, cluster.ib)

    def link(self, tier: str) -> Link:
        """The link of a tier."""
        return self.nvlink if tier == Tier.NVLINK else self.ib


class HopTime(NamedTuple):
    """Seconds of a hop, and of its busiest port on each tier; ``binding`` is the slower tier, if any."""

    seconds: float
    nvlink_seconds: float
    ib_seconds: float

    @property
    def binding(self) -> str | None:
        """The tier whose busiest port works longer; None when nothing moves."""
        if self.seconds == 0:
            return None
        return Tier.IB if self.ib_seconds > self.nvlink_seconds else Tier.NVLINK


def transfer_seconds(link: Link, payload_bytes: float) -> float:
    """``latency + bytes / bandwidth`` (counting rules, section 9; NCCL's docs say the same).

    >>> transfer_seconds(Link(50e9, 2e-6), 100_000)
    4e-06
    """
    return link.latency_s + payload_bytes / link.bytes_per_s


def hop_time(hop: Hop, rates: LinkRates) -> HopTime:
    """One token's hop, store and forward: a transfer starts when its source has what it sends on.

    Each rank has one port per tier and a direction. Bytes occupy a port for bytes / bandwidth; latency
    delays their arrival and occupies nothing. Transfers take ports in the order of the hop.
    """
    walk = _Walk(hop.kind, rates)
    for transfer in hop.transfers:
        walk.take(transfer)
    return HopTime(walk.last, walk.busiest(Tier.NVLINK), walk.busiest(Tier.IB))


class _Walk:
    """Ports and arrivals while a hop's transfers are walked; lives for one call."""

    def __init__(self, kind: str, rates: LinkRates) -> None:
        self.kind, self.rates = kind, rates
        self.last = 0.0
        self.free: dict[tuple[int, str, str], float] = {}
        self.busy: dict[tuple[int, str, str], float] = {}
        self.arrived: dict[tuple[int, str], float] = {}

    def take(self, transfer: Transfer) -> None:
        """Put one transfer on its ports."""
        link = self.rates.link(transfer.tier)
        occupied = transfer.bytes / link.bytes_per_s
        ports = ((transfer.src, transfer.tier, "out"), (transfer.dst, transfer.tier, "in"))
        start = max(self._ready(transfer), *(self.free.get(port, 0.0) for port in ports))
        for port in ports:
            self.free[port] = start + occupied
            self.busy[port] = self.busy.get(port, link.latency_s) + occupied
        arrival = start + link.latency_s + occupied
        key = (transfer.dst, transfer.role)
        self.arrived[key] = max(self.arrived.get(key, 0.0), arrival)
        self.last = max(self.last, arrival)

    def _ready(self, transfer: Transfer) -> float:
        """When the source holds what it sends."""
        if (self.kind, transfer.role) in _NEVER_WAIT:
            return 0.0
        awaited = _AFTER.get(transfer.role, ())
        return max((self.arrived.get((transfer.src, role), 0.0) for role in awaited), default=0.0)

    def busiest(self, tier: str) -> float:
        """Seconds of the port of a tier that works longest, one latency included."""
        return max((seconds for port, seconds in self.busy.items() if port[1] == tier), default=0.0)


@dataclass(frozen=True, slots=True)
class TripTime:
    """Time of each hop of a trip and the sum after it, in seconds, at ``rates``.

    Only this one token's bytes are on the links: no other token, no arithmetic, no waiting.
    ``rates_name`` says whose rates they are.
    """

    hops: tuple[HopTime, ...]
    rates: LinkRates
    rates_name: str
    weights_word: str | None = None

    @property
    def cumulative_seconds(self) -> tuple[float, ...]:
        """Seconds since the landing, after each hop."""
        return tuple(running_sums(hop.seconds for hop in self.hops))

    @property
    def seconds(self) -> float:
        """Seconds of the whole trip."""
        return exact_sum(hop.seconds for hop in self.hops)

    @property
    def assumption(self) -> str:
        """What the times assume, in one line."""
        links = ", ".join(
            f"{name} {link.bytes_per_s / 1e9:g} GB/s"
            + (f" + {link.latency_s * 1e6:g} µs" if link.latency_s else "")
            for name, link in (("NVLink", self.rates.nvlink), ("IB", self.rates.ib))
        )
        word = self.weights_word
        pulls = f"; weights are {word} when they are needed, not ahead" if word else ""
        return f"links alone, this token alone, {self.rates_name} rates one way ({links}){pulls}"


def trip_time(trip: Trip, rates: LinkRates | None = None, rates_name: str = "the cluster's") -> TripTime:
    """Time of a trip's hops at ``rates``, or at those of the scenario's cluster."""
    rates = rates or LinkRates.of(trip.scenario.cluster)
    word = trip.scenario.plan.weights_word if any(hop.kind in WEIGHT_KINDS for hop in trip.hops) else None
    return TripTime(tuple(hop_time(hop, rates) for hop in trip.hops), rates, rates_name, word)
