"""One line of expected traffic: what an axis sends, in elements, bytes and seconds, and by which formula.

Figures are averages over pipeline stages, which may hold different numbers of layers and sit differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum
from tracer.mesh.axes import Axis
from tracer.mesh.cluster import Tier
from tracer.mesh.group_kinds import group_kinds

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.scenario.scenario import Scenario

    Cut = Callable[[tuple[int, ...]], Iterable[Sequence[int]]]


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


def runs_of(ranks: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Ranks in runs of ``size``.

    >>> list(runs_of((0, 1, 2, 3), 2))
    [(0, 1), (2, 3)]
    """
    return (ranks[first : first + size] for first in range(0, len(ranks), size))


def crossing_share(
    scenario: Scenario,
    axes: tuple[Axis, ...],
    weights: list[int],
    *,
    ring: bool = False,
    cut: Cut | None = None,
) -> float:
    """Share of the messages of some groups that cross NVLink domains, stages weighted by ``weights``.

    ``axes`` name the groups, each within a stage; ``cut`` makes smaller ones of a group. Every ordered pair
    of a group counts alike, or with ``ring`` the links of a ring.
    """
    if not sum(weights):
        return 0.0
    mesh, cluster = scenario.mesh, scenario.cluster
    known: dict[int, float] = {}
    shares = []
    for stage, weight in enumerate(weights):
        start = mesh.rank_in_stage(stage, 0)
        # Stages that begin at the same place of a domain are alike.
        key = start % cluster.gpus_per_nvlink_domain if cluster.placement is None else stage
        if weight and key not in known:
            known[key] = _stage_share(scenario, axes, stage, ring, cut)
        shares.append(known[key] * weight if weight else 0.0)
    return exact_sum(shares) / sum(weights)


def _stage_share(
    scenario: Scenario, axes: tuple[Axis, ...], stage: int, ring: bool, cut: Cut | None
) -> float:
    """The share of one stage."""
    cluster, same, messages = scenario.cluster, 0, 0
    for kind in group_kinds(scenario.mesh, cluster, axes, stage):
        for group in (kind.ranks,) if cut is None else cut(kind.ranks):
            domains = [cluster.nvlink_domain_of(rank) for rank in group]
            members = len(domains)
            if members == 1:
                continue
            if ring:
                near = sum(here == there for here, there in pairwise([*domains, domains[0]]))
            else:
                near = sum(count * (count - 1) for count in Counter(domains).values())
            same += near * kind.count
            messages += (members if ring else members * (members - 1)) * kind.count
    return (messages - same) / messages if messages else 0.0
