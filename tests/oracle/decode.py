"""Decode: where a new token lands, and whether its query travels or K/V does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from oracle.ranks import OracleMesh


def rows_of_tp_ranks(scenario: dict[str, Any], tp: int) -> list[list[int]]:
    """Slots of the batch on each TP rank; padding is -1."""
    batch = scenario.get("token", {}).get("batch", tp)
    rows = list(range(batch))
    while len(rows) % tp:
        rows.append(-1)
    run = len(rows) // tp
    return [rows[rank * run : (rank + 1) * run] for rank in range(tp)]


def cp_rank_of(scenario: dict[str, Any], mesh: OracleMesh, prompt: int, position: int) -> int:
    """New tokens go round the CP ranks, the first of them to `first_cp`."""
    cp_rank = scenario.get("token", {}).get("first_cp", 0) % mesh.sizes["cp"]
    for _ in range(prompt, position):
        cp_rank = 0 if cp_rank + 1 == mesh.sizes["cp"] else cp_rank + 1
    return cp_rank


def new_token_home(scenario: dict[str, Any], mesh: OracleMesh) -> tuple[int, int]:
    """(home rank in stage 0, position) of the new token that the scenario follows."""
    token = scenario.get("token", {})
    prompt = token.get("prompt", 16 * mesh.sizes["cp"] * mesh.sizes["tp"])
    gpu, position = token.get("gpu"), token.get("position")
    if gpu is not None:
        if position is None:
            position = prompt
            while cp_rank_of(scenario, mesh, prompt, position) != mesh.coordinates[gpu]["cp"]:
                position += 1
        return gpu, position
    position = prompt if position is None else position
    slot = token.get("slot", 0)
    cp_rank = cp_rank_of(scenario, mesh, prompt, position)
    for tp_rank, slots in enumerate(rows_of_tp_ranks(scenario, mesh.sizes["tp"])):
        if slot in slots:
            return mesh.rank_with(0, pp=0, dp=token.get("replica", 0), cp=cp_rank, tp=tp_rank), position
    raise AssertionError(f"slot {slot} lands nowhere")


def query_travels(scenario: dict[str, Any], position: int) -> bool:
    """Pass-Q, unless K/V is asked for or the published rule finds K/V the smaller load; always with dcp."""
    mesh = scenario.get("mesh", {})
    said = mesh.get("decode_attention", "pass_q")
    if said != "auto":
        return bool(said == "pass_q")
    if mesh.get("dcp", 1) > 1:
        return True
    model = scenario["model"]
    if model.get("kv_lora_rank"):
        ratio = Fraction(1, model["heads"])
    else:
        key, value = model["head_dim"], model.get("v_head_dim") or model["head_dim"]
        ratio = Fraction(model["kv_heads"] * (key + value), model["heads"] * key)
    return Fraction(1, 1 + position) <= ratio
