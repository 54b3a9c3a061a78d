"""Chapters about the trip as a whole: six cuts at once, decode, and which cuts for which cluster."""

from __future__ import annotations

from app.lessons.lesson import Lesson, ask, find_hop
from app.query.address import scenario_of
from layouts.scene.labels import gpus
from tracer.display import format_bytes, format_seconds
from tracer.traffic.advise import advise
from tracer.trip.trip import take_trip

SIX = {"scenario": "six-cuts"}
DECODE = {"scenario": "six-cuts-decode"}
REAL = {"scenario": "deepseek-v3-prefill-ep32"}
SMALL = {"scenario": "mixtral-8x7b-ep8"}


def six_cuts() -> Lesson:
    """What each axis cuts, and how far one token gets."""
    scenario = scenario_of(SIX)
    trip, mesh, model = take_trip(scenario), scenario.mesh, scenario.model
    size = {axis: mesh.size_of(axis) for axis in ("tp", "cp", "dp", "pp", "ep")}
    read = (
        f"{mesh.world_size} GPUs on {scenario.cluster.nodes} nodes run one model, cut six ways at once. "
        f"PP {size['pp']} cuts the layers into stages. DP {size['dp']} makes replicas, each with requests "
        f"of its own. CP {size['cp']} cuts a long prompt. TP {size['tp']} cuts heads and matrices, and SP "
        "cuts the tokens between them over the same GPUs.",
        f"EP {size['ep']} cuts the experts, over the same GPUs again: all {mesh.stage_size} of a stage, "
        "whatever replica they serve.",
        f"A token lands on one GPU. In each of {model.layers} layers its row goes to TP peers, its K/V to "
        f"CP partners, copies to {model.top_k} experts and back, and once it changes the stage.",
    )
    touched, home = trip.log.gpus_touched, gpus([scenario.home])
    question = ask(
        f"The token lands on {home}. How many of the {mesh.world_size} GPUs hold a piece of it by the end?",
        touched,
        [mesh.replica_size * size["pp"], mesh.stage_size, mesh.world_size],
        f"They lie on both stages: {trip.log.node_crossings} transfers cross between nodes on the way.",
    )
    after = (
        f"{trip.log.comm_ops} operations move {format_bytes(trip.log.bytes)} for one token. The chapters "
        "that follow take the hops one by one."
    )
    return Lesson(SIX, trip, read, question, after, 0, len(trip.hops) - 1)


def decode_lesson() -> Lesson:
    """In decode the query travels, and the K/V stays."""
    scenario = scenario_of(DECODE)
    trip = take_trip(scenario)
    hop = find_hop(trip, "query_send")
    sends = trip.hops[hop].transfers
    pair = [scenario.home, next(t.src for t in sends if t.src != scenario.home)]
    partners = sorted(t.dst for t in sends)
    context = scenario.position
    read = (
        f"Prefill is over, and position {context} is the first new token. It attends to {context + 1} keys "
        f"and values: its own, and {context} that lie on both CP ranks as prefill left them.",
        "Sending that K/V to the query would cost more the longer the context is, for every token again. "
        f"The query is one row: the heads that a GPU has take {format_bytes(sends[0].bytes)}.",
        "So the query goes out, each rank attends over its own share, and what returns is a partial output "
        "with its maximum and its sum, from which the parts can be joined exactly.",
    )
    question = ask(
        f"{gpus(sorted(pair))} hold the query's heads. Where does it go?",
        gpus(partners),
        [gpus(partners[:1]), gpus([scenario.home]), "to every GPU of the node"],
        "Each to its CP partner with the same tp: that one holds the other positions' K/V of these heads.",
    )
    back = trip.hops[hop + 1].transfers
    after = (
        f"{format_bytes(sum(t.bytes for t in (*sends, *back)))} there and back, whatever the context. "
        "Dispatch changes too: with a token or two an expert, messages go straight to each expert's GPU, "
        "without relays."
    )
    return Lesson(DECODE, trip, read, question, after, hop - 1, hop)


def cluster() -> Lesson:
    """The sources' chart: how large, for what, and what it costs here."""
    scenario = scenario_of(REAL)
    trip, found, first = take_trip(scenario), advise(scenario), advise(scenario, "ttft")
    small = advise(scenario_of(SMALL))
    cost = {choice.name: format_seconds(choice.seconds) for choice in found.choices}
    answers = dict(found.steps)
    hop = find_hop(trip, "dispatch")
    read = (
        f"Which cuts fit which cluster? First: does the model run on one NVLink island? There "
        f"{small.recommended} is the usual choice: everything is near, and no expert waits for tokens.",
        f"Here: {answers['How large is the cluster?']}; {answers['Do the weights fit one?']}. Experts are "
        "spread over the nodes then, and the question is what the model is served for.",
        "Throughput wants many tokens on each expert, and attention without any communication. The first "
        f"token's time wants one prompt shared by several GPUs: {first.recommended}.",
    )
    others = [choice.name for choice in found.choices if choice.name != found.recommended]
    moved = " ".join(
        f"{choice.name} moves {format_bytes(round(choice.nvlink_bytes))} per GPU over NVLink and "
        f"{format_bytes(round(choice.ib_bytes))} over InfiniBand."
        for choice in found.choices
    )
    beside = ", ".join(f"{cost[name]} with {name}" for name in others)
    question = ask(
        "Served for throughput on these nodes, which cuts does the chart name?",
        found.recommended,
        others,
        f"Links take {cost[found.recommended]} a pass; {beside}.",
    )
    after = (
        f"{moved} With fewer GPUs, or an island that spans a rack, the same numbers come out otherwise: try "
        "it on the Mesh page."
    )
    return Lesson(REAL, trip, read, question, after, hop - 1, hop)
