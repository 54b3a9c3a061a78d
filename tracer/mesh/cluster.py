"""The machines: nodes, NVLink domains, rails, link tiers, and which rank sits where.

:class:`Cluster` answers for one rank; the functions below it answer for whole arrays of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, finite_number, whole_number
from tracer.mesh.hardware import GpuFigures, Hardware, hardware_preset

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np
    from numpy.typing import NDArray

    from tracer.mesh.grid import IntArray

    Int64s = NDArray[np.int64]


MAX_GRAPH_RANKS = 1 << 16


class Tier(StrEnum):
    """Which link a transfer takes: NVLink inside an NVLink domain, InfiniBand between domains."""

    NVLINK = "nvlink"
    IB = "ib"


@dataclass(frozen=True, slots=True)
class Link:
    """A link of one GPU: bytes per second in ONE direction, and the latency of a message in seconds."""

    bytes_per_s: float
    latency_s: float = 0.0


H100_NVLINK = Link(450e9)
NDR_IB = Link(50e9)


@dataclass(frozen=True, slots=True)
class Cluster:
    """``world_size`` ranks on nodes of ``gpus_per_node``; the last node may be partly empty.

    An NVLink domain is ``nodes_per_island`` whole nodes. ``placement``, when given, lists
    (node, local index) of every rank; without it rank r sits at (r // gpus_per_node, r % gpus_per_node).
    ``figures`` are stated by hand and go before those of ``hardware``.

    >>> cluster = Cluster(world_size=32, gpus_per_node=8)
    >>> cluster.node_of(11), cluster.local_index(11), str(cluster.tier(11, 3)), cluster.rank_at(0, 3)
    (1, 3, 'ib', 3)

    Raises:
        ConfigError: when the nodes do not fit the ranks, or a placement repeats or leaves the nodes.
    """

    world_size: int
    gpus_per_node: int = 8
    nodes: int | None = None
    nodes_per_island: int = 1
    nvlink: Link = H100_NVLINK
    ib: Link = NDR_IB
    hardware: str | None = None
    placement: tuple[tuple[int, int], ...] | None = None
    figures: GpuFigures = field(default_factory=GpuFigures)
    _rank_at: dict[tuple[int, int], int] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        whole_number("cluster.gpus_per_node", self.gpus_per_node)
        whole_number("cluster.nodes_per_island", self.nodes_per_island)
        needed = -(-self.world_size // self.gpus_per_node)
        if self.nodes is None:
            object.__setattr__(self, "nodes", needed)
        whole_number("cluster.nodes", self.nodes)
        for name, link in (("nvlink", self.nvlink), ("ib", self.ib)):
            _check_link(name, link)
        if self.placement is not None:
            object.__setattr__(self, "_rank_at", self._checked_placement(self.placement))
        elif self.nodes != needed:
            self._refuse_size(needed)

    def _refuse_size(self, needed: int) -> None:
        gpus = (self.nodes or 0) * self.gpus_per_node
        raise ConfigError(
            "cluster.nodes",
            self.nodes,
            f"x {self.gpus_per_node} GPUs per node is {gpus}, "
            f"but the mesh's tp·cp·dp·pp is {self.world_size}",
            f"try nodes = {needed}, or sizes that multiply to {gpus}",
        )

    def _checked_placement(self, placement: tuple[tuple[int, int], ...]) -> dict[tuple[int, int], int]:
        """Inverse of the placement, by (NVLink domain, index within it)."""
        if len(placement) != self.world_size:
            raise ConfigError(
                "cluster.placement",
                f"{len(placement)} entries",
                f"must give [node, local] for each of the {self.world_size} ranks",
                "add or drop entries",
            )
        found: dict[tuple[int, int], int] = {}
        for rank, (node, local) in enumerate(placement):
            if not (0 <= node < (self.nodes or 0) and 0 <= local < self.gpus_per_node):
                raise ConfigError(
                    f"cluster.placement[{rank}]",
                    [node, local],
                    f"must lie on {self.nodes} nodes of {self.gpus_per_node} GPUs",
                    "mend the entry, or raise cluster.nodes or gpus_per_node",
                )
            place = (node // self.nodes_per_island, node % self.nodes_per_island * self.gpus_per_node + local)
            if place in found:
                raise ConfigError(
                    f"cluster.placement[{rank}]",
                    [node, local],
                    f"is taken by rank {found[place]}",
                    "use each GPU once",
                )
            found[place] = rank
        return found

    @property
    def gpu(self) -> Hardware | None:
        """The GPU with the figures stated here before its own; None where it has no name and no figures.

        Raises:
            ConfigError: for hardware that does not ship.
        """
        stated = self.figures.stated
        if self.hardware is not None:
            named = hardware_preset(self.hardware)
            return replace(named, **stated) if stated else named  # type: ignore[arg-type]
        if not stated:
            return None
        return Hardware(
            name="a GPU stated by hand",
            nvlink_bytes_per_s=self.nvlink.bytes_per_s,
            ib_bytes_per_s=self.ib.bytes_per_s,
            gpus_per_node=self.gpus_per_node,
            gpus_per_nvlink_domain=self.gpus_per_nvlink_domain,
            source="stated in the scenario",
            **stated,  # type: ignore[arg-type]
        )

    def need_gpu(self, why: str) -> Hardware:
        """The GPU; ``why`` completes "is needed to ...".

        Raises:
            ConfigError: where neither hardware nor a figure is given.
        """
        gpu = self.gpu
        if gpu is None:
            raise ConfigError(
                "cluster.hardware",
                None,
                f"is needed to {why}",
                "add it to [cluster], for instance hardware = 'h100', or state the GPU's figures there",
            )
        return gpu

    @property
    def nvlink_domains(self) -> int:
        """Number of NVLink domains."""
        return -(-(self.nodes or 0) // self.nodes_per_island)

    @property
    def gpus_per_nvlink_domain(self) -> int:
        """GPUs in a full NVLink domain."""
        return self.gpus_per_node * self.nodes_per_island

    @property
    def domain_word(self) -> str:
        """What the log calls an NVLink domain: ``node``, or ``island`` where it has several nodes."""
        return "node" if self.nodes_per_island == 1 else "island"

    def node_of(self, rank: int) -> int:
        """Node a rank sits on."""
        return self.placement[rank][0] if self.placement is not None else rank // self.gpus_per_node

    def local_index(self, rank: int) -> int:
        """Place of a rank within its node."""
        return self.placement[rank][1] if self.placement is not None else rank % self.gpus_per_node

    def nvlink_domain_of(self, rank: int) -> int:
        """NVLink domain of a rank."""
        if self.placement is None:
            return rank // self.gpus_per_node // self.nodes_per_island
        return self.placement[rank][0] // self.nodes_per_island

    def index_in_nvlink_domain(self, rank: int) -> int:
        """Place of a rank within its NVLink domain; ranks with one index form a rail."""
        return self.node_of(rank) % self.nodes_per_island * self.gpus_per_node + self.local_index(rank)

    def rank_at(self, nvlink_domain: int, index: int) -> int | None:
        """The rank at a place of an NVLink domain, or None when no rank sits there."""
        if self._rank_at is not None:
            return self._rank_at.get((nvlink_domain, index))
        rank = nvlink_domain * self.gpus_per_nvlink_domain + index
        return rank if rank < self.world_size else None

    def tier(self, source: int, destination: int) -> Tier:
        """Link tier between two ranks."""
        return Tier.NVLINK if self.nvlink_domain_of(source) == self.nvlink_domain_of(destination) else Tier.IB

    def link(self, tier: Tier) -> Link:
        """The link of a tier."""
        return self.nvlink if tier is Tier.NVLINK else self.ib

    def graph(self) -> nx.Graph[object]:
        """The cluster as a networkx graph: ranks, one NVSwitch per NVLink domain, one switch per rail.

        Edges carry ``tier``, ``bytes_per_s`` (one direction) and ``latency_s``.

        Raises:
            ConfigError: above ``MAX_GRAPH_RANKS`` ranks.
        """
        import networkx as nx

        if self.world_size > MAX_GRAPH_RANKS:
            raise ConfigError(
                "world_size",
                self.world_size,
                f"is more than the {MAX_GRAPH_RANKS:,} ranks a graph may hold",
                "draw a part",
            )
        graph: nx.Graph[object] = nx.Graph()
        for rank in range(self.world_size):
            nvlink_domain, index = self.nvlink_domain_of(rank), self.index_in_nvlink_domain(rank)
            graph.add_node(
                rank,
                node=self.node_of(rank),
                local=self.local_index(rank),
                nvlink_domain=nvlink_domain,
                rail=index,
            )
            for switch, tier in ((f"nvswitch {nvlink_domain}", Tier.NVLINK), (f"rail {index}", Tier.IB)):
                link = self.link(tier)
                graph.add_edge(
                    rank, switch, tier=str(tier), bytes_per_s=link.bytes_per_s, latency_s=link.latency_s
                )
        return graph


def _check_link(name: str, link: Link) -> None:
    fix = "leave it out for the hardware's rate"
    finite_number(f"cluster.{name}_bytes_per_s", link.bytes_per_s, fix=fix)
    finite_number(f"cluster.{name}_latency_s", link.latency_s, zero=True, fix=fix)


def nvlink_domains_of(cluster: Cluster, ranks: IntArray) -> Int64s:
    """NVLink domain of each rank, in the shape of ``ranks``."""
    import numpy as np

    wide: Int64s = ranks.astype(np.int64)
    if cluster.placement is None:
        found: Int64s = wide // cluster.gpus_per_nvlink_domain
        return found
    nodes = np.array([node for node, _ in cluster.placement], np.int64)
    found = nodes[wide] // cluster.nodes_per_island
    return found


def indices_of(cluster: Cluster, ranks: IntArray) -> Int64s:
    """Place of each rank within its NVLink domain, in the shape of ``ranks``."""
    import numpy as np

    wide: Int64s = ranks.astype(np.int64)
    if cluster.placement is None:
        found: Int64s = wide % cluster.gpus_per_nvlink_domain
        return found
    table: Int64s = np.array(cluster.placement, np.int64)
    nodes: Int64s = table[wide, 0]
    local: Int64s = table[wide, 1]
    return nodes % cluster.nodes_per_island * cluster.gpus_per_node + local
