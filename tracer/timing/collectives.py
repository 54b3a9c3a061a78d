"""Collectives by closed form at peak rates, for comparison: the estimate of one call is in ``estimate``.

Ring and direct, and the bus bandwidth that nccl-tests reports.

``total_bytes`` is nccl-tests' S: for all-gather and reduce-scatter the whole array, per-rank count x
size x n (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import finite_number, one_of, whole_number

if TYPE_CHECKING:
    from tracer.mesh.cluster import Link

ALGORITHMS = ("ring", "direct")
COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
    "send_recv",
)  # fmt: skip


def busbw_factor(kind: str, ranks: int) -> float:
    """Bytes a rank's port must carry, as a share of S (nccl-tests, doc/PERFORMANCE.md).

    >>> busbw_factor("all_reduce", 8), busbw_factor("all_gather", 8), busbw_factor("broadcast", 8)
    (1.75, 0.875, 1.0)

    Raises:
        ConfigError: for an unknown collective, or fewer than one rank.
    """
    one_of("collective", kind, COLLECTIVES)
    whole_number("ranks", ranks)
    if kind in ("broadcast", "reduce", "send_recv"):
        return 1.0
    share = (ranks - 1) / ranks
    return 2 * share if kind == "all_reduce" else share


def latency_steps(kind: str, ranks: int, algorithm: str = "ring") -> int:
    """Latencies that follow one another.

    A ring takes n-1 steps, an all-reduce twice that; direct exchange takes one, an all-reduce two.

    Raises:
        ConfigError: for an unknown collective or algorithm.
    """
    one_of("collective", kind, COLLECTIVES)
    one_of("algorithm", algorithm, ALGORITHMS)
    whole_number("ranks", ranks)
    if ranks == 1:
        return 0
    steps = 1 if algorithm == "direct" or kind == "send_recv" else ranks - 1
    return 2 * steps if kind == "all_reduce" else steps


def collective_seconds(
    kind: str, total_bytes: float, ranks: int, link: Link, algorithm: str = "ring"
) -> float:
    """``steps x latency + factor x S / bandwidth``: the usual latency and bandwidth form of a ring.

    Both algorithms move the least bytes a port can; they differ in latency only. A group of one rank
    takes no time, a broadcast ring is pipelined.

    Raises:
        ConfigError: for an unknown collective or algorithm, or negative bytes.
    """
    size = finite_number("total_bytes", total_bytes, zero=True)
    steps = latency_steps(kind, ranks, algorithm)
    if ranks == 1:
        return 0.0
    return steps * link.latency_s + busbw_factor(kind, ranks) * size / link.bytes_per_s
