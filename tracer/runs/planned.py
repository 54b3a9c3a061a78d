"""What a trip's hops stand for on one rank: collectives with their kind, group and elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.runs.reading.recording import OpKind
from tracer.trip.hop import METADATA_KINDS, ONCE_A_LAYER, Hop, HopKind, Part
from tracer.trip.trip import iterate_hops

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

MAX_HOPS = 4096
COUNTS = "int64"
"""What experts' counts are sent as: no dtype of a scenario."""
_WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1, COUNTS: 8}


@dataclass(frozen=True, slots=True)
class PlannedOp:
    """An operation that a trip's hop stands for, on one rank.

    ``elements`` are the larger side's, None where they depend on the routing or on other ranks.
    """

    kind: OpKind
    axis: str
    part: Part
    hop: str
    dtype: str
    elements: int | None

    @property
    def bytes(self) -> int | None:
        """Bytes of the larger side."""
        return None if self.elements is None else self.elements * _WIDTH[self.dtype]

    @property
    def is_metadata(self) -> bool:
        """Whether it carries counts or probabilities of the routing, and no rows."""
        return self.hop in METADATA_KINDS


def planned_layer(scenario: Scenario) -> list[PlannedOp]:
    """Operations of the scenario's first layer with experts, or of its first layer where none has any.

    Raises:
        ConfigError: when the scenario lacks what a trip needs.
    """
    model = scenario.model
    layer = next((n for n in range(1, model.layers + 1) if model.is_moe(n)), 1)
    found: list[PlannedOp] = []
    for count, hop in enumerate(iterate_hops(scenario)):
        if hop.layer == layer and hop.part is not Part.PIPELINE and hop.part is not Part.HEAD:
            found += _planned(scenario, hop)
        if hop.layer > layer or count > MAX_HOPS:
            break
    return found


def _planned(scenario: Scenario, hop: Hop) -> list[PlannedOp]:
    """The collective behind a hop; none where it is no collective of this rank's stream."""
    found = _collective(scenario, hop.kind)
    if found is None:
        return []
    kind, elements = found
    return [PlannedOp(kind, hop.axis or "", hop.part, str(hop.kind), _dtype(scenario, hop.kind), elements)]


def _collective(scenario: Scenario, hop: HopKind) -> tuple[OpKind, int | None] | None:
    """Kind and elements of a hop's collective; the elements follow from the rows of one rank."""
    model, plan, mesh = scenario.model, scenario.plan, scenario.mesh
    hidden, experts = model.hidden or 0, model.experts or 0
    rows = scenario.decode_landing.rows_per_rank if scenario.decodes else scenario.landing.tokens_per_rank
    whole = rows * mesh.tp * hidden
    gathers = plan.contract == "ag_rs"
    sent = rows if plan.sp != "off" else rows * mesh.tp
    copies = sent * ((model.top_k or 1) + len(scenario.always_picked))
    exchange = (sent * mesh.dispatch_size if gathers else copies) * hidden
    straight = plan.kv_exchange == "all_gather"
    table = {
        HopKind.ALL_GATHER: (OpKind.ALL_GATHER, whole),
        HopKind.REDUCE_SCATTER: (OpKind.REDUCE_SCATTER, whole),
        HopKind.ALL_REDUCE: (OpKind.ALL_REDUCE, whole),
        HopKind.KV_EXCHANGE: (OpKind.ALL_GATHER if straight else OpKind.SEND, None),
        HopKind.HEADS_SCATTER: (OpKind.ALL_TO_ALL, None),
        HopKind.HEADS_GATHER: (OpKind.ALL_TO_ALL, None),
        HopKind.COUNTS_REDUCE: (OpKind.ALL_REDUCE, experts),
        HopKind.COUNTS_GATHER: (OpKind.ALL_GATHER, experts * mesh.dispatch_size),
        HopKind.PROBS_DISPATCH: (OpKind.ALL_TO_ALL, copies),
        HopKind.DISPATCH: (OpKind.ALL_GATHER if gathers else OpKind.ALL_TO_ALL, exchange),
        HopKind.COMBINE: (OpKind.REDUCE_SCATTER if gathers else OpKind.ALL_TO_ALL, exchange),
    }
    return table.get(hop)


def _dtype(scenario: Scenario, hop: HopKind) -> str:
    dtypes = scenario.dtype
    if hop in ONCE_A_LAYER:
        return COUNTS
    table = {
        HopKind.DISPATCH: dtypes.dispatch,
        HopKind.COMBINE: dtypes.combine,
        HopKind.KV_EXCHANGE: dtypes.kv,
        HopKind.ALL_GATHER: dtypes.gathered if scenario.plan.sp == "megatron" else dtypes.activations,
    }
    return str(table.get(hop, dtypes.activations))
