"""A scenario as tables: which bit of which word stands for which GPU, and where each expert leads.

A dispatch group's GPUs are bits, island by island: an island is a lane of ``lane_bits`` bits, a power of
two, so that copies by island are a fold of copies by GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError
from tracer.mesh.cluster import indices_of, nvlink_domains_of
from tracer.scenario.plan import Contract, Sp
from tracer.trip.hops.routes import tied_ep_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario

    Int64s = NDArray[np.int64]

MAX_TABLE_BYTES = 1 << 29
MAX_COUNT_BYTES = 1 << 29
MAX_CENSUS_RANKS, MAX_SQUARE_CELLS = 1 << 12, 1 << 23
"""A census keeps a few matrices over each stage's ranks, and walks the stages one by one."""
WORD_BITS = 64


@dataclass(frozen=True)
class GroupPlaces:
    """One dispatch group of one stage: ranks, places in the stage, islands, indices, EP ranks and bits.

    All ``[members]`` int64; ``lanes`` numbers the group's islands in order of appearance.
    """

    ranks: Int64s
    positions: Int64s
    nvlink_domains: Int64s
    lanes: Int64s
    indices: Int64s
    ep_ranks: Int64s
    bits: Int64s

    @property
    def lane_count(self) -> int:
        """Islands the group touches."""
        return int(self.lanes.max()) + 1


@dataclass(frozen=True)
class ExpertTargets:
    """Where experts lead, for one placement in one stage.

    ``ep_ranks``: ``[variants, residues, experts]`` int64, the EP rank that serves an expert; a variant is
    a dispatch group, or a single source when replicas make sources differ. ``variant_of``: ``[sources]``.
    """

    ep_ranks: Int64s
    variant_of: Int64s

    @property
    def residues(self) -> int:
        """Token positions modulo this choose between replicas that serve equally well."""
        return int(self.ep_ranks.shape[1])


@dataclass(frozen=True)
class CensusLayout:
    """Bits, groups and expert tables of a scenario.

    ``groups[stage][group]``; ``peers``: ``[sources, tp]`` places of the ranks that dispatch a home's
    tokens (one column unless SP is off).

    Raises:
        ConfigError: when the mesh or its tables would not fit in memory.
    """

    scenario: Scenario
    groups: tuple[tuple[GroupPlaces, ...], ...]
    lane_bits: int
    lanes: int
    words: int
    peers: Int64s

    @classmethod
    def of(cls, scenario: Scenario) -> CensusLayout:
        """The layout of a scenario."""
        _check_squares(scenario)
        stages = _stage_groups(scenario)
        groups = [group for stage in stages for group in stage]
        largest = max(int(np.bincount(group.lanes).max()) for group in groups)
        lane_bits = 1 << (largest - 1).bit_length()
        lanes = max(group.lane_count for group in groups)
        words = -(-lanes * lane_bits // WORD_BITS)
        if lane_bits <= WORD_BITS:
            lanes = words * (WORD_BITS // lane_bits)
        laid = tuple(tuple(_with_bits(group, lane_bits) for group in stage) for stage in stages)
        _check_counts(scenario, words)
        return cls(scenario, laid, lane_bits, lanes, words, _peers(scenario))

    @property
    def sources(self) -> int:
        """Ranks of a stage."""
        return self.scenario.mesh.stage_size

    @cached_property
    def moe_layers(self) -> tuple[int, ...]:
        """Numbers of the MoE layers, from 1."""
        model = self.scenario.model
        return tuple(layer for layer in range(1, model.layers + 1) if model.is_moe(layer))

    def stage_of(self, layer: int) -> int:
        """Pipeline stage that runs a layer."""
        return int(np.searchsorted(np.cumsum(self.scenario.stage_layers), layer))

    def targets(self, layer: int) -> ExpertTargets:
        """Where the experts of a layer lead."""
        placement, stage = self.scenario.placement_of(layer), self.stage_of(layer)
        if not placement.has_replicas:
            return _single_targets(self, placement, stage)
        return _replica_targets(self, placement, stage)

    def tables(self, layer: int, targets: ExpertTargets) -> NDArray[np.uint64]:
        """Masks ``[variants, words, residues * (experts + 1)]`` uint64 for the kernel."""
        variants, residues, experts = targets.ep_ranks.shape
        shape = (variants, self.words, residues, experts + 1)
        _check_table_bytes(int(np.prod(shape)) * 8)
        masks = np.zeros(shape, np.uint64)
        ep = self.scenario.mesh.ep
        by_group = [_ep_masks(group, ep, self.words) for group in self.groups[self.stage_of(layer)]]
        for variant, group in self._variant_groups(targets, layer):
            masks[variant, :, :, 1:] = by_group[group][targets.ep_ranks[variant]].transpose(2, 0, 1)
        return masks.reshape(variants, self.words, residues * (experts + 1))

    def _variant_groups(self, targets: ExpertTargets, layer: int) -> Iterator[tuple[int, int]]:
        """(variant, group) pairs."""
        for number, group in enumerate(self.groups[self.stage_of(layer)]):
            for variant in np.unique(targets.variant_of[group.positions]).tolist():
                yield variant, number


def _stage_groups(scenario: Scenario) -> list[list[GroupPlaces]]:
    """Dispatch groups by stage, without bits."""
    mesh = scenario.mesh
    found: list[list[GroupPlaces]] = [[] for _ in range(mesh.stages)]
    for ranks in mesh.groups("dispatch").astype(np.int64):
        nvlink_domains = nvlink_domains_of(scenario.cluster, ranks)
        numbers: dict[int, int] = {}
        lanes = np.array(
            [numbers.setdefault(nvlink_domain, len(numbers)) for nvlink_domain in nvlink_domains.tolist()],
            np.int64,
        )
        positions = np.array([mesh.position(rank) for rank in ranks.tolist()], np.int64)
        eps = mesh.coordinates_of(ranks)["ep"].astype(np.int64)
        group = GroupPlaces(
            ranks,
            positions,
            nvlink_domains,
            lanes,
            indices_of(scenario.cluster, ranks),
            eps,
            np.zeros_like(lanes),
        )
        found[mesh.stage_of(int(ranks[0]))].append(group)
    return found


def _with_bits(group: GroupPlaces, lane_bits: int) -> GroupPlaces:
    """The group with a bit for each member: the lane's first bit and the place in the lane."""
    taken = np.zeros(group.lane_count, np.int64)
    bits = np.empty_like(group.lanes)
    for member, lane in enumerate(group.lanes.tolist()):
        bits[member] = lane * lane_bits + taken[lane]
        taken[lane] += 1
    return GroupPlaces(
        group.ranks, group.positions, group.nvlink_domains, group.lanes, group.indices, group.ep_ranks, bits
    )


def _peers(scenario: Scenario) -> Int64s:
    """Places of the ranks that run a home's MoE block, ``[sources, 1 or tp]``.

    Under contract tp the TP group runs it together: its hops are the home's.
    """
    mesh = scenario.mesh
    homes = mesh.stage_lists()[0].tolist()
    if scenario.plan.sp is not Sp.OFF or scenario.plan.contract is Contract.TP:
        return np.arange(len(homes), dtype=np.int64)[:, None]
    return np.array(
        [[mesh.position(peer) for peer in mesh.dense.group(home, "tp")] for home in homes], np.int64
    )


def _ep_masks(group: GroupPlaces, ep: int, words: int) -> NDArray[np.uint64]:
    """Bits of the etp ranks of each EP rank, ``[ep, words]``."""
    masks = np.zeros((ep, words), np.uint64)
    for rank, bit in zip(group.ep_ranks.tolist(), group.bits.tolist(), strict=True):
        masks[rank, bit // WORD_BITS] |= np.uint64(1 << bit % WORD_BITS)
    return masks


def _single_targets(layout: CensusLayout, placement: Placement, stage: int) -> ExpertTargets:
    """Every source of a group is served alike."""
    groups = layout.groups[stage]
    row = np.array([placement.ep_ranks_of(expert)[0] for expert in range(placement.experts)], np.int64)
    variant_of = np.empty(layout.sources, np.int64)
    for number, group in enumerate(groups):
        variant_of[group.positions] = number
    return ExpertTargets(np.broadcast_to(row, (len(groups), 1, len(row))).copy(), variant_of)


def _replica_targets(layout: CensusLayout, placement: Placement, stage: int) -> ExpertTargets:
    """A table a source: each prefers its own replica, then its island's; ties go by position."""
    scenario, experts = layout.scenario, placement.experts
    ranks = scenario.mesh.stage_lists()[stage].tolist()
    ties = [
        [tied_ep_ranks(scenario, placement, stage, rank, expert) for expert in range(experts)]
        for rank in ranks
    ]
    residues = lcm(*{len(tie) for row in ties for tie in row})
    _check_table_bytes(len(ranks) * residues * (experts + 1) * (layout.words + 1) * 8)
    found = np.empty((len(ranks), residues, experts), np.int64)
    for source, row in enumerate(ties):
        for expert, tie in enumerate(row):
            found[source, :, expert] = np.resize(np.array(tie, np.int64), residues)
    return ExpertTargets(found, np.arange(len(ranks), dtype=np.int64))


def _check_table_bytes(size: int) -> None:
    if size > MAX_TABLE_BYTES:
        raise ConfigError(
            "placement.slots",
            f"{size / 1e9:.1f} GB of tables",
            f"is more than the {MAX_TABLE_BYTES / 1e9:.1f} GB that a census holds",
            "take a smaller dispatch group, or replicas whose counts have a small common multiple",
        )


def _check_squares(scenario: Scenario) -> None:
    mesh = scenario.mesh
    if mesh.world_size > MAX_CENSUS_RANKS or mesh.stages * mesh.stage_size**2 > MAX_SQUARE_CELLS:
        enough = -(-mesh.dispatch_size // mesh.replica_size)
        raise ConfigError(
            "mesh",
            f"{mesh.world_size:,} ranks",
            f"has {mesh.stages:,} stages of {mesh.stage_size:,} ranks; a census counts between the ranks of "
            f"each stage, {MAX_CENSUS_RANKS:,} ranks and {MAX_SQUARE_CELLS:,} pairs in all",
            f"take fewer replicas, such as dp {enough}: dispatch groups that lie alike count alike",
        )


def _check_counts(scenario: Scenario, words: int) -> None:
    size = scenario.mesh.stage_size * words * WORD_BITS * 8 * scenario.mesh.stages
    if size > MAX_COUNT_BYTES:
        raise ConfigError(
            "mesh",
            f"{scenario.mesh.world_size:,} ranks",
            f"would need {size / 1e9:.1f} GB of counts; a census holds {MAX_COUNT_BYTES / 1e9:.1f} GB",
            "take fewer stages or replicas: counts of one dispatch group say the same",
        )
