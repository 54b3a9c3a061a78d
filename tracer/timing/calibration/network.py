"""The physics of collectives and of expert-parallel dispatch and combine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import log2, sqrt
from typing import TYPE_CHECKING

from tracer.timing.calibration.fit import MICROSECOND, OpWork
from tracer.timing.calibration.formats import KernelDtype
from tracer.traffic.chance import HitChance

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware


class CollectiveKind(StrEnum):
    """Collectives by NCCL's names, and the one-shot and two-shot all-reduce kernels of serving engines."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    CUSTOM_ALL_REDUCE = "custom_all_reduce"


class ExchangeMode(StrEnum):
    """DeepEP's two families of kernels: high throughput (training, prefill) and low latency (decode)."""

    NORMAL = "normal"
    LOW_LATENCY = "low_latency"


class Direction(StrEnum):
    """To the experts and back."""

    DISPATCH = "dispatch"
    COMBINE = "combine"


NCCL_ORDER = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
)
MEASURED_GPUS = 8
"""Largest group on one NVLink domain that was measured; latency grows with its logarithm beyond."""


def collective_work(hardware: Hardware, kind: CollectiveKind, gpus: int, nbytes: float) -> OpWork:
    """A collective inside an NVLink domain; ``nbytes`` as nccl-tests states a size.

    Every GPU must send and receive (n-1)/n of the bytes (with switches that add, an all-reduce needs no
    more). Limits: launch; a step per GPU; the bytes.
    """
    rate = hardware.need("nvlink_bytes_per_s", "time a collective")
    moved = nbytes * (gpus - 1) / gpus / rate
    steps = gpus if gpus <= MEASURED_GPUS else MEASURED_GPUS * (1 + log2(gpus / MEASURED_GPUS))
    place = {"s": log2(nbytes), "n": log2(gpus)}
    return OpWork(kind, (MICROSECOND, steps * MICROSECOND, moved), place, moved)


def rails_seconds(hardware: Hardware, kind: CollectiveKind, gpus: int, nbytes: float, domains: int) -> float:
    """Seconds that a collective's bytes between NVLink domains take at the NICs' peak.

    All GPUs of a domain send through their own NIC. What must leave a domain of n/d GPUs: (d-1)/d of the
    bytes for all-gather and reduce-scatter, twice that for all-reduce, and (n - n/d)/n of what each GPU
    holds for all-to-all.
    """
    rate = hardware.need("ib_bytes_per_s", "time a collective between nodes")
    share = (domains - 1) / domains
    if kind is CollectiveKind.ALL_TO_ALL:
        return nbytes * share / rate
    passes = 2 if kind is CollectiveKind.ALL_REDUCE else 1
    return passes * nbytes * share / (gpus / domains) / rate


@dataclass(frozen=True, slots=True)
class Exchange:
    """A dispatch or combine: who takes part, and what each GPU has to send."""

    mode: ExchangeMode
    direction: Direction
    nodes: int
    gpus_per_node: int
    tokens: float
    hidden: int
    top_k: int
    experts: int
    dtype: KernelDtype

    @property
    def row_bytes(self) -> float:
        """Bytes of a token's row with its scales (one FP32 per 128 values) and header, as DeepEP counts."""
        if self.dtype is KernelDtype.BFLOAT16:
            return 2.0 * self.hidden
        header = 16 if self.mode is ExchangeMode.LOW_LATENCY else 0
        return self.hidden + 4.0 * self.hidden / 128 + header

    def copies(self) -> tuple[float, float]:
        """Copies of a token that leave its GPU: to others of its node's reach, and to other nodes.

        Low latency sends one copy per pick, straight to its GPU. Normal sends one per distinct node over
        the rails and one per distinct GPU inside a node; picks are uniform.
        """
        gpus = self.nodes * self.gpus_per_node
        if self.mode is ExchangeMode.LOW_LATENCY:
            return self.top_k / self.nodes, self.top_k * (self.nodes - 1) / self.nodes
        chance = HitChance(self.experts, self.top_k)
        to_node = chance.of_count(self.experts // self.nodes)
        return (gpus - 1) * chance.of_count(self.experts // gpus), (self.nodes - 1) * to_node


def exchange_work(hardware: Hardware, exchange: Exchange) -> OpWork:
    """Limits of a dispatch or combine: launch; a step per doubling of nodes; NVLink; rails;
    and the square root of the tokens, for channels that fill as tokens grow.

    The normal mode has one kernel inside a node and another between nodes; low latency has one for both.
    """
    near, far = exchange.copies()
    bytes_each = exchange.tokens * exchange.row_bytes
    nvlink = near * bytes_each / hardware.need("nvlink_bytes_per_s", "time a dispatch")
    rails = 0.0
    if exchange.nodes > 1:
        rails = far * bytes_each / hardware.need("ib_bytes_per_s", "time a dispatch between nodes")
    normal = exchange.mode is ExchangeMode.NORMAL
    doublings = 0.0 if normal else log2(exchange.nodes)
    limits = (MICROSECOND, doublings * MICROSECOND, nvlink, rails, sqrt(exchange.tokens) * MICROSECOND)
    place = {"t": log2(exchange.tokens), "nodes": log2(exchange.nodes)}
    floor = max(nvlink * (exchange.gpus_per_node - 1) / exchange.gpus_per_node, rails)
    reach = f"/{'intranode' if exchange.nodes == 1 else 'internode'}" if normal else ""
    return OpWork(f"{exchange.mode}/{exchange.direction}{reach}", limits, place, floor)
