"""Why one transfer of a hop is made: the last column of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import and_list, gpus
from layouts.words.kinds import attention_of, is_latent
from tracer.mesh.axes import Axis
from tracer.mesh.cluster import Tier
from tracer.scenario.plan import DispatchMode
from tracer.trip.hop import HopKind, Part, Role

if TYPE_CHECKING:
    from layouts.words.context import Context
    from tracer.trip.hop import Transfer

ROLES = {
    Role.ROW: "rows",
    Role.PARTIAL: "partial sums",
    Role.KV: "K/V",
    Role.DISPATCH: "rows for experts",
    Role.FORWARD: "rows a relay passes on",
    Role.RESULT: "experts' outputs",
    Role.SUM: "sums from a relay",
    Role.LOGITS: "logits",
    Role.QUERY: "query heads",
    Role.OUTPUT: "outputs, max, sum",
    Role.STATE: "states",
    Role.WEIGHTS: "expert weights",
    Role.METADATA: "counts and probabilities",
}
"""What a move of several tokens carries, by role."""


def reasons(context: Context) -> list[str]:
    """A few words for each transfer of the hop, in order."""
    if context.hop.kind in (HopKind.DISPATCH, HopKind.COMBINE):
        return _moe_reasons(context)
    return [_reason(context, transfer) for transfer in context.hop.transfers]


def _reason(context: Context, transfer: Transfer) -> str:
    kind, role = context.hop.kind, transfer.role
    if kind is HopKind.PP_SEND:
        same = context.scenario.cluster.index_in_nvlink_domain(
            transfer.src
        ) == context.scenario.cluster.index_in_nvlink_domain(transfer.dst)
        rail = ", same rail" if same and transfer.tier is Tier.IB else ""
        return f"to stage {context.scenario.mesh.stage_of(transfer.dst)}{rail}"
    if role == Role.KV:
        heads = _kv_heads(context, transfer.src)
        return f"K/V{heads}"
    if role == Role.PARTIAL:
        return "partial sum"
    if role == Role.LOGITS:
        return "its slice of the logits"
    if role == Role.QUERY:
        return "query heads"
    if role == Role.OUTPUT:
        return "output, max, sum"
    if role == Role.STATE:
        return "state of its heads"
    if role == Role.WEIGHTS:
        return "expert weights"
    if role == Role.METADATA:
        return "a probability" if kind is HopKind.PROBS_DISPATCH else "counts by expert"
    if kind is HopKind.ALL_REDUCE:
        return "the sum"
    return "for its heads" if context.hop.part is Part.ATTENTION else "the whole row"


def _kv_heads(context: Context, rank: int) -> str:
    """Which KV heads a TP rank sends."""
    tp, attention = context.size(Axis.TP), attention_of(context)
    if is_latent(context):
        return " latent"
    kv_heads = getattr(attention, "kv_heads", context.model.kv_heads or 0)
    coordinate = context.scenario.mesh.dense.coordinate(rank, Axis.TP)
    own = kv_heads // tp
    if own == 0:
        return f", head {coordinate * kv_heads // tp}"
    first = coordinate * own
    return f", heads {first}–{first + own - 1}" if own > 1 else f", head {first}"


def _moe_reasons(context: Context) -> list[str]:
    held = {source: context.experts_by_rank(source) for source in context.sources}
    if context.hop.transfers and context.hop.transfers[0].role in (Role.ROW, Role.PARTIAL):
        return ["row" if t.role == Role.ROW else "partial row" for t in context.hop.transfers]
    if context.scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
        return _low_latency_reasons(context, held)
    return [_expert_reason(context, transfer, held) for transfer in context.hop.transfers]


def _low_latency_reasons(context: Context, held: dict[int, dict[int, list[int]]]) -> list[str]:
    """One expert per message: each pair of GPUs takes its experts in turn."""
    left = {(source, rank): list(experts) for source, by in held.items() for rank, experts in by.items()}
    words = []
    for t in context.hop.transfers:
        pair = (t.src, t.dst) if t.role == Role.DISPATCH else (t.dst, t.src)
        experts = left.get(pair, [])
        words.append(f"expert {experts.pop(0)}" if experts else "expert")
    return words


def _expert_reason(context: Context, transfer: Transfer, held: dict[int, dict[int, list[int]]]) -> str:
    end = transfer.dst if transfer.role in (Role.DISPATCH, Role.FORWARD) else transfer.src
    source = _source_of(context, transfer)
    experts = held.get(source, {}).get(end, []) if source is not None else []
    names = (
        f"expert{'s' if len(experts) > 1 else ''} {and_list([str(e) for e in experts])}" if experts else ""
    )
    remote = context.nvlink_domain(transfer.src) != context.nvlink_domain(transfer.dst)
    if transfer.role == Role.SUM:
        return "sum from the relay, same rail"
    if remote and transfer.role == Role.DISPATCH:
        cluster = context.scenario.cluster
        on_rail = cluster.index_in_nvlink_domain(transfer.src) == cluster.index_in_nvlink_domain(transfer.dst)
        relay = "relay, same rail" if on_rail else "straight: no relay there"
        return f"{relay}; {names}" if names else relay
    if transfer.role == Role.RESULT and names:
        return f"output of {names}"
    return names or gpus([end])


def _source_of(context: Context, transfer: Transfer) -> int | None:
    """The source rank whose copy this is; relays belong to the source with their index."""
    sources = context.sources
    for rank in (transfer.src, transfer.dst):
        if rank in sources and transfer.role in (Role.DISPATCH, Role.SUM, Role.RESULT):
            return rank
    cluster = context.scenario.cluster
    relay = transfer.src if transfer.role == Role.FORWARD else transfer.dst
    index = cluster.index_in_nvlink_domain(relay)
    return next((rank for rank in sources if cluster.index_in_nvlink_domain(rank) == index), sources[0])
