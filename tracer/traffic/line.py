"""One line of expected traffic: what an axis sends, in elements, bytes and seconds, and by which formula.

Figures are averages over pipeline stages, which may hold different numbers of layers and sit differently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.mesh.cluster import Tier, nvlink_domains_of, pair_crossing_share, ring_crossing_share

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.mesh.grid import IntArray
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTraffic:
    """What one GPU sends, on average, for one part of the model.

    ``elements`` and ``bytes`` follow the ``formula``; ``nvlink_*`` and ``ib_*`` are what its links
    really carry (for ``ep`` after de-duplication and without what stays home, so they do not add up to
    ``elements``). ``times`` says how often one forward pass through all stages does it: layers, or stage
    boundaries; ``layers`` names them where not all layers of the model have the line. Seconds are bytes
    over the link's rate; the two tiers overlap, so ``seconds`` is the longer.
    """

    axis: str
    part: str
    per: str
    times: int
    formula: str
    numbers: str
    elements: float
    bytes: float
    nvlink_elements: float
    ib_elements: float
    nvlink_bytes: float
    ib_bytes: float
    nvlink_seconds: float
    ib_seconds: float
    layers: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """The longer of the two tiers' times."""
        return max(self.nvlink_seconds, self.ib_seconds)

    @property
    def tier(self) -> str | None:
        """The tier that takes longer; None when nothing moves."""
        if self.seconds == 0:
            return None
        return str(Tier.IB if self.ib_seconds >= self.nvlink_seconds else Tier.NVLINK)

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON values."""
        return {
            "part": self.part,
            "per": self.per,
            "times": self.times,
            "elements_per_gpu_per_layer": self.elements,
            "nvlink_elements_per_gpu_per_layer": self.nvlink_elements,
            "ib_elements_per_gpu_per_layer": self.ib_elements,
            "bytes": self.bytes,
            "bytes_by_tier": {"nvlink": self.nvlink_bytes, "ib": self.ib_bytes},
            "tier": self.tier,
            "seconds": self.seconds,
            "seconds_by_tier": {"nvlink": self.nvlink_seconds, "ib": self.ib_seconds},
            "formula": self.formula,
            "numbers": self.numbers,
        }


def plain_line(
    cluster: Cluster,
    axis: str,
    part: str,
    *,
    elements: float,
    element_bytes: float,
    ib_share: float,
    formula: str,
    numbers: str,
    times: int,
    per: str = "layer",
) -> AxisTraffic:
    """A line whose elements all move, a share of them over IB, and have one size."""
    return shared_line(
        cluster,
        axis,
        part,
        elements=elements,
        size=elements * element_bytes,
        ib_share=ib_share,
        formula=formula,
        numbers=numbers,
        times=times,
        per=per,
    )


def shared_line(
    cluster: Cluster,
    axis: str,
    part: str,
    *,
    elements: float,
    size: float,
    ib_share: float,
    formula: str,
    numbers: str,
    times: int,
    per: str = "layer",
) -> AxisTraffic:
    """A line of ``size`` bytes that all move, a share of them over IB."""
    inside = 1 - ib_share
    return split_line(
        cluster,
        axis,
        part,
        elements=elements,
        size=size,
        nvlink=(elements * inside, size * inside),
        ib=(elements * ib_share, size * ib_share),
        formula=formula,
        numbers=numbers,
        times=times,
        per=per,
    )


def split_line(
    cluster: Cluster,
    axis: str,
    part: str,
    *,
    elements: float,
    size: float,
    nvlink: tuple[float, float],
    ib: tuple[float, float],
    formula: str,
    numbers: str,
    times: int,
    per: str = "layer",
) -> AxisTraffic:
    """A line from its formula's elements and bytes, and (elements, bytes) that each tier carries."""
    return AxisTraffic(
        axis=axis,
        part=part,
        per=per,
        times=times,
        formula=formula,
        numbers=numbers,
        elements=elements,
        bytes=size,
        nvlink_elements=nvlink[0],
        ib_elements=ib[0],
        nvlink_bytes=nvlink[1],
        ib_bytes=ib[1],
        nvlink_seconds=nvlink[1] / cluster.nvlink.bytes_per_s,
        ib_seconds=ib[1] / cluster.ib.bytes_per_s,
    )


def layers_by_stage(scenario: Scenario, counted: Callable[[int], bool] = lambda _: True) -> list[int]:
    """How many layers of each stage are ``counted`` (a test of a layer number, from 1)."""
    return [sum(counted(layer) for run in runs for layer in run) for runs in scenario.stage_runs]


def crossing_share(scenario: Scenario, axis: str, weights: list[int], *, ring: bool = False) -> float:
    """Share of an axis's messages that cross NVLink domains, stages weighted by ``weights``.

    ``axis`` is tp, cp or dispatch; every ordered pair of a group alike, or with ``ring`` the links of a
    ring.
    """
    return share_of_groups(scenario, scenario.mesh.groups(axis), weights, ring=ring) if sum(weights) else 0.0


def share_of_groups(scenario: Scenario, groups: IntArray, weights: list[int], *, ring: bool = False) -> float:
    """The same for any groups, ``[groups, members]`` ranks, each within a stage."""
    stages = scenario.mesh.coordinates_of(groups[:, 0])["pp"]
    nvlink_domains = nvlink_domains_of(scenario.cluster, groups)
    measure = ring_crossing_share if ring else pair_crossing_share
    shares = [
        measure(nvlink_domains[stages == stage]) if weight else 0.0 for stage, weight in enumerate(weights)
    ]
    return float(np.average(shares, weights=weights))
