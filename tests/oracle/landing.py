"""Which position of the prompt lands on which (cp, tp), by laying the whole prompt out."""

from __future__ import annotations

from typing import Any

from oracle.decode import new_token_home
from oracle.ranks import OracleMesh


def prompt_length(scenario: dict[str, Any], mesh: OracleMesh) -> int:
    """Tokens of the prompt, before padding."""
    return int(scenario.get("token", {}).get("prompt", 16 * mesh.sizes["cp"] * mesh.sizes["tp"]))


def landing_table(scenario: dict[str, Any], mesh: OracleMesh) -> dict[tuple[int, int], list[int]]:
    """(cp, tp) -> the real positions it holds, in the order it holds them (padding left out)."""
    cp, tp = mesh.sizes["cp"], mesh.sizes["tp"]
    length = prompt_length(scenario, mesh)
    multiple = tp if cp == 1 else 2 * cp * tp
    padded = list(range(length))
    while len(padded) % multiple:
        padded.append(-1 - len(padded) + length)
    zigzag = cp > 1 and scenario.get("mesh", {}).get("landing", "zigzag") == "zigzag"
    pieces = 2 * cp if zigzag else cp
    size = len(padded) // pieces
    chunks = [padded[piece * size : (piece + 1) * size] for piece in range(pieces)]
    table = {}
    for cp_rank in range(cp):
        owned = chunks[cp_rank] + chunks[2 * cp - 1 - cp_rank] if zigzag else chunks[cp_rank]
        run = len(owned) // tp
        for tp_rank in range(tp):
            held = owned[tp_rank * run : (tp_rank + 1) * run]
            table[cp_rank, tp_rank] = [position for position in held if position >= 0]
    return table


def cp_of_rows(scenario: dict[str, Any], mesh: OracleMesh) -> list[int]:
    """The CP rank of each row of the prompt in order, padding as if it were more prompt."""
    length, multiple = prompt_length(scenario, mesh), 2 * mesh.sizes["cp"] * mesh.sizes["tp"]
    while length % (mesh.sizes["tp"] if mesh.sizes["cp"] == 1 else multiple):
        length += 1
    table = landing_table({**scenario, "token": {"prompt": length}}, mesh)
    held = {position: cp for (cp, _), rows in table.items() for position in rows}
    return [held[position] for position in range(length)]


def token_home(scenario: dict[str, Any], mesh: OracleMesh) -> tuple[int, int]:
    """(home rank in stage 0, position) of the token the scenario follows."""
    if scenario.get("phase") == "decode":
        return new_token_home(scenario, mesh)
    token = scenario.get("token", {})
    table = landing_table(scenario, mesh)
    gpu = token.get("gpu")
    if gpu is not None:
        where = mesh.coordinates[gpu]
        return gpu, min(table[where["cp"], where["tp"]])
    position = token.get("position", 0)
    for (cp_rank, tp_rank), held in table.items():
        if position in held:
            home = mesh.rank_with(0, pp=0, dp=token.get("replica", 0), cp=cp_rank, tp=tp_rank)
            return home, position
    raise AssertionError(f"position {position} lands nowhere")
