"""The census as JSON values and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.census.beside import beside_traffic
from tracer.display import format_bytes, format_seconds, left, text_table
from tracer.mesh.cluster import Tier, nvlink_domains_of
from tracer.scenario.placement import doubled_text
from tracer.scenario.plan import Contract, DispatchMode
from tracer.scenario.step import mesh_line
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.census.result import Census

SCHEMA = 1


def balance(load: NDArray[np.int64]) -> dict[str, float | None]:
    """Imbalance both ways: max/mean, and mean/max as vLLM and SGLang print it; None without load."""
    total = int(load.sum())
    if total == 0:
        return {"max_over_mean": None, "mean_over_max": None}
    mean = total / len(load)
    return {"max_over_mean": int(load.max()) / mean, "mean_over_max": mean / int(load.max())}


def saved(census: Census) -> dict[str, int]:
    """Messages that de-duplication saves in dispatch.

    ``picks``: one for each pick that leaves home; ``by_gpu`` of them fall away with one copy per GPU;
    ``by_island`` of the copies between NVLink domains fall away with one copy per NVLink domain. Both are 0
    where every pick is a message of its own (low latency), and under contracts that send what they send
    whatever is picked.
    """
    moved = distinct = between = leaving = 0
    for part in census.parts:
        ranks = census.scenario.mesh.stage_lists()[part.stage].astype(np.int64)
        nvlink_domains = nvlink_domains_of(census.scenario.cluster, ranks)
        outside = nvlink_domains[:, None] != nvlink_domains[None, :]
        traffic = part.traffic
        moved += int(traffic.picks.sum() - np.trace(traffic.picks))
        distinct += int(traffic.copies.sum() - np.trace(traffic.copies))
        between += int(traffic.copies[outside].sum())
        leaving += int(traffic.ib_copies.sum())
    if not removes_doubles(census):
        return {"picks": moved, "by_gpu": 0, "by_island": 0}
    return {"picks": moved, "by_gpu": moved - distinct, "by_island": between - leaving}


def removes_doubles(census: Census) -> bool:
    """Whether dispatch sends one copy for several picks: high throughput, where tokens travel."""
    plan = census.scenario.plan
    return plan.contract is Contract.EP and plan.dispatch is DispatchMode.HIGH_THROUGHPUT


def busiest_census_link(census: Census) -> dict[str, Any] | None:
    """The rank, tier and direction that carry most time in dispatch; its bytes, time and the mean's."""
    cluster, world = census.scenario.cluster, census.scenario.mesh.world_size
    best: dict[str, Any] | None = None
    totals = {(tier, way): np.zeros(world, np.int64) for tier in Tier for way in ("out", "in")}
    for part in census.parts:
        ranks = census.scenario.mesh.stage_lists()[part.stage].astype(np.int64)
        nvlink_domains = nvlink_domains_of(cluster, ranks)
        outside = nvlink_domains[:, None] != nvlink_domains[None, :]
        for tier, mask in ((Tier.NVLINK, ~outside), (Tier.IB, outside)):
            moved = np.where(mask, part.traffic.sent, 0)
            totals[tier, "out"][ranks] += moved.sum(1)
            totals[tier, "in"][ranks] += moved.sum(0)
    for (tier, way), messages in totals.items():
        size = int(messages.max()) * census.row_bytes.dispatch
        seconds = size / cluster.link(tier).bytes_per_s
        if size and (best is None or seconds > best["seconds"]):
            best = {
                "rank": int(messages.argmax()),
                "tier": str(tier),
                "direction": way,
                "bytes": size,
                "mean_bytes": float(messages.mean()) * census.row_bytes.dispatch,
                "seconds": seconds,
            }
    return best


def crossings_per_token(census: Census) -> float:
    """Transfers between NVLink domains a token makes in these layers, dispatch and combine together."""
    crossing = census.messages_by_tier("sent")["ib"] + census.messages_by_tier("back")["ib"]
    return crossing / max(1, census.tokens)


def census_report(census: Census, *, by_layer: bool = False) -> dict[str, Any]:
    """The census as JSON values; matrices are dispatch direction, summed over layers."""
    load = census.load_by_expert
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "scenario": census.scenario.name,
        "contract": str(census.scenario.plan.contract),
        "tokens": census.tokens,
        "layers": len(census.layers),
        "layer_numbers": list(census.layers),
        "picks": census.picks,
        "copies": census.copies.tolist(),
        "ib_copies": census.ib_copies.tolist(),
        "sent": census.sent.tolist(),
        "bytes_by_tier": census.bytes_by_tier("dispatch"),
        "combine_bytes_by_tier": census.bytes_by_tier("combine"),
        "weight_bytes_by_tier": census.messages_by_tier("pulled"),
        "load_by_expert": load.tolist(),
        "load_by_gpu": census.gpu_load.tolist(),
        "relayed": census.relayed.tolist(),
        "imbalance": balance(load)["max_over_mean"],
        "balance": {"experts": balance(load), "gpus": balance(census.gpu_load)},
        "saved": saved(census),
        "straight_for_want_of_a_relay": census.straight,
        "busiest_link": busiest_census_link(census),
        "crossings_per_token": crossings_per_token(census),
        "notes": list(census.notes),
    }
    if beside := beside_traffic(census):
        report["beside"] = {
            str(each.kind): {"nvlink": each.nvlink_bytes, "ib": each.ib_bytes} for each in beside
        }
    if by_layer:
        report["by_layer"] = {str(layer): census_report(census.only(layer)) for layer in census.layers}
    return report


def census_lines(census: Census) -> list[tuple[str, str]]:
    """(what, value) pairs of the summary."""
    sent, back = census.bytes_by_tier("dispatch"), census.bytes_by_tier("combine")
    word, kept, link = census.scenario.cluster.domain_word, saved(census), busiest_census_link(census)
    lines = [
        ("tokens", f"{census.tokens:,} in {len(census.layers)} MoE layers, {census.picks:,} picks"),
        ("dispatch", f"{format_bytes(sent['nvlink'])} on NVLink, {format_bytes(sent['ib'])} over IB"),
        ("combine", f"{format_bytes(back['nvlink'])} on NVLink, {format_bytes(back['ib'])} over IB"),
        (f"{word} crossings", f"{crossings_per_token(census):.4g} a token"),
        ("de-duplication", f"{kept['picks']:,} picks leave home; {_savings_text(census, kept)}"),
        ("loads by expert", _balance_text(census.load_by_expert)),
        ("loads by GPU", _balance_text(census.gpu_load)),
    ]
    if link is not None:
        lines.append(
            (
                "busiest link",
                f"GPU {link['rank']}, {link['tier']} {link['direction']}: {format_bytes(link['bytes'])} "
                f"({format_seconds(link['seconds'])}) in dispatch, "
                f"mean {format_bytes(link['mean_bytes'])}",
            )
        )
    if census.relayed.any():
        lines.append(("relays", f"forward {_balance_text(census.relayed)}"))
    pulled = census.messages_by_tier("pulled")
    if any(pulled.values()):
        both = f"{format_bytes(pulled['nvlink'])} on NVLink, {format_bytes(pulled['ib'])} over IB"
        lines.append(("weights pulled", both))
    for each in beside_traffic(census):
        moved = f"{format_bytes(each.nvlink_bytes)} on NVLink, {format_bytes(each.ib_bytes)} over IB"
        word = "weight gathers" if each.kind is HopKind.WEIGHT_GATHER else str(each.kind)
        lines.append((word, f"{moved} in these layers"))
    if census.straight:
        lines.append(("no relay", f"{census.straight:,} messages went straight over IB"))
    twice = doubled_text(map(census.scenario.placement_of, census.layers))
    return lines + [("note", note) for note in (*census.notes, *twice)]


def _savings_text(census: Census, kept: dict[str, int]) -> str:
    plan, word = census.scenario.plan, census.scenario.cluster.domain_word
    if removes_doubles(census):
        return (
            f"one copy a GPU saves {kept['by_gpu']:,}, one a {word} {kept['by_island']:,} of what is left "
            "over IB"
        )
    if plan.contract is Contract.EP:
        return "low latency sends a message for each: nothing is saved"
    return f"contract {plan.contract} moves the same whatever is picked: nothing is saved"


def _balance_text(load: NDArray[np.int64]) -> str:
    found = balance(load)
    if found["max_over_mean"] is None:
        return "none"
    return (
        f"{int(load.min()):,} to {int(load.max()):,}, max/mean {found['max_over_mean']:.4f} "
        f"(mean/max {found['mean_over_max']:.4f})"
    )


def census_text(census: Census) -> str:
    """The summary, one line each."""
    lines = text_table((left(width=16, gap=0), left(gap=0)), census_lines(census), headings=False)
    return "\n".join([mesh_line(census.scenario), *lines])


def census_table(census: Census) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    """Header and rows of what a notebook shows."""
    return ("what", "how much"), census_lines(census)
