"""How long a batch's dispatch or combine takes through relays, and which tier binds.

A row crosses IB once to each remote island, to the relay with the home's index, which forwards it over
NVLink (DeepSeek-V3 report, section 3.2.2). Many rows are under way at once, so both tiers work at the
same time and the slower one sets the pace; ``overlapped=False`` adds them instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.cluster import Tier
from tracer.timing.checks import check_amount
from tracer.timing.links import LinkRates, transfer_seconds

if TYPE_CHECKING:
    from tracer.expected_dispatch import DispatchCopies
    from tracer.scenario import Scenario

DISPATCH, COMBINE = "dispatch", "combine"


@dataclass(frozen=True, slots=True)
class ExchangeTime:
    """One exchange of a batch: bytes a GPU sends on each tier, their seconds, and the whole."""

    nvlink_bytes: float
    ib_bytes: float
    nvlink_seconds: float
    ib_seconds: float
    overlapped: bool = True

    @property
    def seconds(self) -> float:
        """The slower tier, or both added."""
        parts = (self.nvlink_seconds, self.ib_seconds)
        return max(parts) if self.overlapped else sum(parts)

    @property
    def binding(self) -> str | None:
        """The tier that takes longer; None when nothing moves."""
        if self.seconds == 0:
            return None
        return Tier.IB if self.ib_seconds > self.nvlink_seconds else Tier.NVLINK


def exchange_time(
    nvlink_bytes: float, ib_bytes: float, rates: LinkRates, *, overlapped: bool = True
) -> ExchangeTime:
    """Latency + bytes / bandwidth on each tier that carries anything.

    Raises:
        ConfigError: for negative bytes.
    """
    nvlink = check_amount("exchange.nvlink_bytes", nvlink_bytes)
    ib = check_amount("exchange.ib_bytes", ib_bytes)
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
    """An exchange of ``rows`` rows a GPU, from the expected copies of one row.

    High throughput moves one copy a GPU and a remote island; low latency one message a pick, straight.
    Combine mirrors dispatch in copies, with its own ``row_bytes``.
    """
    if low_latency:
        nvlink, ib = copies.messages - copies.messages_ib, copies.messages_ib
    else:
        nvlink, ib = copies.nvlink, copies.ib
    return exchange_time(nvlink * rows * row_bytes, ib * rows * row_bytes, rates, overlapped=overlapped)


def moe_exchange(
    scenario: Scenario, tokens: int, rates: LinkRates, *, overlapped: bool = True
) -> dict[str, ExchangeTime]:
    """Dispatch and combine of one MoE layer with ``tokens`` tokens a replica; empty when neither moves.

    Uniform picks; contract ``ep`` by expected copies, ``ag_rs`` all rows to all peers and back.

    Raises:
        ConfigError: for a mesh too large to sum over.
    """
    from tracer.expected_moe import RowBytes, average_copies, dispatched_rows
    from tracer.plan import Contract

    mesh, plan = scenario.mesh, scenario.plan
    if plan.contract not in (Contract.EP, Contract.AG_RS) or mesh.size_of("ep") * mesh.size_of("etp") == 1:
        return {}
    rows, size = dispatched_rows(scenario, tokens), RowBytes.of(scenario)
    sizes = {DISPATCH: size.dispatch, COMBINE: size.combine}
    if plan.contract == Contract.AG_RS:
        nvlink, ib = _all_peers(scenario)
        return {
            name: exchange_time(nvlink * rows * each, ib * rows * each, rates, overlapped=overlapped)
            for name, each in sizes.items()
        }
    copies, low = average_copies(scenario), plan.dispatch == "low_latency"
    return {
        name: batch_exchange(copies, rows, each, rates, low_latency=low, overlapped=overlapped)
        for name, each in sizes.items()
    }


def _all_peers(scenario: Scenario) -> tuple[float, float]:
    """Copies of a row over (NVLink, IB) when it goes to every other rank of the dispatch group."""
    from tracer.rank_places import islands_of, pair_crossing_share

    mesh = scenario.mesh
    peers = mesh.size_of("etp") * mesh.size_of("ep") - 1
    share = pair_crossing_share(islands_of(scenario.cluster, mesh.groups("dispatch")))
    return peers * (1 - share), peers * share
