"""What a MoE block is expected to move, contract by contract: tokens, all rows, or weights."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES, dispatch_row_bytes
from tracer.model.parameters import expert_parameters
from tracer.scenario.plan import Contract, DispatchMode, Sp
from tracer.scenario.step import bytes_per_expert
from tracer.traffic.chance import HitChance
from tracer.traffic.dispatch import (
    NO_COPIES,
    DispatchCopies,
    expected_copies,
    expected_messages,
)
from tracer.traffic.line import AxisTraffic, crossing_share, layers_by_stage, shared_line, split_line
from tracer.traffic.shapes import RANK_WORK, check_sum, group_shapes, pulled_weights
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class RowBytes:
    """Bytes of one dispatched row and of one combined row."""

    dispatch: int
    combine: int

    @classmethod
    def of(cls, scenario: Scenario) -> RowBytes:
        """Row sizes in the declared dtypes; a low-latency FP8 message has its header."""
        hidden = scenario.model.expert_row
        low = scenario.plan.dispatch is DispatchMode.LOW_LATENCY and scenario.plan.contract is Contract.EP
        size = dispatch_row_bytes(hidden, scenario.dtype.dispatch, low_latency=low)
        return cls(size, hidden * BYTES[scenario.dtype.combine])

    @property
    def both(self) -> int:
        """Bytes of a copy there and back."""
        return self.dispatch + self.combine


def moe_line(scenario: Scenario, tokens: int) -> AxisTraffic | None:
    """The MoE block's line on axis ep; None when its contract moves nothing there."""
    mesh = scenario.mesh
    if scenario.plan.contract is Contract.TP or mesh.dispatch_size == 1:
        return None
    if scenario.plan.contract is Contract.DWDP:
        return _pull_line(scenario)
    if scenario.plan.contract is Contract.AG_RS:
        return _all_rows_line(scenario, tokens)
    return _dispatch_line(scenario, tokens)


def dispatched_rows(scenario: Scenario, tokens: int) -> float:
    """Rows one GPU dispatches in a layer: T/(cp·tp), without SP T/cp (every TP rank has a copy)."""
    tp = 1 if scenario.plan.sp is Sp.OFF else scenario.mesh.tp
    return tokens / (scenario.mesh.cp * tp)


def rows_text(scenario: Scenario, tokens: int) -> tuple[str, str]:
    """The rows that a GPU dispatches, as a formula and in numbers."""
    cp, tp = scenario.mesh.cp, scenario.mesh.tp
    if scenario.plan.sp is Sp.OFF:
        return "(T/cp)", f"({tokens}/{cp})"
    return "(T/(cp·tp))", f"({tokens}/({cp}·{tp}))"


def average_copies(scenario: Scenario) -> DispatchCopies:
    """Expected copies per token, averaged over the MoE layers (stages and placements may differ)."""
    total = NO_COPIES
    for layer, share in _distinct_layers(scenario).items():
        total += expected_copies(scenario, layer).scaled(share)
    return total


def average_messages(scenario: Scenario) -> tuple[float, float]:
    """Expected messages per token without de-duplication, and those between NVLink domains; as above."""
    messages = crossing = 0.0
    for layer, share in _distinct_layers(scenario).items():
        every, between = expected_messages(scenario, layer)
        messages, crossing = messages + share * every, crossing + share * between
    return messages, crossing


def _distinct_layers(scenario: Scenario) -> dict[int, float]:
    """One MoE layer of each stage and placement, with the share of the MoE layers it stands for."""
    model = scenario.model
    layers = [layer for layer in range(1, model.layers + 1) if model.is_moe(layer)]
    first: dict[tuple[int, int], int] = {}
    counts: Counter[int] = Counter()
    for layer in layers:
        key = (scenario.stage_of_layer(layer), id(scenario.placement_of(layer)))
        counts[first.setdefault(key, layer)] += 1
    # Each one lists the groups of the whole mesh.
    check_sum(scenario.mesh.world_size, len(counts))
    return {layer: count / len(layers) for layer, count in counts.items()}


def _dispatch_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    model, etp = scenario.model, scenario.mesh.etp
    hidden, top_k = model.expert_row, HitChance.of_model(model).mean_picks
    top_k += len(scenario.always_picked)
    if scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
        messages, ib = average_messages(scenario)
        nvlink = messages - ib
    else:
        copies = average_copies(scenario)
        nvlink, ib = copies.nvlink, copies.ib
    rows, size = dispatched_rows(scenario, tokens), RowBytes.of(scenario).both
    formula, numbers = rows_text(scenario, tokens)
    over_ib = f"2·{_ib_text(scenario)}·{formula}·d{_turns(scenario)}"
    factor, factor_numbers = ("k·etp", f"{top_k:g}·{etp}") if etp > 1 else ("k", f"{top_k:g}")
    return split_line(
        scenario.cluster,
        "ep",
        "moe",
        elements=2 * top_k * etp * rows * hidden,
        size=top_k * etp * rows * size,
        nvlink=(2 * nvlink * rows * hidden, nvlink * rows * size),
        ib=(2 * ib * rows * hidden, ib * rows * size),
        formula=f"2·{factor}·{formula}·d by picks; over IB {over_ib}",
        numbers=f"2·{factor_numbers}·{numbers}·{hidden}; over IB 2·{ib:.4f}·{numbers}·{hidden}",
        times=model.moe_layers,
    )


def _turns(scenario: Scenario) -> str:
    """What a form with replicas is a mean over: those that tie take turns by position."""
    placements = {id(each): each for each in map(scenario.placement_of, _distinct_layers(scenario))}
    return ", mean over token positions" if any(each.has_replicas for each in placements.values()) else ""


def _ib_text(scenario: Scenario) -> str:
    if scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
        return "k·etp·(share of experts on other islands)"
    return "Σ p(e_domain)"


def _all_rows_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    model, mesh = scenario.model, scenario.mesh
    hidden = model.expert_row
    peers = mesh.dispatch_size - 1
    share = crossing_share(scenario, (Axis.ETP, Axis.EP), layers_by_stage(scenario, model.is_moe))
    rows, size = dispatched_rows(scenario, tokens), RowBytes.of(scenario).both
    formula, numbers = rows_text(scenario, tokens)
    elements, total = 2 * peers * rows * hidden, peers * rows * size
    return shared_line(
        scenario.cluster,
        "ep",
        "moe",
        elements=elements,
        size=total,
        ib_share=share,
        formula=f"2·(etp·ep-1)·{formula}·d",
        numbers=f"2·{peers}·{numbers}·{hidden}",
        times=model.moe_layers,
    )


def pulled_bytes(scenario: Scenario) -> tuple[float, float]:
    """(NVLink, IB) bytes of weights a rank pulls in a MoE layer, on average."""
    nvlink = ib = 0.0
    whole, etp = bytes_per_expert(scenario), scenario.mesh.etp
    slices = [whole * (each + 1) // etp - whole * each // etp for each in range(etp)]
    for layer, share in _distinct_layers(scenario).items():
        placement, shapes = (
            scenario.placement_of(layer),
            group_shapes(scenario, scenario.stage_of_layer(layer)),
        )
        check_sum(sum(len(group.ep_ranks) for group in shapes), max(RANK_WORK, placement.slots_on(0)))
        for group, times in shapes.items():
            inside, between = pulled_weights(group, placement, slices)
            part = times * share / scenario.mesh.stage_size
            nvlink, ib = nvlink + inside * part, ib + between * part
    return nvlink, ib


def _pull_line(scenario: Scenario) -> AxisTraffic:
    """Weights a GPU receives: the experts that are not local, once a layer, whatever T."""
    model = scenario.model
    nvlink, ib = pulled_bytes(scenario)
    layer = next(number for number in range(1, model.layers + 1) if model.is_moe(number))
    experts, whole = scenario.placement_of(layer).experts, bytes_per_expert(scenario)
    element = whole / expert_parameters(model)
    return split_line(
        scenario.cluster,
        "ep",
        str(HopKind.WEIGHT_PULL),
        elements=(nvlink + ib) / element,
        size=nvlink + ib,
        nvlink=(nvlink / element, nvlink),
        ib=(ib / element, ib),
        formula="weights of the experts that are not local, once a layer, whatever T",
        numbers=f"{(nvlink + ib) / whole:.4g} of {experts} experts, 3·d·expert_hidden each",
        times=model.moe_layers,
    )
