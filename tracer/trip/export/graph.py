"""The trip as a graph: GPUs touched, and every transfer between them; GraphML and DOT text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

    from tracer.trip.trip import Trip

_COLOURS = {"nvlink": "#1f9138", "ib": "#d1410c"}


def to_graph(trip: Trip) -> nx.MultiDiGraph[int]:
    """A networkx multigraph: a node for each GPU touched, an edge for each transfer.

    Nodes carry ``node``, ``local``, ``stage`` and ``home``; edges ``hop``, ``layer``, ``kind``,
    ``bytes``, ``tier`` and ``role``.
    """
    import networkx as nx

    cluster, mesh = trip.scenario.cluster, trip.scenario.mesh
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for rank in trip.touched:
        graph.add_node(
            rank,
            node=cluster.node_of(rank),
            local=cluster.local_index(rank),
            stage=mesh.stage_of(rank),
            home=rank == trip.scenario.home,
        )
    for index, hop in enumerate(trip.hops):
        for src, dst, size, tier, role in hop.transfers:
            graph.add_edge(
                src,
                dst,
                hop=index,
                layer=hop.layer,
                kind=str(hop.kind),
                bytes=size,
                tier=str(tier),
                role=str(role),
            )
    return graph


def to_graphml(trip: Trip) -> str:
    """The graph as GraphML text, which networkx, Gephi and yEd read."""
    import networkx as nx

    return "\n".join(nx.generate_graphml(to_graph(trip))) + "\n"


def to_dot(trip: Trip) -> str:
    """The graph as Graphviz DOT: nodes as clusters, one arrow for each pair and tier, with its hops."""
    cluster = trip.scenario.cluster
    lines = ["digraph trip {", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    by_node: dict[int, list[int]] = {}
    for rank in trip.touched:
        by_node.setdefault(cluster.node_of(rank), []).append(rank)
    for node, ranks in sorted(by_node.items()):
        lines.append(f'  subgraph cluster_{node} {{ label="node {node}";')
        lines += [
            f'    g{rank} [label="GPU {rank}"{", penwidth=3" if rank == trip.scenario.home else ""}];'
            for rank in ranks
        ]
        lines.append("  }")
    pairs: dict[tuple[int, int, str], list[int]] = {}
    for index, hop in enumerate(trip.hops):
        for src, dst, _, tier, _ in hop.transfers:
            pairs.setdefault((src, dst, str(tier)), []).append(index)
    lines += [
        f'  g{src} -> g{dst} [color="{_COLOURS[tier]}", label="{_hops(hops)}"];'
        for (src, dst, tier), hops in pairs.items()
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _hops(hops: list[int]) -> str:
    shown = ", ".join(map(str, hops[:4]))
    return f"hop {shown}" + (f" … +{len(hops) - 4}" if len(hops) > 4 else "")
