"""The trip as Mermaid text: a flowchart of who talks to whom, or a sequence of every transfer.

Renderers refuse more than 500 edges or 50,000 characters (Mermaid's ``maxEdges`` and ``maxTextSize``),
so a trip over many GPUs is drawn node to node.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.trip.hop import WEIGHT_KINDS
from tracer.trip.log import log_line

if TYPE_CHECKING:
    from tracer.trip.trip import Trip

MAX_EDGES = 500
MAX_CHARACTERS = 50_000
MAX_GPUS_DRAWN = 100

Edges = Counter[tuple[int, int, str]]


def to_mermaid(trip: Trip) -> str:
    """A flowchart of the trip, GPU to GPU up to 100 GPUs touched, else node to node.

    Raises:
        ConfigError: when even the node view is over Mermaid's limits.
    """
    edges = _edges(trip)
    by_gpu = len(trip.touched) <= MAX_GPUS_DRAWN and len(edges) <= MAX_EDGES
    lines = _gpu_lines(trip, edges) if by_gpu else _node_lines(trip, edges)
    return _within_limits(["flowchart LR", _comment(trip), *lines])


def to_mermaid_sequence(trip: Trip) -> str:
    """A sequence diagram: one lifeline for each GPU touched, one message for each transfer, by hop.

    Raises:
        ConfigError: when the trip is over Mermaid's limits.
    """
    lines = [f"  participant g{rank} as GPU {rank}" for rank in trip.touched]
    for index, hop in enumerate(trip.hops):
        if not hop.transfers or hop.kind in WEIGHT_KINDS:
            continue
        where = f"layer {hop.layer} {hop.kind}" if hop.layer else str(hop.kind)
        lines.append(f"  Note over g{hop.transfers[0].src}: {index}. {where}")
        lines += [
            f"  g{t.src}{'--)' if t.tier == 'ib' else '->>'}g{t.dst}: {t.role} {t.bytes:,} B"
            for t in hop.transfers
        ]
    return _within_limits(["sequenceDiagram", _comment(trip), *lines])


def _comment(trip: Trip) -> str:
    return f"  %% {log_line(trip.log, trip.scenario.cluster.domain_word, trip.scenario.plan.weights_word)}"


def _within_limits(lines: list[str]) -> str:
    """The lines as text, unless a renderer would refuse it."""
    text = "\n".join(lines) + "\n"
    arrows = sum(text.count(arrow) for arrow in ("-->", "-.->", "->>", "--)"))
    if arrows > MAX_EDGES or len(text) > MAX_CHARACTERS:
        raise ConfigError(
            "export",
            f"{arrows} arrows, {len(text):,} characters",
            f"is over Mermaid's limits of {MAX_EDGES} arrows and {MAX_CHARACTERS:,} characters",
            "export to .svg or .json instead",
        )
    return text


def _edges(trip: Trip) -> Edges:
    """How often each (source, destination, tier) carried the token."""
    return Counter(
        (transfer.src, transfer.dst, str(transfer.tier))
        for hop in trip.hops
        if hop.kind not in WEIGHT_KINDS
        for transfer in hop.transfers
    )


def _arrow(tier: str, times: int) -> str:
    return f"{'-.->' if tier == 'ib' else '-->'}|{'IB' if tier == 'ib' else 'NVLink'} ×{times}|"


def _gpu_lines(trip: Trip, edges: Edges) -> list[str]:
    cluster = trip.scenario.cluster
    by_node: dict[int, list[int]] = {}
    for rank in trip.touched:
        by_node.setdefault(cluster.node_of(rank), []).append(rank)
    lines = []
    for node, ranks in sorted(by_node.items()):
        lines.append(f'  subgraph n{node}["node {node}"]')
        lines += [f'    g{rank}["GPU {rank}"]' for rank in ranks]
        lines.append("  end")
    lines += [f"  g{a} {_arrow(tier, times)} g{b}" for (a, b, tier), times in edges.items()]
    return [*lines, f"  style g{trip.scenario.home} stroke-width:3px"]


def _node_lines(trip: Trip, edges: Edges) -> list[str]:
    cluster = trip.scenario.cluster
    merged: Edges = Counter()
    for (a, b, tier), times in edges.items():
        merged[cluster.node_of(a), cluster.node_of(b), tier] += times
    counts = Counter(cluster.node_of(rank) for rank in trip.touched)
    lines = [f'  n{node}["node {node}<br/>{count} GPUs touched"]' for node, count in sorted(counts.items())]
    return lines + [f"  n{a} {_arrow(tier, times)} n{b}" for (a, b, tier), times in merged.items()]
