"""Chapters that weigh one mesh against another: pipeline, swapped axes, SP, weights, NVLink domains."""

from __future__ import annotations

from app.lessons.lesson import Lesson, ask, find_hop
from app.query.address import scenario_of
from layouts.scene.labels import every, gpus, plural, stage_layers_text
from tracer.display import format_bytes
from tracer.model.parameters import expert_bytes, expert_parameters, part_format
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart
from tracer.trip.trip import Trip, take_trip

SIX = {"scenario": "six-cuts"}
SWAPPED = {"scenario": "six-cuts-pp-inside-dp"}
NO_SP = {"scenario": "six-cuts", "mesh.sp": "off"}
ONE_NODE = {
    "scenario": "",
    "name": "one node",
    "model.preset": "gpt-oss-120b",
    "mesh.dp": "4",
    "mesh.ep": "4",
    "cluster.gpus_per_node": "4",
    "token.prompt": "16",
}
WIDE = {"scenario": "six-cuts", "cluster.nodes_per_island": "4"}


def pipeline() -> Lesson:
    """Which GPU of the next stage gets the row."""
    scenario = scenario_of(SIX)
    trip, mesh = take_trip(scenario), scenario.mesh
    hop = find_hop(trip, "pp_send")
    send = trip.hops[hop].transfers[0]
    size = scenario.cluster.gpus_per_nvlink_domain
    read = (
        f"Stage 0 holds {stage_layers_text(scenario, 0)}, stage 1 {stage_layers_text(scenario, 1)}. "
        "After the last layer of a stage the row moves on.",
        f"So far the token made {trip.tallies[hop - 1].comm_ops} comm ops. TP, CP and EP talk in every "
        "layer; PP talks once per stage boundary. That is why it may use the slowest link.",
    )
    question = ask(
        f"{gpus([send.src])} sends the row to the GPU with the same tp, cp and dp in stage 1. Which one?",
        gpus([send.dst]),
        [gpus([send.src + size]), gpus([send.src + 1]), gpus([mesh.stage_size])],
        f"The stride of pp is {mesh.dense.stride_of('pp')}.",
    )
    after = "The squares stay behind: K/V belongs to the layers that wrote it."
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)


def swap() -> Lesson:
    """PP inside DP: one send saved, many crossings added."""
    before, trip = take_trip(scenario_of(SIX)), take_trip(scenario_of(SWAPPED))
    hop = find_hop(trip, "dispatch", 1)
    scenario, stage = trip.scenario, trip.scenario.mesh.stage_size
    node = scenario.cluster.nvlink_domain_of(scenario.home)
    ranks = scenario.mesh.group(scenario.home, "dispatch")
    here = sum(scenario.cluster.nvlink_domain_of(rank) == node for rank in ranks)
    read = (
        f"Put PP before DP in the order, and a stage no longer fills whole nodes: each node holds {here} of "
        f"the {stage} GPUs of both stages, and the pipeline send stays on NVLink.",
        f"With DP inside, this token made {before.log.node_crossings} node crossings: "
        f"{before.log.node_crossings_by_axis['ep']} for experts and "
        f"{before.log.node_crossings_by_axis['pp']} for the pipeline. The experts on each GPU and the "
        "token's picks stay what they were.",
    )
    crossings = trip.log.node_crossings
    question = ask(
        "How many node crossings does the same token make now?",
        crossings,
        [before.log.node_crossings - 1, before.log.node_crossings, before.log.node_crossings + 1],
        f"{trip.log.node_crossings_by_axis['ep']} of them for experts: a stage now spans "
        f"{trip.scenario.cluster.nodes} nodes, so fewer picks are near.",
    )
    after = "One send was saved and every layer pays for it: that is why PP goes outermost."
    return Lesson(SWAPPED, trip, read, question, after, hop - 1, hop)


def without_sp() -> Lesson:
    """Without SP every TP rank dispatches."""
    with_sp, trip = take_trip(scenario_of(SIX)), take_trip(scenario_of(NO_SP))
    hop = find_hop(trip, "dispatch", 1)
    tp = trip.scenario.mesh.tp
    once = with_sp.hops[find_hop(with_sp, "dispatch", 1)]
    read = (
        "Turn SP off. Attention then ends with an all-reduce, for the same bytes, and leaves the whole "
        f"row on {every(tp)} TP ranks.",
        f"With SP, layer 1's dispatch made {plural(len(once.transfers), 'transfer')}, {once.crossings} "
        "of them over InfiniBand.",
    )
    now = trip.hops[hop]
    question = ask(
        "Without SP, how many transfers cross InfiniBand in the same dispatch?",
        now.crossings,
        [once.crossings, now.crossings + 1, now.crossings * 2],
        f"Each of the {tp} TP ranks holds the row and dispatches its own copy, each down its own rail.",
    )
    ratio = ep_bytes(trip) / ep_bytes(with_sp)
    after = (
        f"Over the trip, experts cost {ratio:.3g} times the bytes. Sending each token once is SP's real "
        "job in MoE inference."
    )
    return Lesson(NO_SP, trip, read, question, after, hop - 1, hop)


def ep_bytes(trip: Trip) -> int:
    """Bytes that the EP axis moved."""
    return sum(hop.bytes for hop in trip.filter(axis="ep"))


def weights() -> Lesson:
    """When it pays to move experts instead of tokens (DWDP)."""
    tokens = take_trip(scenario_of(ONE_NODE))
    query = {**ONE_NODE, "mesh.contract": "dwdp"}
    trip = take_trip(scenario_of(query))
    hop = find_hop(trip, "weight_pull")
    pulled = trip.hops[hop].bytes
    layers = trip.scenario.model.moe_layers
    moved = ep_bytes(tokens) / layers
    model = trip.scenario.model
    stored = part_format(model, WeightPart.EXPERTS, WeightFormat(trip.scenario.dtype.weights))
    in_bf16 = pulled // expert_bytes(model) * 2 * expert_parameters(model)
    even = round(pulled / moved, 1 - len(str(round(pulled / moved))) + 1)
    read = (
        "Instead of sending tokens to experts, a GPU can fetch the experts it does not hold, layer by "
        "layer, while it computes. Tokens never leave, and replicas never wait for one another.",
        f"On this node the model has {trip.scenario.model.experts} experts per layer over "
        f"{trip.scenario.mesh.size_of('ep')} GPUs. Dispatch and combine move about "
        f"{format_bytes(moved)} per layer for one token.",
    )
    question = ask(
        "How many bytes of weights does one GPU pull in one layer?",
        format_bytes(pulled),
        [format_bytes(moved), format_bytes(pulled // 1000), format_bytes(pulled * 4)],
        f"Every expert that is not local, picked or not, as this model stores them: in {stored.upper()}. In "
        f"BF16 it would be {format_bytes(in_bf16)}.",
    )
    after = (
        f"By bytes alone that is what about {even:,.0f} tokens would move: weights are fetched for the "
        "whole batch of a GPU, so they pay with many tokens and never with a few decode tokens. And "
        "they want NVLink."
    )
    return Lesson(query, trip, read, question, after, hop - 1, hop)


def dead_work_lesson() -> Lesson:
    """The last layer, for a token that is not the last."""
    scenario = scenario_of(SIX)
    trip = take_trip(scenario)
    dead = [index for index, hop in enumerate(trip.hops) if hop.dead]
    wasted = sum(trip.hops[index].crossings for index in dead)
    read = (
        "Prefill keeps one thing of every token but the last: its K/V. The last layer writes it before "
        "attention.",
        f"Nothing reads this token's row after that: only position {scenario.token.prompt - 1}, the "
        "prompt's last, goes on to the LM head.",
    )
    question = ask(
        f"Of the trip's {trip.log.node_crossings} node crossings, how many serve nothing?",
        wasted,
        [0, 1, wasted + 2],
        f"The last layer's dispatch and combine cross; with its reduce-scatter, {len(dead)} hops are "
        "dead work.",
    )
    after = (
        "Engines run them anyway: leaving tokens out of one layer would save little. With a draft head "
        "that reads every final row, such as EAGLE or MTP, nothing is wasted."
    )
    return Lesson(SIX, trip, read, question, after, dead[0] - 1, dead[-1])


def nvlink_domains() -> Lesson:
    """The same mesh where NVLink joins the nodes."""
    before, trip = take_trip(scenario_of(SIX)), take_trip(scenario_of(WIDE))
    hop = find_hop(trip, "dispatch", 1)
    read = (
        "A node is not the only unit NVLink can join: in a rack-scale machine dozens of GPUs on many "
        "nodes form one NVLink island.",
        f"Take the same mesh and token, {before.log.node_crossings} node crossings, and let one island "
        f"span all {trip.scenario.cluster.nodes} nodes.",
    )
    question = ask(
        "How many crossings are left?",
        trip.log.node_crossings,
        [1, before.log.node_crossings_by_axis["ep"], before.log.node_crossings],
        "Crossings are counted between islands, and there is only one.",
    )
    after = (
        "Nothing needs a relay, and the order of the axes stops mattering for links. On nodes of eight "
        "the rule stays: TP and CP inside a node, EP over the few nodes of a stage, PP outermost."
    )
    return Lesson(WIDE, trip, read, question, after, hop - 1, hop)
