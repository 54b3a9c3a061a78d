"""Ulysses and hierarchical CP: every head of the token is walked to the CP rank that computes it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from oracle.payloads import BYTES, DEFAULTS
from oracle.ranks import OracleMesh

Move = tuple[int, int, int, str]


def sharers_of_heads(scenario: dict[str, Any], mesh: OracleMesh) -> int:
    """How many CP ranks divide a token's heads among them."""
    options = scenario.get("mesh", {})
    kind = options.get("kv_exchange", "ring")
    return int({"ulysses": mesh.sizes["cp"], "hierarchical": options.get("cp_inner")}.get(kind, 1))


def inner_group(scenario: dict[str, Any], mesh: OracleMesh, rank: int) -> list[int]:
    """Consecutive CP ranks, as many as share heads, that hold the rank."""
    line, size = mesh.line(rank, "cp"), sharers_of_heads(scenario, mesh)
    runs = [line[start : start + size] for start in range(0, len(line), size)]
    (found,) = [run for run in runs if rank in run]
    return found


def heads_of_tp_rank(scenario: dict[str, Any], tp: int, at: int) -> list[tuple[int, int]]:
    """(query head, the KV head that it reads) of a TP rank; with MLA each head has a KV head of its own."""
    model = scenario["model"]
    kv_heads = model["heads"] if model.get("kv_lora_rank") else model["kv_heads"]
    pairs = [(head, head * kv_heads // model["heads"]) for head in range(model["heads"])]
    share = len(pairs) // tp
    return pairs[at * share : (at + 1) * share]


def dealt(scenario: dict[str, Any], mesh: OracleMesh, rank: int) -> dict[int, list[tuple[int, int]]]:
    """(query head, KV head) pairs of a rank's TP coordinate, by the CP rank that computes them."""
    pairs = heads_of_tp_rank(scenario, mesh.sizes["tp"], mesh.coordinates[rank]["tp"])
    group = inner_group(scenario, mesh, rank)
    share = len(pairs) // len(group)
    return {peer: pairs[place * share : (place + 1) * share] for place, peer in enumerate(group)}


def _widths(scenario: dict[str, Any]) -> tuple[int, int]:
    """Elements of a key (and of a query) and of a value."""
    model = scenario["model"]
    if model.get("kv_lora_rank"):
        return model["qk_nope_head_dim"] + model["qk_rope_head_dim"], model["v_head_dim"]
    return model["head_dim"], model.get("v_head_dim") or model["head_dim"]


def _bytes(scenario: dict[str, Any], what: str) -> int:
    return BYTES[scenario.get("dtype", {}).get(what, DEFAULTS[what])]


def scatter(scenario: dict[str, Any], mesh: OracleMesh, home: int) -> list[Move]:
    """Queries, keys and values of every head that another CP rank computes, added up by link."""
    key, value = _widths(scenario)
    links: Counter[tuple[int, int]] = Counter()
    for rank in mesh.line(home, "tp"):
        for peer, pairs in dealt(scenario, mesh, rank).items():
            if peer == rank:
                continue
            for _ in pairs:
                links[rank, peer] += key * _bytes(scenario, "activations")
            for _ in {kv_head for _, kv_head in pairs}:
                links[rank, peer] += (key + value) * _bytes(scenario, "kv")
    return [(src, dst, size, "query") for (src, dst), size in links.items()]


def gather(scenario: dict[str, Any], mesh: OracleMesh, home: int) -> list[Move]:
    """Outputs of those heads on their way home."""
    _, value = _widths(scenario)
    moves = []
    for rank in mesh.line(home, "tp"):
        for peer, pairs in dealt(scenario, mesh, rank).items():
            if peer != rank:
                moves.append((peer, rank, len(pairs) * value * _bytes(scenario, "activations"), "output"))
    return moves


def ring(scenario: dict[str, Any], mesh: OracleMesh, home: int) -> list[Move]:
    """K/V of each sharer's heads goes round the ranks of the same place in the other inner groups."""
    key, value = _widths(scenario)
    size = sharers_of_heads(scenario, mesh)
    moves = []
    for rank in mesh.line(home, "tp"):
        for peer, pairs in dealt(scenario, mesh, rank).items():
            kv_heads = {kv_head for _, kv_head in pairs}
            each = len(kv_heads) * (key + value) * _bytes(scenario, "kv")
            line = mesh.line(rank, "cp")
            walk = line[line.index(peer) % size :: size]
            at = walk.index(peer)
            for step in range(len(walk) - 1):
                source = walk[(at + step) % len(walk)]
                moves.append((source, walk[(at + step + 1) % len(walk)], each, "kv"))
    return moves
