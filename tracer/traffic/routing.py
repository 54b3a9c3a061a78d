"""What routing exchanges besides rows, where ``routing_metadata`` asks for it (Megatron's dispatcher).

Counts go once a layer, whatever T: E whole numbers of 8 bytes, summed over tp·cp and gathered over the
dispatch group. Probabilities go with the rows: one beside each message to an expert's GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.traffic.line import AxisTraffic, crossing_share, layers_by_stage, shared_line, split_line
from tracer.traffic.moe import average_messages, dispatched_rows, rows_text
from tracer.trip.hop import HopKind
from tracer.trip.hops.routing import COUNT_BYTES

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def routing_lines(scenario: Scenario, tokens: int) -> list[AxisTraffic]:
    """Lines of the counts' sum, of their gather, and of the probabilities; none unless asked for."""
    if not scenario.plan.routing_metadata or not scenario.model.moe_layers:
        return []
    lines = []
    if scenario.mesh.replica_size > 1:
        lines.append(_reduce_line(scenario))
    if scenario.mesh.dispatch_size > 1:
        lines += [_gather_line(scenario), _probabilities_line(scenario, tokens)]
    return lines


def _reduce_line(scenario: Scenario) -> AxisTraffic:
    """Counts to one rank of the replica's stage and the sums back from it, on average over its ranks."""
    mesh, model = scenario.mesh, scenario.model
    ranks, experts = mesh.tp * mesh.cp, model.need("experts", "count rows per expert")
    moe = layers_by_stage(scenario, model.is_moe)
    elements = 2 * (ranks - 1) * experts / ranks
    return shared_line(
        scenario.cluster,
        "tp",
        str(HopKind.COUNTS_REDUCE),
        elements=elements,
        size=elements * COUNT_BYTES,
        ib_share=crossing_share(scenario, (Axis.TP, Axis.CP), moe),
        formula="2·(tp·cp-1)/(tp·cp)·E counts, once a layer, whatever T",
        numbers=f"2·{ranks - 1}/{ranks}·{experts}",
        times=model.moe_layers,
    )


def _gather_line(scenario: Scenario) -> AxisTraffic:
    """Each rank's counts to every other of its dispatch group."""
    model, peers = scenario.model, scenario.mesh.dispatch_size - 1
    experts = model.need("experts", "count rows per expert")
    share = crossing_share(scenario, (Axis.ETP, Axis.EP), layers_by_stage(scenario, model.is_moe))
    return shared_line(
        scenario.cluster,
        "ep",
        str(HopKind.COUNTS_GATHER),
        elements=peers * experts,
        size=peers * experts * COUNT_BYTES,
        ib_share=share,
        formula="(etp·ep-1)·E counts, once a layer, whatever T",
        numbers=f"{peers}·{experts}",
        times=model.moe_layers,
    )


def _probabilities_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    """One number beside each message to an expert's GPU; by picks those that stay home count too."""
    model, etp = scenario.model, scenario.mesh.etp
    picks = model.need("top_k", "count picks") + len(scenario.always_picked)
    messages, ib = average_messages(scenario)
    rows, size = dispatched_rows(scenario, tokens), BYTES[scenario.dtype.activations]
    formula, numbers = rows_text(scenario, tokens)
    nvlink = (messages - ib) * rows
    return split_line(
        scenario.cluster,
        "ep",
        str(HopKind.PROBS_DISPATCH),
        elements=picks * etp * rows,
        size=picks * etp * rows * size,
        nvlink=(nvlink, nvlink * size),
        ib=(ib * rows, ib * rows * size),
        formula=f"k·etp·{formula} by picks",
        numbers=f"{picks}·{etp}·{numbers}",
        times=model.moe_layers,
    )
