"""The compiled inner loop of the census: picks in, copies and loads out.

Copies are counted by GPU and by NVLink domain, picks by expert.

For each token the k picks index a table of bit masks (one bit per GPU of the dispatch group, any number of
64-bit words) that are ORed together: a set bit is one copy, however many picks lead to it. Masks are
counted in bit planes per source run; folded onto one bit per NVLink domain they count those copies in
the same way. k stands in the type of a tuple, so it is fixed when the kernel is compiled for a large
batch; small ones share one compilation for all k. What is compiled is kept on disk.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from tracer.batch.census.bit_planes import PLANES, STREAMS, WORD_BITS, count_bits, empty_planes, fold_lanes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]

CHUNK = 1024


@njit(nogil=True, cache=True)
def count_block(
    picks: Any,
    starts: Ints,
    run_sources: Ints,
    positions: Any,
    first: Ints,
    kinds: Ints,
    counts: Ints,
    tables: Words,
    variant_of: Ints,
    experts: int,
    lane_bits: int,
    k_shape: Any,
    gpus: Ints,
    nvlink_domains: Ints,
    hist: Ints,
) -> int:
    """Add a block of tokens to the counts; -1, or the flat index of a pick outside the experts.

    Args:
        picks: ``[n, k]`` integers in C order, grouped by source; -1 is no pick, counted in column 0.
        starts: first token of each run of one source, and the end ``[runs + 1]``.
        run_sources: source of each run ``[runs]``.
        positions: None when no replicas are tied, or each row's position in its prompt ``[n]``.
        first: first slot of each expert, from that of no expert ``[experts + 1]``; slot 0 is none's.
        kinds: ``[variants, experts + 1]``, which of the counts is that of an expert's tied replicas.
        counts: numbers of tied replicas ``[kinds]``.
        tables: masks ``[variants, words, slots]``; a pick of expert e at position p leads to slot
            ``first[e + 1] + p % counts[kinds[variant, e + 1]]``, and to slot e + 1 without positions.
        variant_of: variant of each source ``[sources]``.
        lane_bits: bits of an NVLink domain, a power of two.
        k_shape: any tuple of k members, only its length matters; None reads k from ``picks``.
        gpus: ``[sources, words * 64]``, added to; so are
        nvlink_domains: ``[sources, lanes]`` and
        hist: ``[sources, slots]``. After a refusal all three are of no use.
    """
    words = tables.shape[1]
    planes = np.zeros((2, words, PLANES, STREAMS), np.uint64)
    masks, folded = np.empty((words, CHUNK), np.uint64), np.empty(CHUNK, np.uint64)
    tally, carries = np.zeros((2, tables.shape[2]), np.uint32), np.empty(STREAMS, np.uint64)
    turns = np.zeros((len(counts), CHUNK), np.uint32)
    for run in range(len(run_sources)):
        source = run_sources[run]
        table, kind = tables[variant_of[source]], kinds[variant_of[source]]
        for low in range(starts[run], starts[run + 1], CHUNK):
            count = min(CHUNK, starts[run + 1] - low)
            bad = outside(picks, low, count, experts)
            if bad >= 0:
                return bad
            if positions is not None:
                take_turns(positions, low, count, counts, turns)
            fill_masks(picks, low, count, positions, first, kind, turns, table, k_shape, tally, masks)
            count_masks(masks, count, lane_bits, planes, carries, folded, nvlink_domains[source])
        empty_run(
            planes, starts[run + 1] - starts[run], lane_bits, carries, gpus[source], nvlink_domains[source]
        )
        empty_tally(tally, hist[source])
    return -1


@njit(nogil=True, cache=True)
def outside(picks: Any, low: int, count: int, experts: int) -> int:
    """Flat index of the first pick of rows ``low`` onwards outside -1 .. experts - 1, or -1."""
    width = picks.shape[1]
    flat = picks.reshape(-1)[low * width : (low + count) * width]
    if len(flat) == 0:
        return -1
    least = most = flat[0]
    for i in range(len(flat)):
        least, most = min(least, flat[i]), max(most, flat[i])
    if least >= -1 and most < experts:
        return -1
    for i in range(len(flat)):
        if flat[i] < -1 or flat[i] >= experts:
            found: int = low * width + i
            return found
    return -1


@njit(nogil=True, cache=True)
def take_turns(positions: Any, low: int, count: int, counts: Ints, turns: Any) -> None:
    """Whose turn it is: ``turns[kind, i]`` is the position of row ``low + i`` modulo ``counts[kind]``.

    Once a chunk, not once a pick, and without an integer division, which no vector instruction does. All
    numbers are whole and below 2^53, so only the rounded quotient can be wrong, by 1, which is put right.
    """
    for kind in range(1, len(counts)):
        modulus = np.float64(counts[kind])
        inverse = 1.0 / modulus
        for i in range(count):
            position = np.float64(positions[low + i])
            left = position - np.floor(position * inverse) * modulus
            left += modulus if left < 0.0 else 0.0
            left -= modulus if left >= modulus else 0.0
            turns[kind, i] = np.uint32(left)


@njit(nogil=True, cache=True)
def fill_masks(
    picks: Any,
    low: int,
    count: int,
    positions: Any,
    first: Ints,
    kind: Ints,
    turns: Any,
    table: Words,
    k_shape: Any,
    tally: NDArray[np.uint32],
    masks: Words,
) -> None:
    """OR of the picks' masks of each token into ``masks [words, CHUNK]``; picks counted in ``tally``."""
    even, odd = tally[0], tally[1]
    fill_first(picks, low, count, positions, first, kind, turns, table[0], k_shape, even, odd, masks[0])
    for word in range(1, masks.shape[0]):
        fill_more(picks, low, count, positions, first, kind, turns, table[word], k_shape, masks[word])


@njit(nogil=True, cache=True)
def fill_first(
    picks: Any,
    low: int,
    count: int,
    positions: Any,
    first: Ints,
    kind: Ints,
    turns: Any,
    table: Words,
    k_shape: Any,
    even: NDArray[np.uint32],
    odd: NDArray[np.uint32],
    masks: Words,
) -> None:
    """The first word, and the tally: even and odd columns apart, so that equal picks rarely wait."""
    for i in range(count):
        row = np.uint64(low + i)
        mask = np.uint64(0)
        for column in range(picks.shape[1] if k_shape is None else len(k_shape)):
            slot = np.uint64(np.int64(picks[row, np.uint64(column)]) + 1)
            if positions is not None:
                slot = np.uint64(first[slot] + turns[np.uint64(kind[slot]), np.uint64(i)])
            if column & 1:
                odd[slot] += np.uint32(1)
            else:
                even[slot] += np.uint32(1)
            mask |= table[slot]
        masks[i] = mask


@njit(nogil=True, cache=True)
def fill_more(
    picks: Any,
    low: int,
    count: int,
    positions: Any,
    first: Ints,
    kind: Ints,
    turns: Any,
    table: Words,
    k_shape: Any,
    masks: Words,
) -> None:
    """One more word of a wide mask."""
    for i in range(count):
        row = np.uint64(low + i)
        mask = np.uint64(0)
        for column in range(picks.shape[1] if k_shape is None else len(k_shape)):
            slot = np.uint64(np.int64(picks[row, np.uint64(column)]) + 1)
            if positions is not None:
                slot = np.uint64(first[slot] + turns[np.uint64(kind[slot]), np.uint64(i)])
            mask |= table[slot]
        masks[i] = mask


@njit(nogil=True, cache=True)
def count_masks(
    masks: Words,
    count: int,
    lane_bits: int,
    planes: Words,
    carries: Words,
    folded: Words,
    nvlink_domains: Ints,
) -> None:
    """Count a chunk's masks by bit and by lane; lanes wider than a word are counted at once."""
    for word in range(masks.shape[0]):
        count_bits(masks[word], count, planes[0, word], carries)
        if 1 < lane_bits <= WORD_BITS:
            fold_lanes(masks[word], count, lane_bits, folded)
            count_bits(folded, count, planes[1, word], carries)
    if lane_bits > WORD_BITS:
        wide = lane_bits // WORD_BITS
        for lane in range(masks.shape[0] // wide):
            for i in range(count):
                any_bit = np.uint64(0)
                for word in range(lane * wide, (lane + 1) * wide):
                    any_bit |= masks[word, i]
                nvlink_domains[lane] += any_bit != np.uint64(0)


@njit(nogil=True, cache=True)
def empty_run(
    planes: Words, count: int, lane_bits: int, carries: Words, gpus: Ints, nvlink_domains: Ints
) -> None:
    """Add the planes of one run of ``count`` tokens to its source's rows."""
    lanes = WORD_BITS // lane_bits
    counts = np.empty(WORD_BITS, np.int64)
    for word in range(planes.shape[1]):
        empty_planes(planes[0, word], count, carries, gpus[word * WORD_BITS : (word + 1) * WORD_BITS])
        if 1 < lane_bits <= WORD_BITS:
            counts[:] = 0
            empty_planes(planes[1, word], count, carries, counts)
            for lane in range(lanes):
                nvlink_domains[word * lanes + lane] += counts[lane * lane_bits]


@njit(nogil=True, cache=True)
def empty_tally(tally: NDArray[np.uint32], hist: Ints) -> None:
    """Add the tally's rows to ``hist`` and set them to zero."""
    for slot in range(len(hist)):
        hist[slot] += np.int64(tally[0, slot]) + np.int64(tally[1, slot])
    tally[:] = 0


@njit(nogil=True, cache=True)
def group_rows(rows: Any, sources: Any, first: Ints) -> Any:
    """``rows [n, k]`` grouped by ``sources [n]``, in order within each; ``first`` row of each rank.

    Rows are read in order and written to as many places as there are ranks, which caches do well; reading
    them through an index would wait for memory at every row.
    """
    grouped = np.empty_like(rows)
    place = first.copy()
    for i in range(len(sources)):
        row = np.uint64(place[sources[i]])
        place[sources[i]] += 1
        for column in range(rows.shape[1]):
            grouped[row, np.uint64(column)] = rows[np.uint64(i), np.uint64(column)]
    return grouped


@njit(nogil=True, cache=True)
def first_repeat(picks: Any) -> int:
    """Flat index of the first pick that repeats an earlier one of its row (-1 aside), or -1."""
    for row in range(picks.shape[0]):
        same = 0
        for late in range(1, picks.shape[1]):
            pick = picks[row, late]
            for early in range(late):
                same |= (picks[row, early] == pick) & (pick != -1)
        if same:
            for late in range(1, picks.shape[1]):
                for early in range(late):
                    if picks[row, early] == picks[row, late] and picks[row, late] != -1:
                        found: int = row * picks.shape[1] + late
                        return found
    return -1
