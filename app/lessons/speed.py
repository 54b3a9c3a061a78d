"""Chapters about time: grouped GEMM, the roofline, overlap, and when weights should not move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.lessons.costs import ONE_NODE
from app.lessons.lesson import Lesson, ask, find_hop
from app.query.address import scenario_of
from layouts.scene.labels import gpus
from tracer.batch.grouped_gemm import grouped_against_loop
from tracer.display import format_seconds
from tracer.mesh.axes import Axis
from tracer.mesh.hardware import hardware_preset
from tracer.scenario.routing import draw_picks
from tracer.scenario.token import Phase
from tracer.serving.phases import phase_table
from tracer.timing.batch import TimedBatch
from tracer.timing.report import contract_group, time_report
from tracer.timing.roofline import expert_points, expert_roof, ridge
from tracer.timing.weights.crossover import crossover_prompt, crossover_sequences
from tracer.timing.weights.layer import contest
from tracer.trip.clock import LinkRates
from tracer.trip.trip import take_trip

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SIX = {"scenario": "six-cuts"}
DECODE = {"scenario": "six-cuts-decode"}
B200_NODE = {**ONE_NODE, "cluster.hardware": "b200"}
BATCH, PASS, SMALL_PROMPT = 64, 4_096, 1_024
SMS = 132


def grouped() -> Lesson:
    """A loop over experts against one grouped GEMM."""
    scenario = scenario_of(ONE_NODE)
    trip, model = take_trip(scenario), scenario.model
    hop = find_hop(trip, "dispatch")
    target, layer = trip.hops[hop].transfers[0].dst, trip.hops[hop].layer
    held = scenario.placement_of(layer).experts_of(scenario.mesh.coordinates(target)[Axis.EP])
    counts = _rows(scenario, held)
    loop, once = grouped_against_loop(counts, 2 * model.need("expert_hidden", "size a GEMM"), sms=SMS)
    read = (
        f"{gpus([target])} holds {len(held)} experts of the layer. Draw a batch of {BATCH} tokens over the "
        f"node: {sum(counts)} of their picks reach it, from {min(counts)} to "
        f"{max(counts)} rows per expert. Sorted by expert, they lie in one buffer, one run each.",
        f"A loop launches one matmul for each expert that has rows and waits for it: {loop.launches} "
        f"launches. A GPU of {SMS} SMs works in waves of {SMS} tiles of 128 × 128, and a launch of one "
        f"expert fills {loop.fill:.0%} of its last, and only, wave.",
        "A grouped GEMM launches once and deals the tiles of all experts out together, by the runs' offsets.",
    )
    question = ask(
        f"The loop takes {loop.waves} waves. How many does one grouped launch take?",
        once.waves,
        [loop.waves, -(-loop.waves // 2), 1],
        f"{once.tiles:,} tiles over {SMS} SMs, {once.fill:.0%} of them busy throughout.",
    )
    after = (
        f"Neither mends the tiles themselves: of their 128 rows, {once.useful_rows:.1%} hold a token. That "
        "takes more tokens per expert, which is what wide expert parallelism gathers."
    )
    return Lesson(ONE_NODE, trip, read, question, after, hop - 1, hop)


def _rows(scenario: Scenario, held: Sequence[int]) -> list[int]:
    """Rows of each expert in ``held`` when the replicas' first ``BATCH`` tokens have drawn."""
    replicas = scenario.mesh.dp
    tokens = [(number % replicas, number // replicas) for number in range(BATCH)]
    drawn = Counter(
        expert
        for replica, position in tokens
        for picks in draw_picks(scenario.model, 1, seed=scenario.seed, replica=replica, position=position)
        for expert in picks
    )
    return [drawn[expert] for expert in held]


def roofline() -> Lesson:
    """Why a decode step cannot keep the arithmetic busy."""
    scenario = scenario_of(DECODE)
    trip, model = take_trip(scenario), scenario.model
    hardware = hardware_preset(scenario.cluster.hardware or "h100")
    hop = find_hop(trip, "dispatch", 1)
    row = next(each for each in phase_table(scenario).rows if each.axis == Axis.EP)
    tokens = int(row.decode.figures["tokens"])
    point, roof = expert_points(model, hardware, [tokens])[0], expert_roof(model, hardware)
    read = (
        "A matmul reads its weights once, however many rows share them. With M rows of BF16 it does about M "
        f"operations for each byte of weights; a {hardware.name} can do {ridge(hardware):,.0f} in the time "
        "it reads one byte. Below that ridge, memory sets the pace.",
        f"Experts share a batch out. A step of decode brings {tokens} tokens to this stage, top-"
        f"{model.top_k} of {model.experts} experts: {point.load.tokens_per_expert:.3g} tokens for each "
        f"expert that is hit, {point.flops_per_s / 1e12:.3g} of "
        f"{hardware.need('bf16_flops', 'compare') / 1e12:,.0f} TFLOP/s.",
    )
    enough = roof.batch_with_rows or round(roof.batch)
    question = ask(
        "How many tokens per step would make the expert GEMMs bound by arithmetic?",
        enough,
        [tokens * 4, round(roof.tokens_per_expert), enough * 16],
        f"About {roof.tokens_per_expert:,.0f} rows for each of {model.experts} experts, of which a token "
        f"takes {model.top_k}, and the rows' own bytes.",
    )
    after = (
        "No single replica has such a batch in decode. That is why many replicas share one set of experts: "
        "their tokens meet on the same weights."
    )
    return Lesson(DECODE, trip, read, question, after, hop - 1, hop)


def overlap() -> Lesson:
    """Two batches that hide each other's communication, and what the split costs."""
    scenario = scenario_of(SIX)
    report = time_report(scenario, tokens=PASS, rates="peak")
    found = report.overlap
    small = time_report(scenario.with_phase(Phase.DECODE), rates="peak").overlap
    if found is None or small is None:
        raise RuntimeError("the reference trip can be overlapped")
    trip, hop = report.trip, find_hop(report.trip, "dispatch", 1)
    share = found.communication_seconds / (found.communication_seconds + found.compute_seconds)
    read = (
        f"In a pass of {PASS:,} tokens per replica at peak rates, {share:.0%} of a MoE layer's time is "
        "dispatch and combine, and the GPU's arithmetic waits. Dispatch needs attention first, and experts "
        "need dispatch: within one batch there is nothing to do meanwhile.",
        "So cut the batch in two. While one half is dispatched, the other computes; then they change "
        "places. Serving does so with two batches, training with a forward and a backward chunk (DualPipe).",
        f"One after the other, the halves take {format_seconds(found.sequential_seconds)} for four layers; "
        f"side by side {format_seconds(found.seconds)}.",
    )
    question = ask(
        "By how much does throughput grow over four layers?",
        f"{found.gain:+.0%}",
        [f"{found.bound:+.0%}", f"{found.gain / 4:+.0%}", f"{small.gain:+.0%}"],
        f"{format_seconds(found.sequential_seconds)} / {format_seconds(found.seconds)} - 1. If all were "
        f"hidden it would be {found.bound:+.0%}; the first dispatch and the last combine have nothing beside "
        "them.",
    )
    after = (
        f"A split has a price: each half reads all weights again. With decode's few tokens that costs more "
        f"than it hides: {small.gain:+.0%} on the same mesh."
    )
    return Lesson(SIX, trip, read, question, after, hop - 1, hop)


def when_not() -> Lesson:
    """From which prompt length on weights should move, and why never in decode."""
    scenario = scenario_of(B200_NODE)
    query = {**B200_NODE, "mesh.contract": "dwdp"}
    trip = take_trip(scenario_of(query))
    hop = find_hop(trip, "weight_pull")
    hardware = hardware_preset("b200")
    group = contract_group(scenario, hardware, LinkRates.of(scenario.cluster))
    first = None if group is None else crossover_prompt(group)
    if group is None or first is None:
        raise RuntimeError("weights win on this node from some prompt on")
    several = crossover_sequences(group, SMALL_PROMPT)
    short, long = (contest(group, TimedBatch.prompts(length)) for length in (SMALL_PROMPT, PASS))
    read = (
        f"A pull takes as long whatever the batch is. On four {hardware.name}s each GPU fetches three "
        "quarters of a layer's experts while it computes the layer before; if it computes for longer than "
        "that, the pull is hidden, and no GPU waits for another's tokens.",
        f"The pull takes {format_seconds(long.prefetch_seconds)}. With tokens that move, a layer takes "
        f"{format_seconds(short.dep_seconds)} for {SMALL_PROMPT:,} tokens and "
        f"{format_seconds(long.dep_seconds)} for {PASS:,}. Below some length every layer would stall for its "
        "weights; from it on moving weights wins.",
    )
    question = ask(
        "One prompt per GPU: from about how many tokens on is it faster to move the weights?",
        first,
        [first // 64, first // 8, first * 8],
        "There the layer's compute, and the waiting that it spares, outweigh the pull.",
    )
    after = (
        f"A batch helps as well: {several} prompts of {SMALL_PROMPT:,} tokens do. Decode has one new token a "
        "request and never gets there. And over InfiniBand the pull is many times as long: weights move "
        "inside one NVLink island, or not at all."
    )
    return Lesson(query, trip, read, question, after, hop - 1, hop)
