"""Chapters about the prompt: landing, zigzag, layouts, K/V, and the sum after attention."""

from __future__ import annotations

from dataclasses import replace

from app.lessons.lesson import Lesson, ask, find_hop
from app.query.address import scenario_of
from layouts.scene.labels import and_list, gpus
from tracer.display import format_bytes
from tracer.mesh.axes import Axis
from tracer.trip.trip import take_trip

SIX = {"scenario": "six-cuts"}


def landing() -> Lesson:
    """Which of DP, CP and SP decides what."""
    scenario = scenario_of(SIX)
    trip, mesh, token = take_trip(scenario), scenario.mesh, scenario.token
    replica = list(mesh.group(scenario.home, "replica"))
    others = [rank for rank in replica if rank != scenario.home]
    read = (
        f"{mesh.world_size} GPUs serve {mesh.size_of('dp')} requests at once: each of the "
        f"{mesh.size_of('dp')} replicas is {len(replica)} GPUs wide in the first stage.",
        "Three cuts put a token on one GPU before anything is computed. DP picks the replica: here "
        f"replica {scenario.replica}, {gpus(replica)}. CP cuts the prompt of {token.prompt} over "
        f"{mesh.size_of('cp')} ranks, in zigzag chunks. SP cuts each rank's tokens over its "
        f"{mesh.size_of('tp')} TP ranks.",
        f"The rank is tp + {mesh.dense.stride_of('cp')}·cp + {mesh.dense.stride_of('dp')}·dp + "
        f"{mesh.dense.stride_of('pp')}·pp: neighbours in TP are neighbours on the node.",
    )
    # Not the token that the map shows: its GPU is lit.
    other = scenario.with_(
        token=replace(token, replica=(scenario.replica + 1) % mesh.dp, position=0, gpu=None)
    )
    found = mesh.coordinates(other.home)
    question = ask(
        f"The map shows this token's GPU. Another token has dp {found['dp']}, cp {found['cp']}, tp "
        f"{found['tp']}, pp 0. Which GPU is that?",
        gpus([other.home]),
        [gpus([rank]) for rank in (scenario.home, other.home + 1, *others)],
        f"{found['tp']} + {mesh.dense.stride_of('cp')}·{found['cp']} + "
        f"{mesh.dense.stride_of('dp')}·{found['dp']} = {other.home}.",
    )
    after = "Landing moves nothing: the request was sent there, and the embedding lookup is local."
    return Lesson(SIX, trip, read, question, after, 0, 0)


def zigzag_lesson() -> Lesson:
    """Why chunks are dealt from both ends."""
    scenario = scenario_of(SIX)
    cp, plan = scenario.mesh.cp, scenario.landing
    rank = scenario.mesh.dense.coordinate(scenario.home, Axis.CP)
    chunks = [rank, 2 * cp - 1 - rank]
    work = [2 * chunk + 1 for chunk in range(2 * cp)]
    read = (
        "With a causal mask, a late token attends to more keys than an early one. Cut the prompt in "
        "equal runs and the rank with the last run does most of the work.",
        "Count in half chunks: chunk i attends to i whole chunks before it and half of itself. So the "
        f"{2 * cp} chunks of {plan.padded // (2 * cp)} tokens cost {and_list([str(n) for n in work])}.",
        f"Zigzag deals them from both ends: CP rank r gets chunk r and chunk {2 * cp - 1} − r.",
    )
    contiguous = f"{2 * rank} and {2 * rank + 1}"
    question = ask(
        f"{gpus([scenario.home])} has CP rank {rank}. Which chunks does it own?",
        f"{chunks[0]} and {chunks[1]}",
        [contiguous, "0 and 1", f"0 and {2 * cp - 1}"],
        f"They cost {work[chunks[0]]} + {work[chunks[1]]} = {work[chunks[0]] + work[chunks[1]]}, as "
        "much as every other rank's pair.",
    )
    runs = [f"{run[0]}–{run[-1]}" for tp in range(2) for run in plan.positions_on(rank, tp)]
    after = (
        f"Its positions are {and_list(runs)}. "
        "RoPE and the mask still use these positions, not the row's index."
    )
    return Lesson(SIX, take_trip(scenario), read, question, after, 0, 0)


def layouts() -> Lesson:
    """Two layouts alternate around attention."""
    scenario = scenario_of(SIX)
    trip, tp = take_trip(scenario), scenario.mesh.tp
    hop = find_hop(trip, "all_gather")
    peers = [t.dst for t in trip.hops[hop].transfers]
    rows = scenario.landing.tokens_per_rank
    heads = scenario.model.need("heads", "split attention")
    read = (
        f"Outside attention each GPU holds {rows} whole tokens: norms and routers work on a token alone.",
        f"Inside attention, heads are split: each of the {tp} TP ranks runs {heads // tp} of {heads} "
        f"heads, and a head needs the tokens of the whole group. So each rank must see {rows * tp} "
        f"tokens, not {rows}.",
    )
    cp = [rank for rank in scenario.mesh.group(scenario.home, Axis.CP) if rank != scenario.home]
    dp = [rank for rank in scenario.mesh.group(scenario.home, Axis.DP) if rank != scenario.home]
    question = ask(
        f"The first hop gathers rows. Where does {gpus([scenario.home])} send its row?",
        gpus(peers),
        [gpus(cp), gpus(dp), "every GPU of the node"],
        "TP ranks split the heads of the same tokens; CP ranks hold other tokens, DP ranks other requests.",
    )
    after = (
        f"It costs {format_bytes(trip.tallies[hop].bytes)} for this token, over NVLink: TP stays inside "
        "a node."
    )
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)


def kv_exchange_lesson() -> Lesson:
    """What moves between CP ranks."""
    scenario = scenario_of(SIX)
    trip, model = take_trip(scenario), scenario.model
    hop = find_hop(trip, "kv_exchange")
    partners = sorted({t.dst for t in trip.hops[hop].transfers})
    heads, kv_heads = model.need("heads", "compare"), model.need("kv_heads", "compare")
    read = (
        "The other CP rank has queries that need this token's keys and values, and the other way "
        "round. Something has to travel: queries, or K/V.",
        f"With grouped-query attention, {heads // kv_heads} query heads share one KV head: K and V "
        f"together are {2 * kv_heads} heads against {heads} for the queries.",
    )
    peers = [rank for rank in scenario.mesh.group(scenario.home, Axis.TP) if rank != scenario.home]
    question = ask(
        f"{gpus(scenario.mesh.group(scenario.home, 'tp'))} hold half of the heads each. Which GPUs get "
        "a copy of the token's K/V?",
        gpus(partners),
        [gpus(partners[:1]), gpus(peers), "all GPUs of the stage"],
        "Each TP rank sends to its CP partner: the rank with the same tp, so the same heads.",
    )
    moved = trip.tallies[hop].bytes - trip.tallies[hop - 1].bytes
    after = (
        f"{format_bytes(moved)} in all. The squares are the K/V: filled where it stays, outlined where "
        "it was borrowed. It is all that outlives prefill."
    )
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)


def merge_lesson() -> Lesson:
    """Reduce-scatter, and why not an all-reduce."""
    scenario = scenario_of(SIX)
    trip = take_trip(scenario)
    hop = find_hop(trip, "reduce_scatter")
    group = list(scenario.mesh.group(scenario.home, Axis.TP))
    read = (
        "Each TP rank multiplies its heads by its rows of the output projection. Every rank now has a "
        "share of every element of the token's row; only the sum means anything.",
        "An all-reduce would leave the sum on every rank. A reduce-scatter leaves each token's sum on one.",
    )
    question = ask(
        "After the reduce-scatter, which GPUs hold the token's whole row?",
        gpus([scenario.home]),
        [gpus(group), gpus([rank for rank in group if rank != scenario.home]), "none: each has half"],
        "It goes back to the GPU that owns the token outside attention.",
    )
    after = (
        "An all-reduce is a reduce-scatter and then an all-gather: SP only moves the second half to "
        "just before the next attention, and in between each token is on one GPU, ready to be "
        "dispatched once."
    )
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)
