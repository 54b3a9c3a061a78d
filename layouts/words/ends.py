"""Where a trip starts, changes stage, and ends: landing, pipeline send, LM head."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from layouts.scene.labels import every, gpus, stage_layers_text
from layouts.scene.scene import Words
from tracer.mesh.axes import Axis
from tracer.scenario.plan import ChunkOrder, Contract, Embedding
from tracer.trip.hops.moves import row_holders

if TYPE_CHECKING:
    from layouts.words.context import Context


def land(context: Context) -> Words:
    """The cuts that put the token on its first GPU."""
    holders = row_holders(context.scenario, context.scenario.home)
    new = context.scenario.decodes
    cuts = (
        (_dp(context), _new_cp(context), _new_tp(context))
        if new
        else (_dp(context), _cp(context), _tp(context))
    )
    position, prompt = context.scenario.position, context.scenario.token.prompt
    said = "" if context.scenario.token.text is None else f", {context.scenario.token.text!r},"
    start = f"Position {position:,}{said} of a prompt of {prompt:,} starts on {gpus(holders)}."
    if new:
        place = f"position {position:,} after a prompt of {prompt:,}"
        start = f"A new token{said or ','} {place}, starts on {gpus(holders)}."
    steps = [step for step in cuts if step]
    why = "The embedding lookup is local: every GPU of the first stage has the whole table."
    if context.scenario.plan.embedding is Embedding.VOCAB_PARALLEL:
        why = "The embedding table is cut by vocabulary over the TP ranks: the row is summed next."
    if new:
        why += " The new token's K/V will be kept where it starts."
    return Words(f"Land on {gpus(holders)}", "Landing", " ".join([start, *steps]), why, _land_gotcha(context))


def _dp(context: Context) -> str:
    if context.size(Axis.DP) == 1:
        return ""
    replica = list(context.scenario.mesh.group(context.scenario.home, "replica"))
    return f"DP: the load balancer picked replica {context.scenario.replica} ({gpus(replica)})."


def _cp(context: Context) -> str:
    cp, landing = context.size(Axis.CP), context.scenario.landing
    if cp == 1:
        return ""
    rank = context.scenario.mesh.dense.coordinate(context.scenario.home, Axis.CP)
    if not landing.zigzag:
        return f"CP: the prompt is cut in {cp} runs of {landing.padded // cp:,}; this is run {rank}."
    return (
        f"CP: zigzag cuts the prompt in {2 * cp} chunks of {landing.padded // (2 * cp):,}; CP rank "
        f"{rank} owns chunks {rank} and {2 * cp - 1 - rank}."
    )


def _tp(context: Context) -> str:
    tp = context.size(Axis.TP)
    if tp == 1:
        return ""
    if not context.splits_tokens:
        return f"TP: without SP, {every(tp)} TP ranks hold the whole row."
    rank = context.scenario.mesh.dense.coordinate(context.scenario.home, Axis.TP)
    rows = context.scenario.landing.tokens_per_rank
    return f"SP: each of the {tp} TP ranks takes {rows:,} whole tokens, this one as TP rank {rank}."


def _new_cp(context: Context) -> str:
    cp = context.size(Axis.CP)
    if cp == 1:
        return ""
    rank = context.scenario.mesh.dense.coordinate(context.scenario.home, Axis.CP)
    return (
        f"CP: new tokens go to the {cp} CP ranks in turn, so that no K/V cache grows alone; this "
        f"one to rank {rank}."
    )


def _new_tp(context: Context) -> str:
    tp = context.size(Axis.TP)
    if tp == 1:
        return ""
    if not context.splits_tokens:
        return _tp(context)
    rank = context.scenario.mesh.dense.coordinate(context.scenario.home, Axis.TP)
    return f"SP: the batch's new tokens are cut over the {tp} TP ranks; this one is on TP rank {rank}."


def _land_gotcha(context: Context) -> str:
    if context.scenario.decodes:
        return (
            "Each step of decode makes one token a request: with so few rows, latency and memory decide, not "
            "compute."
        )
    if context.size(Axis.CP) > 1 and context.scenario.landing.zigzag:
        return (
            "RoPE and the causal mask use the position in the prompt, not the row's index on this GPU. "
            "Zigzag is why every CP rank has equal causal work: an early chunk is paired with a late "
            "one."
        )
    meets = context.size(Axis.EP) > 1 and context.scenario.plan.contract is not Contract.DWDP
    if context.size(Axis.DP) > 1 and context.model.moe_layers and meets:
        return (
            "Replicas are independent in attention only: they share one set of experts, so they meet "
            "in every MoE layer, and the slowest sets the pace."
        )
    return "RoPE and the causal mask use the position in the prompt, not the row's index on this GPU."


def pp_send(context: Context) -> Words:
    """The row goes to the same place of the next stage."""
    hop, scenario = context.hop, context.scenario
    ends = [t.dst for t in hop.transfers]
    crosses = hop.crosses
    rails = "its own rail" if len(ends) == 1 else "their own rails"
    link = f"InfiniBand, down {rails}" if crosses else "NVLink"
    same_rail = all(
        scenario.cluster.index_in_nvlink_domain(t.src) == scenario.cluster.index_in_nvlink_domain(t.dst)
        for t in hop.transfers
    )
    if crosses and not same_rail:
        link = "InfiniBand, off its rail"
    each = " each" if len(ends) > 1 else ""
    copies = f"{len(ends)} copies of the row, one a TP rank," if len(ends) > 1 else "The row"
    onward = scenario.mesh.stage_of(ends[0])
    what = (
        f"{_done_text(context)} is done. {copies} "
        f"{'go' if len(ends) > 1 else 'goes'} to {gpus(ends)} over {link}: {context.each_bytes}{each}. "
        "K/V stays behind, with its layers."
    )
    why = (
        f"Stage {onward} holds {stage_layers_text(scenario, onward)}. The receiver has "
        "the same dp, cp and tp coordinates: only pp changes."
    )
    return Words(f"Send to stage {onward}", "Pipeline", what, why, _pp_gotcha(context, crosses=crosses))


def _done_text(context: Context) -> str:
    """What the row leaves: a stage, or one of its chunks with the chunk's layers."""
    hop, scenario = context.hop, context.scenario
    if len(scenario.chunks) == scenario.mesh.stages:
        return f"Stage {hop.stage} ({stage_layers_text(scenario, hop.stage)})"
    own = [chunk.layers for chunk in scenario.chunks if chunk.stage == hop.stage]
    number, layers = next((n, run) for n, run in enumerate(own, 1) if run.stop - 1 == hop.layer)
    if not layers:
        span = "no layers"
    elif len(layers) == 1:
        span = f"layer {hop.layer}"
    else:
        span = f"layers {layers.start}–{hop.layer}"
    return f"Chunk {number} of {len(own)} on stage {hop.stage} ({span})"


def _pp_gotcha(context: Context, *, crosses: bool) -> str:
    chunks = context.scenario.plan.chunks
    if chunks > 1:
        return _chunks_gotcha(context, chunks)
    if not crosses:
        return (
            f"PP stays inside a {context.domain_word} here. That saves one send per stage boundary, but "
            f"spreads each stage over more {context.domain_word}s: experts then pay more, in every "
            "layer."
        )
    if not context.splits_tokens:
        return "Without SP every TP rank sends its own copy of the same row."
    return (
        "PP talks once per stage boundary; TP, CP and EP talk in every layer, and DP sends nothing in "
        "inference. That is why the slowest link is given to PP."
    )


def _chunks_gotcha(context: Context, chunks: int) -> str:
    """What virtual stages cost in sends, and what they are for."""
    scenario = context.scenario
    stages = scenario.mesh.stages
    sends = sum(here.stage != next_.stage for here, next_ in pairwise(scenario.chunks))
    there = scenario.plan.chunk_order is ChunkOrder.V_SHAPE
    way = "there and back, and turns at the last stage without a send" if there else f"round {chunks} times"
    return (
        f"Each stage holds {chunks} chunks of layers, so the token goes {way}: {sends} sends in all, where "
        f"whole stages would need {stages - 1}. In training that shortens the wait while the pipeline fills."
    )


def head_copy(context: Context) -> Words:
    """The last row reaches every slice of the LM head."""
    tp = context.size(Axis.TP)
    vocab = context.model.need("vocab", "size the logits")
    return Words(
        f"Copy the row to {gpus(context.peers)}",
        "Leaving",
        f"{gpus([context.home])} sends the final row {context.row} to {gpus(context.peers)}, "
        f"{context.each_bytes}{' each' if len(context.peers) > 1 else ''}.",
        f"The LM head is cut by vocabulary: each of the {tp} TP ranks computes {-(-vocab // tp):,} of "
        f"{vocab:,} logits.",
        "Every new token comes here: the next is sampled from its row."
        if context.scenario.decodes
        else "Only the prompt's last position comes here, unless prompt logprobs are asked for.",
    )


def logits_gather(context: Context) -> Words:
    """Slices of the logits are gathered where the next token is sampled."""
    each = " each" if len(context.peers) > 1 else ""
    before = "" if context.splits_tokens else " Without SP each rank already held the final row."
    return Words(
        f"Gather logits on {gpus([context.home])}",
        "Leaving",
        f"{gpus(context.peers)} {'sends its' if len(context.peers) == 1 else 'send their'} slice of the "
        f"logits to {gpus([context.home])}, {context.each_bytes}{each}.{before}",
        "The next token is sampled from the whole vocabulary.",
        f"Logits travel in {context.scenario.dtype.logits.upper()}, since sampling compares close values.",
    )
