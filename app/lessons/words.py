"""Chapter 0: the words that all chapters use, on the smallest mesh that has every one of them."""

from __future__ import annotations

from app.lessons.lesson import Lesson, ask, find_hop
from app.query.address import scenario_of
from layouts.scene.labels import gpus
from tracer.display import format_bytes
from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.trip.trip import take_trip

SMALLEST = {
    "scenario": "",
    "name": "two of each",
    "model.layers": "2",
    "model.hidden": "1024",
    "model.heads": "8",
    "model.kv_heads": "2",
    "model.head_dim": "128",
    "model.experts": "8",
    "model.top_k": "2",
    "model.expert_hidden": "512",
    "model.vocab": "32000",
    "mesh.tp": "2",
    "mesh.cp": "2",
    "mesh.dp": "2",
    "mesh.pp": "2",
    "mesh.ep": "8",
    "cluster.gpus_per_node": "8",
    "token.prompt": "16",
}
SENDERS = (Axis.TP, Axis.CP, Axis.EP, Axis.PP)


def words() -> Lesson:
    """Rank, row, TP, CP, DP, PP, EP, SP, K/V: each in a sentence, each on the map."""
    scenario = scenario_of(SMALLEST)
    trip, mesh, model = take_trip(scenario), scenario.mesh, scenario.model
    group = {axis: gpus(sorted(mesh.group(scenario.home, axis))) for axis in (*SENDERS, Axis.DP)}
    hop = find_hop(trip, "all_gather")
    row = model.need("hidden", "size a row") * BYTES[scenario.dtype.activations]
    read = (
        f"A large model runs on many GPUs at once. Here are {mesh.world_size}, numbered from 0: the number "
        f"is a GPU's rank. The {scenario.cluster.gpus_per_node} GPUs of one machine, a node, are joined by "
        "NVLink; nodes are joined by InfiniBand, which is slower.",
        f"The model works on tokens. Between its layers a token is a row: {model.hidden:,} numbers, "
        f"{format_bytes(row)}. What attention keeps of a token, so that later ones can look back at it, are "
        "its keys and values: K/V.",
        f"TP, tensor parallelism, splits heads and matrices: {group[Axis.TP]} share this token's. CP, "
        f"context parallelism, splits a long prompt: {group[Axis.CP]} hold parts of it. DP, data "
        f"parallelism, makes replicas with requests of their own: {group[Axis.DP]} have the same place in "
        "each.",
        f"PP, pipeline parallelism, splits the layers into stages: {group[Axis.PP]}. EP, expert parallelism, "
        f"spreads the experts of a layer over a stage: {group[Axis.EP]}. SP, sequence parallelism, gives "
        "each TP rank its own tokens outside of attention, so that a row is on one GPU there.",
    )
    silent = [axis for axis in (*SENDERS, Axis.DP) if not any(each.axis == axis for each in trip.hops)]
    if silent != [Axis.DP]:
        raise RuntimeError("on this mesh every axis but DP sends")
    question = ask(
        "Play the trip: its hops are named by the axis they travel on. On which axis does nothing travel?",
        "DP",
        [axis.upper() for axis in SENDERS],
        "Replicas serve different requests, and in inference they have nothing to tell each other: only "
        "training adds their gradients up.",
    )
    after = (
        f"The other axes made {trip.log.comm_ops} comm ops for {model.layers} layers: a comm op is what one "
        "group sends at one time. The chapters that follow take them one by one."
    )
    return Lesson(SMALLEST, trip, read, question, after, 0, hop)
