"""The chapter about sharded weights: what a weight goes through in one forward pass."""

from __future__ import annotations

from app.lessons.lesson import Lesson, ask, find_hop
from app.query.address import scenario_of
from layouts.scene.labels import gpus
from tracer.display import format_bytes
from tracer.memory.shard_units import UnitKind, shard_unit
from tracer.trip.trip import take_trip

FSDP = {
    "scenario": "",
    "name": "FSDP over one node",
    "model.preset": "llama-3.1-8b",
    "mesh.dp": "8",
    "mesh.weight_shard": "fsdp",
    "cluster.hardware": "h100",
    "token.prompt": "16",
}


def weights_trip() -> Lesson:
    """Kept in pieces, gathered, used, dropped (FSDP, ZeRO-3)."""
    scenario = scenario_of(FSDP)
    trip = take_trip(scenario)
    hop = find_hop(trip, "weight_gather", 1)
    unit = shard_unit(scenario, scenario.home, UnitKind.LAYER, 1)
    ranks = len(unit.group)
    others = [rank for rank in unit.group if rank != scenario.home]
    read = (
        f"Eight data-parallel GPUs could hold eight copies of a layer, {format_bytes(unit.bytes)} each. FSDP "
        f"cuts the layer in {ranks} pieces instead: each GPU keeps {format_bytes(unit.piece_bytes)} of it.",
        "No GPU can multiply with a piece. Just before the layer runs, all pieces come together on every "
        "GPU; after it, what was gathered is dropped. The token itself stays where it is.",
    )
    question = ask(
        f"The token is on {gpus([scenario.home])}. What must arrive there before layer 1 can run?",
        format_bytes(unit.gathered_bytes),
        [
            format_bytes(unit.bytes),
            format_bytes(unit.piece_bytes),
            format_bytes(unit.piece_bytes * ranks * ranks),
        ],
        f"{ranks - 1} of {ranks} pieces, one from each of {gpus(others)}; its own it has.",
    )
    after = (
        f"Over all layers {format_bytes(trip.log.weight_bytes)} of weights arrive for this token, and "
        f"{format_bytes(trip.log.bytes)} of the token's own move. The gathers are the same for a full "
        "batch, which is why training shares them among thousands of tokens, and why they are tallied apart."
    )
    return Lesson(FSDP, trip, read, question, after, hop - 1, hop)
