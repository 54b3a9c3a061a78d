"""Where ranks sit: nodes, islands, rails, tiers, tables and the graph."""

from __future__ import annotations

import networkx as nx

from tracer.mesh.cluster import Cluster, Tier


def test_islands_of_several_nodes_share_nvlink_and_rails() -> None:
    cluster = Cluster(world_size=144, gpus_per_node=4, nodes_per_island=18)
    assert (
        cluster.nodes,
        cluster.nvlink_domains,
        cluster.gpus_per_nvlink_domain,
        cluster.domain_word,
    ) == (
        36,
        2,
        72,
        "island",
    )
    assert cluster.tier(0, 71) is Tier.NVLINK
    assert cluster.tier(71, 72) is Tier.IB
    assert cluster.rank_at(1, cluster.index_in_nvlink_domain(5)) == 77


def test_a_table_moves_ranks_and_its_inverse_finds_them() -> None:
    table = tuple((rank % 4, rank // 4) for rank in range(32))
    cluster = Cluster(world_size=32, gpus_per_node=8, nodes=4, placement=table)
    for rank in range(32):
        assert cluster.rank_at(cluster.nvlink_domain_of(rank), cluster.index_in_nvlink_domain(rank)) == rank
    assert cluster.tier(0, 4) is Tier.NVLINK
    assert cluster.tier(0, 1) is Tier.IB


def test_a_partly_empty_last_node_has_no_rank_to_relay() -> None:
    cluster = Cluster(world_size=12, gpus_per_node=8)
    assert cluster.nodes == 2
    assert cluster.rank_at(1, 3) == 11
    assert cluster.rank_at(1, 4) is None


def test_graph_joins_an_island_by_nvswitch_and_a_rail_by_its_switch() -> None:
    graph = Cluster(world_size=32, gpus_per_node=8).graph()
    assert nx.is_connected(graph)
    assert nx.shortest_path(graph, 11, 13) == [11, "nvswitch 1", 13]
    assert nx.shortest_path(graph, 11, 3) == [11, "rail 3", 3]
    assert graph.edges[11, "rail 3"] == {"tier": "ib", "bytes_per_s": 50e9, "latency_s": 0.0}
    assert {graph.nodes[rank]["rail"] for rank in graph["rail 3"]} == {3}
