"""The MoE block of a layer: shared expert, router, and experts by the deployment's contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import Part
from tracer.plan import Contract
from tracer.replay.feed_forward import normed_rows, shared_block
from tracer.replay.moe_by_sums import experts_by_sums
from tracer.replay.moe_by_tokens import experts_by_tokens
from tracer.replay.moe_by_weights import experts_by_weights

if TYPE_CHECKING:
    from tracer.replay.run import Run

BY_CONTRACT = {
    Contract.EP: experts_by_tokens,
    Contract.AG_RS: experts_by_tokens,
    Contract.TP: experts_by_sums,
    Contract.DWDP: experts_by_weights,
}


def moe_block(run: Run, layer: int) -> None:
    """``hidden += shared(x) + Σ weight · expert(x)`` with ``x = norm(hidden)``."""
    shared = run.scenario.need_model().shared_experts > 0 and not run.scenario.plan.shared_routed
    if shared:
        shared_block(run, layer)
    normed_rows(run, layer, "x")
    BY_CONTRACT[Contract(run.scenario.plan.contract)](run, layer)
    for gpu in run.gpus_of_layer(layer):
        run.add_to_hidden(gpu, "moe")
        if shared:
            run.add_to_hidden(gpu, "shared")
    run.drop(layer, "x", "moe", "shared")
    run.checks.hidden(run, layer, Part.MOE)
