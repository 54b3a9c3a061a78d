"""A scenario as tables: which bit of which word stands for which GPU, and where each expert leads.

A dispatch group's GPUs are bits, one NVLink domain after the other. Each domain is a lane of ``lane_bits``
bits, a power of two, so that copies by domain are a fold of copies by GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
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
    """One dispatch group of one stage: ranks, places in the stage, NVLink domains, indices and bits.

    All ``[members]`` int64, EP ranks too; ``lanes`` numbers the group's NVLink domains in order of
    appearance.
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

    An expert has a slot for each of its replicas; slot 0 stands for no expert. Replicas that serve a source
    equally well take turns by token position, so a pick of expert e at position p counts in slot
    ``first[e + 1] + p % counts[kinds[variant, e + 1]]``. All int64; entry 0 of ``first`` and ``kinds`` is
    that of no expert. A modulus for each expert, not one for all: the tables have as many columns as the
    placement has slots, whatever the common multiple of the tied replicas.

    ``ep_ranks``: ``[variants, slots]``, the EP rank that serves a slot; a variant is a dispatch group, or a
    single source when replicas make sources differ. ``variant_of``: ``[sources]``. ``first``:
    ``[experts + 1]``. ``kinds``: ``[variants, experts + 1]``, which entry of ``counts`` says among how many
    replicas an expert's tokens take turns. ``counts``: ``[kinds]``, different numbers, 1 first.
    """

    ep_ranks: Int64s
    variant_of: Int64s
    first: Int64s
    kinds: Int64s
    counts: Int64s

    @property
    def experts(self) -> int:
        """Experts of the placement."""
        return len(self.first) - 1

    @property
    def tied(self) -> bool:
        """Whether token positions choose between replicas anywhere."""
        return len(self.counts) > 1


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
        return self.scenario.stage_of_layer(layer)

    def targets(self, layer: int) -> ExpertTargets:
        """Where the experts of a layer lead."""
        placement, stage = self.scenario.placement_of(layer), self.stage_of(layer)
        held = [placement.ep_ranks_of(expert) for expert in range(placement.experts)]
        variants = self.sources if placement.has_replicas else len(self.groups[stage])
        check_table_bytes(variants * (1 + sum(map(len, held))) * (1 + self.words) * 8)
        if not placement.has_replicas:
            return _single_targets(self, held, stage)
        return _replica_targets(self, placement, held, stage)

    def tables(self, layer: int, targets: ExpertTargets) -> NDArray[np.uint64]:
        """Masks ``[variants, words, slots]`` uint64 for the kernel; no bit is set in slot 0."""
        variants, slots = targets.ep_ranks.shape
        masks = np.zeros((variants, self.words, slots), np.uint64)
        ep = self.scenario.mesh.ep
        by_group = [_ep_masks(group, ep, self.words) for group in self.groups[self.stage_of(layer)]]
        for variant, group in self._variant_groups(targets, layer):
            masks[variant, :, 1:] = by_group[group][targets.ep_ranks[variant, 1:]].T
        return masks

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
        eps = mesh.coordinates_of(ranks)[Axis.EP].astype(np.int64)
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
        [[mesh.position(peer) for peer in mesh.dense.group(home, Axis.TP)] for home in homes], np.int64
    )


def _ep_masks(group: GroupPlaces, ep: int, words: int) -> NDArray[np.uint64]:
    """Bits of the etp ranks of each EP rank, ``[ep, words]``."""
    masks = np.zeros((ep, words), np.uint64)
    for rank, bit in zip(group.ep_ranks.tolist(), group.bits.tolist(), strict=True):
        masks[rank, bit // WORD_BITS] |= np.uint64(1 << bit % WORD_BITS)
    return masks


def _single_targets(layout: CensusLayout, held: Sequence[Sequence[int]], stage: int) -> ExpertTargets:
    """Every source of a group is served alike."""
    groups = layout.groups[stage]
    row = [0, *chain(*held)]
    variant_of = np.empty(layout.sources, np.int64)
    for number, group in enumerate(groups):
        variant_of[group.positions] = number
    return ExpertTargets(
        np.tile(np.array(row, np.int64), (len(groups), 1)),
        variant_of,
        np.arange(len(row), dtype=np.int64),
        np.zeros((len(groups), len(row)), np.int64),
        np.ones(1, np.int64),
    )


def _replica_targets(
    layout: CensusLayout, placement: Placement, held: Sequence[Sequence[int]], stage: int
) -> ExpertTargets:
    """A table per source: each prefers its own replica, then its NVLink domain's; ties go by position."""
    scenario = layout.scenario
    ranks = scenario.mesh.stage_lists()[stage].tolist()
    first = np.cumsum([0, 1, *map(len, held)])
    ep_ranks = np.tile(np.array([0, *chain(*held)], np.int64), (len(ranks), 1))
    ties = np.ones((len(ranks), len(held) + 1), np.int64)
    for expert in (expert for expert, owners in enumerate(held) if len(owners) > 1):
        start = int(first[expert + 1])
        for source, rank in enumerate(ranks):
            tie = tied_ep_ranks(scenario, placement, stage, rank, expert)
            ep_ranks[source, start : start + len(tie)] = tie
            ties[source, expert + 1] = len(tie)
    counts = np.unique(ties)
    return ExpertTargets(
        ep_ranks,
        np.arange(len(ranks), dtype=np.int64),
        first[:-1].astype(np.int64),
        np.searchsorted(counts, ties).astype(np.int64),
        counts.astype(np.int64),
    )


def check_table_bytes(size: int) -> None:
    """Refuse tables of ``size`` bytes when a census does not hold so many.

    Raises:
        ConfigError: above ``MAX_TABLE_BYTES``.
    """
    if size > MAX_TABLE_BYTES:
        raise ConfigError(
            "placement.slots",
            f"{size / 1e9:.1f} GB of tables",
            f"is more than the {MAX_TABLE_BYTES / 1e9:.1f} GB that a census holds",
            "take a smaller dispatch group",
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
