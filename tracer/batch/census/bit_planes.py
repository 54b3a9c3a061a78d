"""Counting the set bits of many masks, column by column, in bit-sliced counters.

``planes[p, j]`` holds bit p of 64 counters of stream j. Masks are dealt to the streams in turn, so that
the adders work on whole vectors; eight masks of a stream at a time go through a carry-save tree (Harley
and Seal; Warren, Hacker's Delight, section 5-1), about five operations each however many bits are set.
Indices in the inner loops are unsigned: numba then leaves out the test for negative ones, and the loops
become vector instructions.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

PLANES = 40
"""Planes of a counter: enough for 2^40 masks between two calls of :func:`empty_planes`."""
STREAMS = 16
STEP = 8 * STREAMS
WORD_BITS = 64


@njit(nogil=True, cache=True)
def count_bits(masks: Words, count: int, planes: Words, carries: Words) -> None:
    """Add ``masks[:count]`` (uint64) to ``planes`` ``[PLANES, STREAMS]`` uint64.

    ``masks`` must have room for whole steps of ``STEP``: what is left of the last one is set to zero.
    ``carries`` ``[STREAMS]`` is scratch.
    """
    end = (count + STEP - 1) // STEP * STEP
    masks[count:end] = np.uint64(0)
    for start in range(0, end, STEP):
        add_step(masks, start, planes, carries)
        ripple(carries, planes)


@njit(nogil=True, cache=True)
def add_step(masks: Words, start: int, planes: Words, carries: Words) -> None:
    """Add eight masks to each stream's lowest three planes; ``carries`` are worth 8."""
    # Each pair of lines is a full adder on 64 counters at once. Of three words that are worth the same, the
    # exclusive or is the bit that stays, and the majority, (x & a) | ((x ^ a) & b), is a carry worth double.
    # Seven adders take eight masks: four leave carries worth 2, two worth 4, one worth 8.
    for j in range(STREAMS):
        ones, twos, fours = planes[0, j], planes[1, j], planes[2, j]
        i = np.uint64(start + j)
        a, b = masks[i], masks[i + np.uint64(STREAMS)]
        either = ones ^ a
        twos_a, ones = (ones & a) | (either & b), either ^ b
        a, b = masks[i + np.uint64(2 * STREAMS)], masks[i + np.uint64(3 * STREAMS)]
        either = ones ^ a
        twos_b, ones = (ones & a) | (either & b), either ^ b
        either = twos ^ twos_a
        fours_a, twos = (twos & twos_a) | (either & twos_b), either ^ twos_b
        a, b = masks[i + np.uint64(4 * STREAMS)], masks[i + np.uint64(5 * STREAMS)]
        either = ones ^ a
        twos_a, ones = (ones & a) | (either & b), either ^ b
        a, b = masks[i + np.uint64(6 * STREAMS)], masks[i + np.uint64(7 * STREAMS)]
        either = ones ^ a
        twos_b, ones = (ones & a) | (either & b), either ^ b
        either = twos ^ twos_a
        fours_b, twos = (twos & twos_a) | (either & twos_b), either ^ twos_b
        either = fours ^ fours_a
        carries[j], fours = (fours & fours_a) | (either & fours_b), either ^ fours_b
        planes[0, j], planes[1, j], planes[2, j] = ones, twos, fours


@njit(nogil=True, cache=True)
def ripple(carries: Words, planes: Words) -> None:
    """Add carries worth 8 to each stream's counters."""
    for plane in range(3, PLANES):
        left = np.uint64(0)
        for j in range(STREAMS):
            word, carry = planes[plane, j], carries[j]
            planes[plane, j] = word ^ carry
            carries[j] = word & carry
            left |= word & carry
        if left == np.uint64(0):
            return


@njit(nogil=True, cache=True)
def merge_streams(planes: Words, used: int, carries: Words) -> None:
    """Add the counters of all streams, of ``used`` planes, into stream 0."""
    width = STREAMS // 2
    # Half of the streams are added to the other half, plane by plane with a carry, until one is left.
    while width > 0:
        carries[:width] = np.uint64(0)
        for plane in range(used):
            for j in range(width):
                a, b, carry = planes[plane, j], planes[plane, width + j], carries[j]
                either = a ^ b
                planes[plane, j] = either ^ carry
                carries[j] = (a & b) | (either & carry)
        width //= 2


@njit(nogil=True, cache=True)
def empty_planes(planes: Words, masks: int, carries: Words, counts: NDArray[np.int64]) -> None:
    """Add the counters of ``masks`` masks to ``counts`` ``[64]`` int64, and set them to zero."""
    used = 1
    while masks >> used:
        used += 1
    merge_streams(planes, used, carries)
    for plane in range(used):
        word = planes[plane, 0]
        for bit in range(WORD_BITS):
            counts[np.uint64(bit)] += np.int64((word >> np.uint64(bit)) & np.uint64(1)) << plane
        planes[plane, :] = np.uint64(0)


@njit(nogil=True, cache=True)
def fold_lanes(masks: Words, count: int, lane: int, folded: Words) -> None:
    """Where any bit of a lane is set, set the lane's lowest bit alone.

    A lane is ``lane`` neighbouring bits, a power of two.
    """
    lowest = np.uint64(0)
    for bit in range(0, WORD_BITS, lane):
        lowest |= np.uint64(1) << np.uint64(bit)
    for i in range(count):
        word = masks[i]
        # Shifts by half a lane, a quarter, ... down to 1 gather every bit of a lane in its lowest bit. They
        # add up to lane - 1, so no bit of the next lane gets that far.
        shift = lane >> 1
        while shift > 0:
            word |= word >> np.uint64(shift)
            shift >>= 1
        folded[i] = word & lowest
