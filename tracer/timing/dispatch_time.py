"""How long a batch's dispatch or combine takes through relays, and which tier binds.

A row crosses IB once to each remote NVLink domain, to the relay with the home's index, which forwards it over
NVLink (DeepSeek-V3 report, section 3.2.2). Many rows are under way at once, so both tiers work at the
same time and the slower one sets the pace; ``overlapped=False`` adds them instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.errors import finite_number
from tracer.mesh.cluster import Tier
from tracer.traffic.moe import RowBytes
from tracer.trip.clock import LinkRates, transfer_seconds
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from tracer.timing.calibration.answer import Estimate
    from tracer.traffic.dispatch import DispatchCopies
    from tracer.traffic.traffic import CommVolume

DISPATCH, COMBINE = "dispatch", "combine"


@dataclass(frozen=True, slots=True)
class ExchangeTime:
    """One exchange of a batch: bytes a GPU sends on each tier, their seconds, and the whole.

    ``estimate`` is what the measured kernels take; None at link rates.
    """

    nvlink_bytes: float
    ib_bytes: float
    nvlink_seconds: float
    ib_seconds: float
    overlapped: bool = True
    estimate: Estimate | None = None

    @property
    def seconds(self) -> float:
        """The measured kernels' time, or that of the links."""
        return self.floor_seconds if self.estimate is None else max(self.estimate.seconds, self.floor_seconds)

    @property
    def floor_seconds(self) -> float:
        """The slower tier, or both added."""
        parts = (self.nvlink_seconds, self.ib_seconds)
        return max(parts) if self.overlapped else exact_sum(parts)

    @property
    def binding(self) -> str | None:
        """The tier that takes longer; None when nothing moves."""
        if self.floor_seconds == 0:
            return None
        return Tier.IB if self.ib_seconds > self.nvlink_seconds else Tier.NVLINK


def exchange_time(
    nvlink_bytes: float, ib_bytes: float, rates: LinkRates, *, overlapped: bool = True
) -> ExchangeTime:
    """Latency + bytes / bandwidth on each tier that carries anything.

    Raises:
        ConfigError: for negative bytes.
    """
    nvlink = finite_number("exchange.nvlink_bytes", nvlink_bytes, zero=True)
    ib = finite_number("exchange.ib_bytes", ib_bytes, zero=True)
    return ExchangeTime(
        nvlink,
        ib,
        transfer_seconds(rates.nvlink, nvlink) if nvlink else 0.0,
        transfer_seconds(rates.ib, ib) if ib else 0.0,
        overlapped,
    )


def batch_exchange(
    copies: DispatchCopies,
    rows: float,
    row_bytes: float,
    rates: LinkRates,
    *,
    low_latency: bool = False,
    overlapped: bool = True,
) -> ExchangeTime:
    """An exchange of ``rows`` rows per GPU, from the expected copies of one row.

    High throughput moves one copy per GPU and per remote NVLink domain; low latency one message per pick,
    straight. Combine mirrors dispatch in copies, with its own ``row_bytes``.
    """
    if low_latency:
        nvlink, ib = copies.messages - copies.messages_ib, copies.messages_ib
    else:
        nvlink, ib = copies.nvlink, copies.ib
    return exchange_time(nvlink * rows * row_bytes, ib * rows * row_bytes, rates, overlapped=overlapped)


def moe_exchange(
    traffic: CommVolume, rates: LinkRates, *, overlapped: bool = True
) -> dict[str, ExchangeTime]:
    """Dispatch and combine of one MoE layer, from a scenario's expected traffic; empty when neither moves.

    Contracts ``ep`` and ``ag_rs``: both ways move as many copies, in rows of their own size.
    """
    line = traffic.axis("ep")
    if line is None or line.part == HopKind.WEIGHT_PULL:
        return {}
    size = RowBytes.of(traffic.scenario)
    return {
        name: exchange_time(
            line.nvlink_bytes * each / size.both,
            line.ib_bytes * each / size.both,
            rates,
            overlapped=overlapped,
        )
        for name, each in ((DISPATCH, size.dispatch), (COMBINE, size.combine))
    }
