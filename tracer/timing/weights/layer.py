"""Tokens against weights: a layer of DEP (tokens move) beside a layer of DWDP (experts are pulled).

DEP: data-parallel attention, experts cut over the group, tokens dispatched and combined on the critical
path. DWDP: every rank pulls the experts it lacks while it computes, and runs all its own tokens' experts
itself (TensorRT-LLM tech blog 19; arXiv 2604.01621).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.timing.operators import expert_load, moe_layer
from tracer.timing.roofline import LayerTime, layer_time

if TYPE_CHECKING:
    from tracer.timing.batch import TimedBatch
    from tracer.timing.weights.group import MoeGroup


@dataclass(frozen=True, slots=True)
class LayerContest:
    """One MoE layer under both contracts, ranks balanced and nobody waiting for anybody.

    ``dwdp_compute`` is also the window that hides the prefetch of the next layer's experts. ``plain``
    takes the larger of all arithmetic and all memory time of the layer; otherwise each operator its own.
    """

    dep: LayerTime
    dwdp: LayerTime
    exchange_seconds: float
    prefetch_seconds: float
    plain: bool = False

    @property
    def dep_compute(self) -> float:
        """Seconds of arithmetic and memory of a DEP layer."""
        return self.dep.roof_seconds if self.plain else self.dep.seconds

    @property
    def dwdp_compute(self) -> float:
        """Seconds of arithmetic and memory of a DWDP layer."""
        return self.dwdp.roof_seconds if self.plain else self.dwdp.seconds

    @property
    def dep_seconds(self) -> float:
        """DEP layer: compute, then the exchange on the critical path."""
        return self.dep_compute + self.exchange_seconds

    @property
    def dwdp_seconds(self) -> float:
        """DWDP layer in steady state: the longer of compute and prefetch."""
        return max(self.dwdp_compute, self.prefetch_seconds)

    @property
    def stall_seconds(self) -> float:
        """What of the prefetch the window leaves open, a layer."""
        return max(0.0, self.prefetch_seconds - self.dwdp_compute)

    @property
    def window_ratio(self) -> float:
        """Compute over prefetch: 1 and above hides the pull."""
        return self.dwdp_compute / self.prefetch_seconds

    @property
    def speedup(self) -> float:
        """DEP's time over DWDP's: above 1 weights should move."""
        return self.dep_seconds / self.dwdp_seconds


def contest(group: MoeGroup, batch: TimedBatch, *, plain: bool = False) -> LayerContest:
    """One MoE layer for ``batch``, the requests of each single rank (all ranks have as much).

    Weight bytes and FLOPs at peak; rows' bytes are left out, as a plain roofline does.

    Raises:
        ConfigError: for a size the model lacks, or a rate no source states.
    """
    tokens = batch.tokens
    picks = tokens * group.spec.need("top_k", "count picks")
    shared = expert_load(group.spec, tokens * group.ranks, 1 / group.ranks, own_pairs=picks)
    own = expert_load(group.spec, tokens)
    dep, dwdp = (
        layer_time(
            moe_layer(group.spec, batch, load, output=group.output_weights), group.hardware, rows=False
        )
        for load in (shared, own)
    )
    return LayerContest(
        dep,
        dwdp,
        exchange_seconds=group.exchange_seconds(tokens),
        prefetch_seconds=group.prefetch_seconds,
        plain=plain,
    )
