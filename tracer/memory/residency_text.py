"""A residency as JSON values and as lines a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes

if TYPE_CHECKING:
    from tracer.memory.residency import Residency
    from tracer.memory.share import ModelShare
    from tracer.memory.weights import WeightShard
    from tracer.scenario.placement import Placement

MAX_LISTED = 4096
_SHOWN = 12
Pair = list[int] | None
Slots = list[int] | dict[str, Any]


def residency_to_dict(held: Residency) -> dict[str, Any]:
    """JSON values; ranges are ``[start, stop)`` pairs, and what a GPU does not have is null."""
    share = held.share
    return {
        "layers": [share.layers.first, share.layers.last],
        "dense_layers": share.layers.dense,
        "moe_layers": share.layers.moe,
        "query_heads": _pair(share.query_heads),
        "kv_heads": _pair(share.kv_heads),
        "kv_replicas": share.kv_replicas,
        "dense_hidden": _pair(share.dense_hidden),
        "shared_hidden": _pair(share.shared_hidden),
        "experts": experts_to_dict(share),
        "embedding": _pair(share.embedding),
        "lm_head": _pair(share.lm_head),
        "rows": [_pair(run) for run in held.rows],
        "kv_positions": [_pair(run) for run in held.kv_positions],
        "kv_kept": held.kv_kept,
        "causal_work": held.work.to_dict(),
        "weights": [_holding_to_dict(each) for each in held.weights],
        "parameters": held.parameters,
        "weight_bytes": held.weight_bytes,
        "weight_bytes_by_part": held.weight_bytes_by_part,
        "kv_bytes_per_token": held.kv_bytes_per_token,
        "kv_bytes": held.kv.bytes,
        "staging_bytes": held.staging_bytes,
        "hbm_bytes": held.hbm_bytes,
        "free_bytes": held.free_bytes,
        "kv_tokens_that_fit": held.kv_tokens_that_fit,
    }


def experts_to_dict(share: ModelShare) -> dict[str, Any] | None:
    """Expert slots: the same in most layers, and ``by_layer`` where a layer has a table of its own."""
    if share.expert_hidden is None:
        return None
    common = share.layers.common
    return {
        "hidden": _pair(share.expert_hidden),
        "slots": None if common is None else _listed(common, share.ep_rank),
        "by_layer": {str(layer): _listed(table, share.ep_rank) for layer, table in share.layers.own},
    }


def _listed(placement: Placement, ep_rank: int) -> Slots:
    """The experts of the slots; their number and the first of them when there are very many."""
    slots = placement.experts_on(ep_rank)
    if len(slots) <= MAX_LISTED:
        return list(slots)
    return {"count": len(slots), "first": list(slots[:_SHOWN])}


def _pair(run: range | None) -> Pair:
    return None if run is None else [run.start, run.stop]


def _holding_to_dict(each: WeightShard) -> dict[str, Any]:
    return {
        "part": str(each.part),
        "name": each.name,
        "rows": each.rows,
        "columns": each.columns,
        "count": each.count,
        "parameters": each.parameters,
        "bytes": each.bytes,
        "held_by": each.held_by,
        "why": each.why,
    }


def residency_text(held: Residency) -> str:
    """What a GPU holds, a line a thing."""
    share, layers = held.share, held.share.layers
    kinds = f"{layers.dense} dense, {layers.moe} MoE" if layers.moe and layers.dense else ""
    lines = [f"layers        {layers.first} to {layers.last}" + (f" ({kinds})" if kinds else "")]
    lines.append(f"heads         {_span(share.query_heads)}, {_kv(share)}")
    if share.expert_hidden is not None:
        lines += _expert_lines(share, share.expert_hidden)
    vocabulary = (("embedding", share.embedding), ("LM head", share.lm_head))
    lines += [f"{name:<14}rows {_span(rows)}" for name, rows in vocabulary if rows]
    lines += _token_lines(held)
    parts = ", ".join(f"{part} {format_bytes(size)}" for part, size in held.weight_bytes_by_part.items())
    lines.append(f"weights       {format_bytes(held.weight_bytes)}: {parts}")
    if held.staging_bytes:
        lines.append(f"staging       {format_bytes(held.staging_bytes)} for pulled experts")
    request = f"{format_bytes(held.kv.bytes)} for the request's {held.kv.positions:,} positions here"
    lines.append(f"K/V a token   {format_bytes(held.kv_bytes_per_token)}: {request}")
    lines.append(f"memory        {_memory(held)}")
    return "\n".join(lines)


def _kv(share: ModelShare) -> str:
    if share.kv_heads is None:
        return "the K/V latent whole"
    also = f" (each on {share.kv_replicas} TP ranks)" if share.kv_replicas > 1 else ""
    return f"KV heads {_span(share.kv_heads)}{also}"


def _expert_lines(share: ModelShare, inner: range) -> list[str]:
    layers, also = share.layers, f"; inner width {_span(inner)}"
    tables = [("experts", layers.common)] if layers.common is not None else []
    tables += [(f"  layer {layer}", table) for layer, table in layers.own[:_SHOWN]]
    return [f"{name:<14}{_slots(table.experts_on(share.ep_rank))}{also}" for name, table in tables]


def _token_lines(held: Residency) -> list[str]:
    """Where the prompt is; in decode only its K/V is there."""
    sharded = f" ({held.kv_kept:,} of them)" if held.kv_kept < sum(map(len, held.kv_positions)) else ""
    kept = f"K/V of {_runs(held.kv_positions)}{sharded}"
    if not held.computes_prompt:
        return [f"prompt        {kept}"]
    work = f"{held.work.pairs:,} pairs, {held.work.of_mean:.3f} of the mean CP rank's"
    return [f"prompt        rows {_runs(held.rows)}; {kept}", f"causal work   {work}"]


def _slots(slots: Sequence[int]) -> str:
    more = f" … ({len(slots):,} slots)" if len(slots) > _SHOWN else ""
    return " ".join(map(str, slots[:_SHOWN])) + more


def _span(run: range) -> str:
    if not run:
        return "none"
    return f"{run.start:,}" if len(run) == 1 else f"{run.start:,} to {run.stop - 1:,}"


def _runs(runs: Sequence[range]) -> str:
    return ", ".join(_span(run) for run in runs) or "none"


def _memory(held: Residency) -> str:
    if held.hbm_bytes is None or held.free_bytes is None:
        return "not known (cluster.hardware names none, or no source states it)"
    if held.free_bytes < 0:
        return f"{format_bytes(held.hbm_bytes)}: {format_bytes(-held.free_bytes)} short"
    return (
        f"{format_bytes(held.free_bytes)} of {format_bytes(held.hbm_bytes)} left: "
        f"K/V of {held.kv_tokens_that_fit:,} tokens, were nothing else in memory"
    )
