"""What the tp and cp hops move: (src, dst, bytes, role) in the order it happens."""

from __future__ import annotations

from itertools import pairwise

from oracle.ranks import OracleMesh

Move = tuple[int, int, int, str]


def gather(line: list[int], home: int, size: int, ring: bool, role: str = "row") -> list[Move]:
    """The home's row reaches every other rank of the line."""
    if ring:
        walk = _walk(line, home)
        return [(walk[step], walk[step + 1], size, role) for step in range(len(line) - 1)]
    return [(home, peer, size, role) for peer in line if peer != home]


def scatter(line: list[int], home: int, size: int, ring: bool) -> list[Move]:
    """Every other rank's partial row reaches the home."""
    if ring:
        walk = [*_walk(line, home)[1:], home]
        return [(walk[step], walk[step + 1], size, "partial") for step in range(len(line) - 1)]
    return [(peer, home, size, "partial") for peer in line if peer != home]


def reduce_everywhere(line: list[int], home: int, size: int, ring: bool) -> list[Move]:
    """Partial rows to the home, then the sum from it to everyone."""
    return scatter(line, home, size, ring) + gather(line, home, size, ring)


def kv_exchange(mesh: OracleMesh, home: int, size: int, ring: bool, steps: int) -> list[Move]:
    """Each TP rank's K/V reaches the CP ranks that share its tp; a ring may stop after some steps."""
    moves: list[Move] = []
    for holder in mesh.line(home, "tp"):
        found = gather(mesh.line(holder, "cp"), holder, size, ring, role="kv")
        moves += found[:steps] if ring else found
    return moves


def hand_on(mesh: OracleMesh, home: int, walk: list[int], size: int) -> list[Move]:
    """Each TP rank's part of the state goes along a walk of CP coordinates."""
    moves: list[Move] = []
    for holder in mesh.line(home, "tp"):
        line = mesh.line(holder, "cp")
        for here, there in pairwise(walk):
            if here != there:
                moves.append((line[here], line[there], size, "state"))
    return moves


def ask_the_keepers(
    mesh: OracleMesh, home: int, dcp: int, query: int, partial: int
) -> tuple[list[Move], list[Move]]:
    """(queries out, partial outputs back): each TP rank asks all who keep other tokens of its K/V heads."""
    out: list[Move] = []
    back: list[Move] = []
    for asker in mesh.line(home, "tp"):
        team = mesh.coordinates[asker]["tp"] // dcp
        for keeper in mesh.group(home, "replica"):
            if keeper != asker and mesh.coordinates[keeper]["tp"] // dcp == team:
                out.append((asker, keeper, query, "query"))
                back.append((keeper, asker, partial, "output"))
    return out, back


def _walk(line: list[int], start: int) -> list[int]:
    """The ring, from `start` once round, `start` itself only at the beginning."""
    first = line.index(start)
    return [line[(first + step) % len(line)] for step in range(len(line))]
