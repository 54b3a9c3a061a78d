"""How long one transfer takes at link rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.hop import Transfer
    from tracer.scenario import Scenario


def transfer_seconds(scenario: Scenario, transfer: Transfer) -> float:
    """``latency + bytes / bandwidth`` of the transfer's tier (counting rules, section 9)."""
    link = scenario.cluster.link(transfer.tier)
    return link.latency_s + transfer.bytes / link.bytes_per_s
