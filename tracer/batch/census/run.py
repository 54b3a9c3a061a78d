"""Walking a batch through the kernel: blocks of tokens, on as many threads as asked."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.batch.census.counts import Counts
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.census.homes import Runs, TokenHomes
    from tracer.batch.census.layout import CensusLayout, ExpertTargets
    from tracer.batch.picks.source import Picks, PickSource

    Int64s = NDArray[np.int64]

Progress = Callable[[int, int], None]
"""Told how many blocks are done, and of how many."""


BLOCK_PICKS = 1 << 20
SMALL_BATCH = 1 << 22
"""Picks of a batch below which the kernel that serves every k and dtype is used: it is compiled once."""
THREADED_PICKS = 1 << 14
"""Picks a block below which one thread counts alone: several would only wait for each other's Python."""


@dataclass(frozen=True, slots=True)
class PickBlock:
    """Tokens ``start`` to ``stop`` of one layer of the picks (``index`` from 0; ``layer`` of the model)."""

    index: int
    layer: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class LayerTables:
    """The kernel's tables of one stage and placement."""

    targets: ExpertTargets
    masks: NDArray[np.uint64]

    @property
    def slots(self) -> int:
        """Columns of a histogram: one a slot of the placement, and one for no pick."""
        return int(self.masks.shape[2])

    @property
    def bytes(self) -> int:
        """Memory of the tables that grow with sources times slots."""
        return self.masks.nbytes + self.targets.ep_ranks.nbytes


@dataclass(frozen=True, slots=True)
class CensusPlan:
    """Picks, homes and tables of one census. ``key_of`` says which tables a layer of the model uses."""

    layout: CensusLayout
    picks: PickSource
    homes: TokenHomes
    key_of: dict[int, int]
    tables: tuple[LayerTables, ...]
    check_repeats: bool = False

    @property
    def small(self) -> bool:
        """Whether the batch is too small to compile a kernel for its own k."""
        return self.picks.layers * self.picks.tokens * self.picks.top_k < SMALL_BATCH

    def blocks(self, layers: Iterable[int]) -> list[PickBlock]:
        """All blocks of the given layers of the model, in order."""
        size = max(1, BLOCK_PICKS // max(1, self.picks.top_k))
        return [
            PickBlock(index, layer, start, min(start + size, self.picks.tokens))
            for index, layer in enumerate(layers)
            for start in range(0, self.picks.tokens, size)
        ]

    def _positions(self, block: PickBlock, tables: LayerTables) -> Int64s | None:
        """Positions of a block's tokens, which choose between tied replicas; None when none are tied.

        The kernel for small batches always gets some, so that it is compiled once.
        """
        if tables.targets.tied:
            return self.homes.positions(block.start, block.stop)
        return np.zeros(block.stop - block.start, np.int64) if self.small else None

    def count(self, block: PickBlock, counts: Counts) -> None:
        """Add one block to ``counts``.

        Raises:
            ConfigError: naming the element, for an expert that does not exist.
        """
        from tracer.batch.census.kernel import count_block, first_repeat

        read = getattr(self.picks, "borrow", self.picks.read)
        picks = read(block.index, block.start, block.stop)
        if self.small:
            picks = picks.astype(np.int64)
        if self.check_repeats and (bad := first_repeat(picks)) >= 0:
            _refuse_repeat(block, picks, bad)
        runs, tables = self.homes.runs(block.start, block.stop), self.tables[self.key_of[block.layer]]
        shape = None if self.small else (0,) * picks.shape[1]
        targets = tables.targets
        positions = self._positions(block, tables)
        grouped, positions = _grouped(runs, picks, positions, self.layout.sources)
        for column in range(self.layout.peers.shape[1]):
            sources = np.ascontiguousarray(self.layout.peers[runs.sources, column])
            missing = counts.missing_picks()
            bad = count_block(
                grouped,
                runs.starts,
                sources,
                positions,
                targets.first,
                targets.kinds,
                targets.counts,
                tables.masks,
                targets.variant_of,
                targets.experts,
                self.layout.lane_bits,
                shape,
                counts.gpus,
                counts.nvlink_domains,
                counts.hist,
            )
            if bad >= 0:
                _refuse(block, picks, targets.experts)
            np.add.at(counts.tokens, sources, np.diff(runs.starts))
            if counts.missing_picks() > missing:
                np.add.at(counts.blank, sources, _blank_rows(grouped, runs.starts))


def _grouped(runs: Runs, picks: Picks, positions: Int64s | None, ranks: int) -> tuple[Picks, Int64s | None]:
    """Picks and positions in runs of one source."""
    if runs.scattered is None:
        return picks, positions
    from tracer.batch.census.kernel import group_rows

    first = np.zeros(ranks, np.int64)
    first[runs.sources] = runs.starts[:-1]
    if positions is not None:
        positions = group_rows(positions[:, None], runs.scattered, first)[:, 0].copy()
    return group_rows(picks, runs.scattered, first), positions


def _blank_rows(picks: Picks, starts: Int64s) -> Int64s:
    """Rows of -1 alone in each run of one source."""
    before = np.concatenate(([0], np.cumsum((picks < 0).all(1))))
    return np.diff(before[starts])


def _refuse(block: PickBlock, picks: Picks, experts: int) -> None:
    """Name the first pick of the block that is no expert."""
    row, column = divmod(int(np.argmax((picks < -1) | (picks >= experts))), picks.shape[1])
    raise ConfigError(
        f"picks[{block.index}, {block.start + row}, {column}]",
        int(picks[row, column]),
        f"must be an expert from 0 to {experts - 1}, or -1 for none",
        "check the model, the layer axis, or whether ids are of physical slots",
    )


def _refuse_repeat(block: PickBlock, picks: Picks, flat: int) -> None:
    row, column = divmod(flat, picks.shape[1])
    raise ConfigError(
        f"picks[{block.index}, {block.start + row}, {column}]",
        int(picks[row, column]),
        "repeats an expert of the same token, which top-k never does",
        "check the order of the axes: [layers, tokens, k]",
    )


def part_of(progress: Progress, part: int, parts: int) -> Progress:
    """The progress of one of several walks of one length, told on as that of all together."""
    return lambda done, blocks: progress(part * blocks + done, parts * blocks)


def count_blocks(
    walk: CensusPlan,
    blocks: list[PickBlock],
    *,
    slot_of: Callable[[PickBlock], int],
    totals: list[Counts],
    threads: int,
    progress: Progress | None = None,
    partial: bool = False,
) -> int:
    """Add all blocks to ``totals[slot_of(block)]``, and say how many; threads add theirs at the end.

    ``progress`` is told how many blocks are done, and of how many. With ``partial`` an interrupt ends the
    count early: the blocks that are begun are finished, and what is counted stands.

    Raises:
        ConfigError: as :meth:`CensusPlan.count`.
    """
    turn, done, stopped = itertools.count(), itertools.count(1), threading.Event()
    counted: list[int] = []

    def work() -> dict[int, Counts]:
        """One thread's blocks, counted by slot."""
        own: dict[int, Counts] = {}
        while not stopped.is_set() and (index := next(turn)) < len(blocks):
            block = blocks[index]
            slot = slot_of(block)
            if slot not in own:
                own[slot] = Counts(*(np.zeros_like(getattr(totals[slot], n)) for n in Counts.__slots__))
            walk.count(block, own[slot])
            counted.append(index)
            if progress is not None:
                progress(next(done), len(blocks))
        return own

    picks = sum(block.stop - block.start for block in blocks) * walk.picks.top_k
    useful = min(threads, len(blocks)) if picks >= len(blocks) * THREADED_PICKS else 1
    workers = max(1, useful)
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work) for _ in range(workers)]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stopped.set()
            if not partial:
                raise
        for future in futures:
            for slot, counts in future.result().items():
                totals[slot].add(counts)
    return len(counted)
