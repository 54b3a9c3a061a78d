"""What the MoE contracts move for one sender: (src, dst, bytes, role) in the order it happens."""

from __future__ import annotations

from typing import Any

from oracle import payloads
from oracle.experts import ExpertMap, shared_ids
from oracle.nvlink_domains import OracleCluster

Move = tuple[int, int, int, str]


def relay_in(nvlink_domain: int, sender: int, group: list[int], cluster: OracleCluster) -> int | None:
    """The rank of a remote island that has the sender's index, if the dispatch group has it."""
    rank = cluster.rank_at(nvlink_domain, cluster.index[sender])
    return rank if rank in group else None


def high_throughput(
    scenario: dict[str, Any], sender: int, picks: list[int], where: ExpertMap
) -> tuple[list[Move], list[Move]]:
    """(dispatch, combine): one copy a GPU at home, one copy a remote island through its relay."""
    cluster, group = where.cluster, where.mesh.group(sender, "dispatch")
    out, back = payloads.dispatched_row(scenario, low_latency=False), payloads.combined_row(scenario)
    gpus = sorted({gpu for expert in picks for gpu in where.gpus(expert, sender)})
    dispatch: list[Move] = []
    combine: list[Move] = []
    for nvlink_domain in sorted({cluster.nvlink_domain[gpu] for gpu in gpus}):
        there = [gpu for gpu in gpus if cluster.nvlink_domain[gpu] == nvlink_domain and gpu != sender]
        relay = None
        if nvlink_domain != cluster.nvlink_domain[sender]:
            relay = relay_in(nvlink_domain, sender, group, cluster)
        if relay is None:
            for gpu in there:
                dispatch.append((sender, gpu, out, "dispatch"))
                combine.append((gpu, sender, back, "result"))
            continue
        dispatch.append((sender, relay, out, "dispatch"))
        for gpu in there:
            if gpu != relay:
                dispatch.append((relay, gpu, out, "forward"))
                combine.append((gpu, relay, back, "result"))
        combine.append((relay, sender, back, "sum"))
    return dispatch, combine


def low_latency(
    scenario: dict[str, Any], sender: int, picks: list[int], where: ExpertMap
) -> tuple[list[Move], list[Move]]:
    """(dispatch, combine): one message for each expert and etp rank, straight there and straight back."""
    out, back = payloads.dispatched_row(scenario, low_latency=True), payloads.combined_row(scenario)
    dispatch: list[Move] = []
    combine: list[Move] = []
    for expert in picks:
        for gpu in where.gpus(expert, sender):
            if gpu != sender:
                dispatch.append((sender, gpu, out, "dispatch"))
                combine.append((gpu, sender, back, "result"))
    return dispatch, combine


def all_rows(scenario: dict[str, Any], sender: int, where: ExpertMap) -> tuple[list[Move], list[Move]]:
    """(dispatch, combine) of `ag_rs`: the row to everyone of the dispatch group, partial rows back."""
    out, back = payloads.dispatched_row(scenario, low_latency=False), payloads.combined_row(scenario)
    others = [rank for rank in where.mesh.group(sender, "dispatch") if rank != sender]
    dispatch = [(sender, other, out, "row") for other in others]
    combine = [(other, sender, back, "partial") for other in others]
    return dispatch, combine


def weight_pulls(scenario: dict[str, Any], sender: int, where: ExpertMap) -> list[Move]:
    """`dwdp`: what is not here of any expert, picked or not, comes from the ranks that have a slice of it."""
    pulls: list[Move] = []
    size = payloads.expert_slice(scenario, where.mesh.sizes["etp"])
    for expert in [*range(scenario["model"]["experts"]), *shared_ids(scenario)]:
        owners = where.gpus(expert, sender)
        pulls.extend((owner, sender, size, "weights") for owner in owners if owner != sender)
    return pulls
