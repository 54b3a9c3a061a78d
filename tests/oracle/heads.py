"""Ulysses and hierarchical CP: every head of the token is walked to the CP rank that computes it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from oracle import kinds
from oracle.payloads import BYTES, DEFAULTS
from oracle.ranks import OracleMesh

Move = tuple[int, int, int, str]


def sharers_of_heads(scenario: dict[str, Any], mesh: OracleMesh) -> int:
    """How many CP ranks divide a token's heads among them."""
    options = scenario.get("mesh", {})
    kind = options.get("kv_exchange", "ring")
    return int({"ulysses": mesh.sizes["cp"], "hierarchical": options.get("cp_inner")}.get(kind, 1))


def inner_group(mesh: OracleMesh, rank: int, sharers: int) -> list[int]:
    """Consecutive CP ranks, as many as share heads, that hold the rank."""
    line = mesh.line(rank, "cp")
    runs = [line[start : start + sharers] for start in range(0, len(line), sharers)]
    (found,) = [run for run in runs if rank in run]
    return found


def heads_of_tp_rank(table: dict[str, Any], tp: int, at: int) -> list[tuple[int, int]]:
    """(query head, the KV head that it reads) of a TP rank; with MLA each head has a KV head of its own."""
    kv_heads = table["heads"] if table.get("kv_lora_rank") else table["kv_heads"]
    pairs = [(head, head * kv_heads // table["heads"]) for head in range(table["heads"])]
    share = len(pairs) // tp
    return pairs[at * share : (at + 1) * share]


def dealt(
    mesh: OracleMesh, rank: int, table: dict[str, Any], sharers: int
) -> dict[int, list[tuple[int, int]]]:
    """(query head, KV head) pairs of a rank's TP coordinate, by the CP rank that computes them."""
    pairs = heads_of_tp_rank(table, mesh.sizes["tp"], mesh.coordinates[rank]["tp"])
    group = inner_group(mesh, rank, sharers)
    share = len(pairs) // len(group)
    return {peer: pairs[place * share : (place + 1) * share] for place, peer in enumerate(group)}


def _widths(table: dict[str, Any]) -> tuple[int, int]:
    """Elements of a key (and of a query) and of a value."""
    if table.get("kv_lora_rank"):
        return table["qk_nope_head_dim"] + table["qk_rope_head_dim"], table["v_head_dim"]
    return table["head_dim"], table.get("v_head_dim") or table["head_dim"]


def _bytes(scenario: dict[str, Any], what: str) -> int:
    return BYTES[scenario.get("dtype", {}).get(what, DEFAULTS[what])]


def _state_heads(table: dict[str, Any], mesh: OracleMesh) -> tuple[int, int]:
    """(elements to a CP rank, elements back) of a mixer whose heads all CP ranks share."""
    of = mesh.sizes["tp"] * mesh.sizes["cp"]
    every = table["heads"] if table["type"] in ("mamba", "mamba2") else table["value_heads"]
    return kinds.projected(table, every // of, of)


def scatter(
    scenario: dict[str, Any], mesh: OracleMesh, home: int, table: dict[str, Any], sharers: int
) -> list[Move]:
    """Queries, keys and values of every head that another CP rank computes, added up by link."""
    links: Counter[tuple[int, int]] = Counter()
    act, kv = _bytes(scenario, "activations"), _bytes(scenario, "kv")
    for rank in mesh.line(home, "tp"):
        if kinds.keeps_state(table):
            for peer in inner_group(mesh, rank, sharers):
                if peer != rank:
                    links[rank, peer] += _state_heads(table, mesh)[0] * act
            continue
        key, value = _widths(table)
        for peer, pairs in dealt(mesh, rank, table, sharers).items():
            if peer == rank:
                continue
            for _ in pairs:
                links[rank, peer] += key * act
            if not table.get("shared_kv"):
                for _ in {kv_head for _, kv_head in pairs}:
                    links[rank, peer] += (key + value) * kv
    return [(src, dst, size, "query") for (src, dst), size in links.items()]


def gather(
    scenario: dict[str, Any], mesh: OracleMesh, home: int, table: dict[str, Any], sharers: int
) -> list[Move]:
    """Outputs of those heads on their way home."""
    moves = []
    act = _bytes(scenario, "activations")
    for rank in mesh.line(home, "tp"):
        for peer in inner_group(mesh, rank, sharers):
            if peer == rank:
                continue
            if kinds.keeps_state(table):
                moves.append((peer, rank, _state_heads(table, mesh)[1] * act, "output"))
            else:
                pairs = dealt(mesh, rank, table, sharers)[peer]
                moves.append((peer, rank, len(pairs) * _widths(table)[1] * act, "output"))
    return moves


def ring(scenario: dict[str, Any], mesh: OracleMesh, home: int, table: dict[str, Any]) -> list[Move]:
    """K/V of each sharer's heads goes round the ranks of the same place in the other inner groups."""
    key, value = _widths(table)
    size = sharers_of_heads(scenario, mesh)
    moves = []
    for rank in mesh.line(home, "tp"):
        for peer, pairs in dealt(mesh, rank, table, size).items():
            kv_heads = {kv_head for _, kv_head in pairs}
            each = len(kv_heads) * (key + value) * _bytes(scenario, "kv")
            line = mesh.line(rank, "cp")
            walk = line[line.index(peer) % size :: size]
            at = walk.index(peer)
            for step in range(len(walk) - 1):
                source = walk[(at + step) % len(walk)]
                moves.append((source, walk[(at + step + 1) % len(walk)], each, "kv"))
    return moves
