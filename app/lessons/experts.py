"""Chapters about experts: one block, relays, de-duplication, replicas, a real deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.lessons.lesson import Lesson, ask, find_hop
from app.query.address import scenario_of
from layouts.scene.labels import and_list, gpus, plural
from tracer.display import format_bytes
from tracer.mesh.axes import Axis
from tracer.mesh.cluster import Tier
from tracer.trip.trip import take_trip

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SIX = {"scenario": "six-cuts"}
ONE_NODE = {
    "scenario": "",
    "name": "one node",
    "model.preset": "mixtral-8x7b",
    "mesh.dp": "8",
    "mesh.ep": "8",
    "token.replica": "2",
}
REAL = {"scenario": "deepseek-v3-prefill-ep32"}


def _named(experts: tuple[int, ...]) -> str:
    return and_list([str(expert) for expert in sorted(experts)])


def _slots(scenario: Scenario, layer: int) -> int:
    """Experts of a layer that one GPU holds, replicas counted."""
    return scenario.placement_of(layer).slots_on(0)


def one_block() -> Lesson:
    """Eight experts on eight GPUs of one node."""
    scenario = scenario_of(ONE_NODE)
    trip, model = take_trip(scenario), scenario.model
    hop = find_hop(trip, "dispatch")
    picks = scenario.layer_picks()[trip.hops[hop].layer]
    targets = sorted(t.dst for t in trip.hops[hop].transfers)
    read = (
        f"A mixture-of-experts block replaces one feed-forward network by {model.experts} smaller ones, "
        "its experts, and a router: a small matrix that scores each expert for each token. The "
        f"{model.top_k} with the best scores run, and their outputs are added with the scores as "
        "weights.",
        f"Spread the experts over the {scenario.mesh.world_size} GPUs of a node, one each, and most "
        "picks live elsewhere: the token's row has to go there, and the result has to come back.",
        "Attention is cut by requests here: each GPU is a replica of its own, and this token is on "
        f"{gpus([scenario.home])}.",
    )
    wrong = [n for n in range(len(picks) + 2) if n != len(targets)]
    question = ask(
        f"The router picks experts {_named(picks)}, and GPU g holds expert g. How many copies of the "
        f"row leave {gpus([scenario.home])}?",
        len(targets),
        wrong,
        f"One to each GPU that holds a picked expert, none for an expert at home: {gpus(targets)}."
        if targets
        else "Every picked expert is at home.",
    )
    after = (
        "Each GPU with work computes its expert's output and sends it back: that is the combine, the "
        f"next hop. Two hops per layer, {plural(model.moe_layers, 'layer')}: {trip.log.comm_ops} comm "
        "ops, all over NVLink."
    )
    return Lesson(ONE_NODE, trip, read, question, after, hop - 1, hop)


def relay() -> Lesson:
    """One copy crosses, on its own rail."""
    scenario = scenario_of(SIX)
    trip = take_trip(scenario)
    hop = find_hop(trip, "dispatch", 1)
    crossing = next(t for t in trip.hops[hop].transfers if t.tier is Tier.IB)
    forwarded = next(t for t in trip.hops[hop].transfers if t.src == crossing.dst)
    picks = scenario.layer_picks()[1]
    cluster = scenario.cluster
    read = (
        f"The router picks experts {_named(picks)}. One is on this node, on the other side of NVLink. "
        f"The other is on {gpus([forwarded.dst])}, on another node.",
        "Every GPU has a network card of its own, and cards with the same index share a rail: a switch "
        "of their own. Along a rail, a copy arrives at the card of the GPU with the sender's index.",
        "So a copy goes straight down the rail to that GPU, the relay. NVLink does the rest.",
    )
    node = cluster.nvlink_domain_of(crossing.dst) * cluster.gpus_per_nvlink_domain
    question = ask(
        f"{gpus([scenario.home])} has index {cluster.index_in_nvlink_domain(scenario.home)} on its node. "
        f"Which GPU of {cluster.domain_word} {cluster.nvlink_domain_of(crossing.dst)} gets the copy "
        "that crosses?",
        gpus([crossing.dst]),
        [gpus([forwarded.dst]), gpus([node]), gpus([node + cluster.gpus_per_nvlink_domain - 1])],
        "Same index, same rail. It is the relay, even when it holds none of the picked experts.",
    )
    after = f"It forwards the row over NVLink to {gpus([forwarded.dst])}. On the way back it sums first."
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)


def dedup() -> Lesson:
    """Two picks on one remote node."""
    scenario = scenario_of(SIX)
    trip = take_trip(scenario)
    layer = 4
    hop = find_hop(trip, "dispatch", layer)
    picks = scenario.layer_picks()[layer]
    ends = sorted(t.dst for t in trip.hops[hop].transfers if t.role == "forward")
    read = (
        f"In layer {layer} the router picks experts {_named(picks)}: on {gpus(ends)}, both on the other "
        "node of the stage.",
        "InfiniBand is the slow link here: "
        f"{scenario.cluster.nvlink.bytes_per_s / scenario.cluster.ib.bytes_per_s:.0f} times slower than "
        "NVLink, one direction, for each GPU.",
    )
    question = ask(
        "How many copies cross InfiniBand?",
        trip.hops[hop].crossings,
        [0, 1, 2, 3],
        "One: the relay makes the second copy, over NVLink.",
    )
    after = (
        "On the way back the relay sums both results, and one copy crosses again. Kernels for decode "
        f"give this up: they send {len(picks)} messages straight, because with few tokens latency "
        "counts, not bytes."
    )
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)


def replicas() -> Lesson:
    """Attention has replicas, experts do not."""
    scenario = scenario_of(SIX)
    trip, mesh = take_trip(scenario), scenario.mesh
    hop = find_hop(trip, "dispatch", 3)
    dp = mesh.dp
    group = mesh.group(scenario.home, Axis.EP)
    model = scenario.model
    read = (
        f"The tints on the map are the {dp} replicas: each serves a request of its own and never talks "
        "to the others about attention.",
        f"The experts are not copied. The {model.experts} experts of a layer lie over {gpus(group)}: "
        f"the whole stage, {_slots(scenario, 3)} on each GPU.",
    )
    question = ask(
        "In a MoE layer, how many replicas' tokens can reach one expert?",
        dp,
        [1, 2, dp * 2],
        f"All {dp}: they share one set of experts, so each layer is a rendezvous.",
    )
    after = (
        "The slowest replica sets the pace for the stage, and an idle one still has to run with dummy "
        "tokens, or the others would wait for it for ever. That is why load balancers even out "
        "attention work."
    )
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)


def real() -> Lesson:
    """DeepSeek's prefill unit."""
    scenario = scenario_of(REAL)
    trip, model = take_trip(scenario), scenario.model
    hop = find_hop(trip, "dispatch")
    picks = scenario.layer_picks()[trip.hops[hop].layer]
    slots = _slots(scenario, trip.hops[hop].layer)
    remote = {scenario.cluster.nvlink_domain_of(t.dst) for t in trip.hops[hop].transfers if t.tier is Tier.IB}
    read = (
        "No one deploys six cuts at once. DeepSeek prefills with attention "
        f"DP{scenario.mesh.size_of('dp')} and EP{scenario.mesh.size_of('ep')} on "
        f"{scenario.cluster.nodes} nodes: {model.experts} routed experts in {slots} slots on each GPU (the "
        f"busiest experts have a second one), {model.top_k} picked for each token.",
        "Attention needs no communication here. TP could cut MLA's heads, but what is cached is one latent "
        "for all heads: every TP rank would keep a copy of it.",
        f"The router limits itself: the picks of one token come from at most {model.top_groups} groups "
        "of experts.",
    )
    question = ask(
        f"In layer {trip.hops[hop].layer} the router picks {len(picks)} experts: {_named(picks)}. How "
        "many copies cross InfiniBand?",
        len(remote),
        [len(remote) + 1, max(0, len(remote) - 1), len(picks)],
        f"One to each of {plural(len(remote), 'remote node')}, however many experts it holds there.",
    )
    after = (
        f"Rows leave in FP8 and return in BF16. Over {plural(model.moe_layers, 'MoE layer')}: "
        f"{trip.log.node_crossings} crossings and {format_bytes(trip.log.bytes)} for one token, all of "
        "it EP."
    )
    return Lesson(REAL, trip, read, question, after, hop - 1, hop)
