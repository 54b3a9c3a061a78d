"""The rule or flag that explains an operation which only one side has."""

from __future__ import annotations

from tracer.mesh.axes import Axis
from tracer.runs.alignment import axis_of, is_narrow_exchange
from tracer.runs.planned import PlannedOp
from tracer.runs.reading.recording import Op, OpKind
from tracer.runs.shapes import Families, is_routing_counts
from tracer.trip.hop import Part

ASK_METADATA = "set mesh.routing_metadata = true"


def why_missing(planned: PlannedOp) -> tuple[str, str | None]:
    """Why a recording may lack a planned operation, and what to set."""
    part = planned.part.replace("_", " ")
    if planned.is_metadata:
        return f"routing metadata: the trip has a {planned.hop}; this run's router does without", None
    if planned.part is Part.SHARED:
        return "the trip slices the shared expert over tp; this run does not", "set mesh.shared_tp = whole"
    if planned.part is Part.MOE:
        return (
            f"the trip has a {planned.hop} of experts; this run moves their rows otherwise",
            "set mesh.contract to what the run does (ag_rs gathers all rows, tp sums partial ones)",
        )
    if planned.axis == Axis.TP:
        return (
            f"the trip has a {planned.hop} of the {part} on tp; this run does not",
            "set mesh.sp or mesh.dense_tp",
        )
    return f"the trip has a {planned.hop} of the {part}; this run does not", None


def why_extra(op: Op, families: Families) -> tuple[str, str | None, bool]:
    """Why, what to set, and whether trips leave it out on purpose."""
    if is_routing_counts(op, families):
        return (
            "routing metadata: how many rows each expert gets; trips count it where they are asked to",
            ASK_METADATA,
            True,
        )
    if is_narrow_exchange(op):
        return (
            "routing metadata: probabilities travel beside their rows; trips count them where asked to",
            ASK_METADATA,
            True,
        )
    axis = axis_of(op, families)
    if families.of(op.group) == "etp":
        return (
            "expert tensor parallelism: an expert's rows are gathered over the ranks that slice it, and its "
            "partial sums added; a trip's dispatch sends to each of these ranks, and its combine adds",
            None,
            True,
        )
    if axis == Axis.TP and op.kind in (OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER):
        return (
            "an all-gather and a reduce-scatter on tp in a MoE layer: a shared expert sliced over TP",
            "set model.shared_experts = 1 and mesh.shared_tp = own",
            False,
        )
    if axis == Axis.TP and op.kind is OpKind.ALL_REDUCE:
        return (
            "a sum on tp that the trip lacks: partial sums of a shared or dense part",
            "set mesh.shared_tp or mesh.dense_tp",
            False,
        )
    if axis == Axis.EP:
        return "rows move between expert ranks in a way that the trip lacks", "set mesh.contract", False
    return f"the trip has no {op.kind} on {op.group}", None, False
