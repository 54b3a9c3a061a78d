"""Dispatch, combine and weight pulls, under every MoE contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import and_list, gpus, plural
from layouts.scene.scene import Words
from tracer.display import format_bytes
from tracer.mesh.axes import Axis
from tracer.mesh.cluster import Tier
from tracer.model.dtype import BYTES
from tracer.scenario.plan import Contract, DispatchMode
from tracer.trip.hop import Part
from tracer.trip.hops.routes import routes

if TYPE_CHECKING:
    from layouts.words.context import Context
    from tracer.trip.hops.routes import Route

STOP = "Experts"
FEW = 3


def dispatch(context: Context) -> Words:
    """Copies of the row go to the experts' GPUs."""
    if context.scenario.plan.contract is Contract.AG_RS:
        return _ag_dispatch(context)
    count = len(context.picks)
    title = f"Dispatch to {plural(count, 'expert')}"
    why = (
        f"Experts are spread over {plural(context.size('ep'), 'EP rank')} of the stage, so the row goes "
        f"to the GPUs that hold the {count} its router picked."
    )
    if context.scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
        return Words(title, STOP, _low_latency_moves(context), why, _low_latency_gotcha(context))
    what = f"The router picked {_experts(context.picks)}. {_route_sentences(context)}"
    return Words(title, STOP, what, why, _dispatch_gotcha(context))


def _experts(picks: tuple[int, ...]) -> str:
    names = [f"{expert:,}" for expert in sorted(picks)]
    return f"expert {names[0]}" if len(names) == 1 else f"experts {and_list(names)}"


def _route_sentences(context: Context) -> str:
    """Where the copies of the first source go; other sources do the same."""
    source = context.sources[0] if context.home not in context.sources else context.home
    found = routes(context.scenario, context.where, source)
    held = context.experts_by_rank(source)
    sentences = [_own_nvlink_domain(context, source, held)]
    sentences += [_remote(context, route, held) for route in found if route.relay is not None][:FEW]
    sentences += [_straight(context, route) for route in found if route.fallback][:FEW]
    more = sum(route.relay is not None for route in found) - FEW
    if more > 0:
        sentences.append(f"The same for {plural(more, f'more {context.domain_word}')}.")
    if len(context.sources) > 1:
        sentences.append(
            f"Each of the {len(context.sources)} TP ranks that hold the row sends its own copies."
        )
    return " ".join(sentence for sentence in sentences if sentence)


def _own_nvlink_domain(context: Context, source: int, held: dict[int, list[int]]) -> str:
    nvlink_domain = context.nvlink_domain(source)
    near = [rank for rank in held if context.nvlink_domain(rank) == nvlink_domain and rank != source]
    parts = []
    if source in held:
        parts.append(f"{_named(held[source])} on {gpus([source])} itself: nothing moves for that.")
    if len(near) == 1:
        parts.append(f"{_named(held[near[0]])} one NVLink hop away on {gpus(near)}.")
    elif near:
        count = sum(len(held[rank]) for rank in near)
        which = "All of them" if count == len(context.picks) else f"{count} of them"
        parts.append(
            f"{which} are on {gpus(sorted(near))} of the same {context.domain_word}: one NVLink copy a GPU."
        )
    return " ".join(parts)


def _named(experts: list[int]) -> str:
    verb = "is" if len(experts) == 1 else "are"
    return f"{_experts(tuple(experts)).capitalize()} {verb}"


def _remote(context: Context, route: Route, held: dict[int, list[int]]) -> str:
    relay = route.relay if route.relay is not None else route.source
    experts = [expert for rank in route.gpus for expert in held[rank]]
    away = f"{_named(experts)} on {context.domain_word} {context.nvlink_domain(relay):,}"
    onward = sorted(rank for rank in route.gpus if rank != relay)
    if not onward:
        return f"{away}, on {gpus([relay])} itself: one copy crosses InfiniBand, down the rail."
    keeps = " keeps it and" if relay in route.gpus else ""
    return (
        f"{away}: one copy crosses to {gpus([relay])}, which has the same index and so the same rail; "
        f"it{keeps} forwards over NVLink to {gpus(onward)}."
    )


def _straight(context: Context, route: Route) -> str:
    return (
        f"{gpus(sorted(route.gpus))} cannot be reached through a relay: no GPU there has the sender's "
        "index and is in its dispatch group, so copies go straight over InfiniBand."
    )


def _dispatch_gotcha(context: Context) -> str:
    parts = []
    if not context.hop.transfers:
        parts.append(
            "Nothing of this token moves, but the all-to-all still runs for every other token: it "
            "counts as a comm op."
        )
    dtype = context.scenario.dtype
    if dtype.dispatch != dtype.combine:
        hidden = context.model.need("hidden", "size a row")
        parts.append(
            f"Rows leave in {dtype.dispatch.upper()}, scales included, and come back in "
            f"{dtype.combine.upper()}: {format_bytes(hidden * BYTES[dtype.combine])} a copy."
        )
    parts.append(_dedup(context))
    return " ".join(parts)


def _dedup(context: Context) -> str:
    """What the relay saved in this hop, or would save."""
    word = context.domain_word
    source = context.sources[0] if context.home not in context.sources else context.home
    held = context.experts_by_rank(source)
    remote = sum(
        len(e) for rank, e in held.items() if context.nvlink_domain(rank) != context.nvlink_domain(source)
    )
    crossings = sum(t.tier is Tier.IB and t.src == source for t in context.hop.transfers)
    if remote > crossings > 0:
        crossing = plural(crossings, "copy crosses and fans out", "copies cross and fan out")
        return (
            f"{remote} picks are on other {word}s, but only {crossing} behind the relay. Low-latency "
            "decode kernels pay for each pick."
        )
    return (
        f"Two experts on one remote {word} would still cost one crossing: the relay fans out. "
        "Low-latency decode kernels skip the relay and pay for each."
    )


def _low_latency_moves(context: Context) -> str:
    count = len(context.hop.transfers)
    crossing = context.hop.crossings
    return (
        f"The router picked {_experts(context.picks)}. One message goes straight to each picked expert "
        f"that is not at home: {plural(count, 'message')} of {context.each_bytes}, {crossing} over "
        "InfiniBand. No relay, no merging of copies."
    )


def _low_latency_gotcha(context: Context) -> str:
    return (
        "Two experts on one GPU cost two messages. With a handful of tokens the links are idle and "
        "latency is what counts, so the shortest way wins over the fewest bytes."
    )


def _ag_dispatch(context: Context) -> Words:
    group = context.size(Axis.ETP) * context.size(Axis.EP)
    crossing = context.hop.crossings
    return Words(
        f"All-gather rows over {plural(group, 'GPU')}",
        STOP,
        "The row goes to every other GPU of the dispatch group, whether an expert there was picked or "
        f"not: {plural(len(context.hop.transfers), 'transfer')} of {context.each_bytes}, {crossing} "
        "over InfiniBand.",
        "This contract replaces the all-to-all with two plain collectives: an all-gather before the "
        "experts and a reduce-scatter after. It needs no special kernels.",
        f"It moves {group - 1} copies of each row where routing alone would need at most "
        f"{len(context.picks)}: fine for small groups on NVLink, dear over InfiniBand.",
    )


def combine(context: Context) -> Words:
    """Weighted expert outputs come home and are summed on the way."""
    home = gpus([context.home])
    if context.scenario.plan.contract is Contract.AG_RS:
        return Words(
            f"Reduce-scatter to {home}",
            STOP,
            "Every GPU of the group returns its partial row, zeros included: "
            f"{plural(len(context.hop.transfers), 'transfer')} of {context.each_bytes}.",
            "A reduce-scatter sums what each GPU's experts made of the row.",
            "GPUs that ran no expert for this token send zeros all the same.",
        )
    what = _combine_moves(context, home)
    why = (
        f"The layer's output is the weighted sum of the {plural(len(context.picks), 'picked expert')}; "
        "each GPU weighs and sums its own experts' outputs before it sends."
    )
    return Words(f"Combine on {home}", STOP, what, why, _combine_gotcha(context))


def _combine_moves(context: Context, home: str) -> str:
    hop = context.hop
    if not hop.transfers:
        return f"Every picked expert is on {home}: the outputs are summed where they are."
    if context.scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
        return (
            f"Each expert's output comes straight back: {plural(len(hop.transfers), 'message')} of "
            f"{context.each_bytes}, {hop.crossings} over InfiniBand."
        )
    relays = sorted({t.src for t in hop.transfers if t.role == "sum"})
    direct = sorted({t.src for t in hop.transfers if t.role == "result" and t.dst in context.sources})
    parts = []
    if direct:
        verb = "returns its result" if len(direct) == 1 else "return their results"
        parts.append(f"{gpus(direct)} {verb} straight.")
    if relays:
        verb, its = ("sums", "its") if len(relays) == 1 else ("sum", "their")
        parts.append(
            f"{gpus(relays)} {verb} {its} {context.domain_word}'s results, and one copy crosses back "
            "down the rail."
        )
    homes = gpus(context.sources)
    ends = "adds the pieces" if len(context.sources) == 1 else "each add the pieces"
    return " ".join([*parts, f"{homes} {ends}: {context.each_bytes} a copy."])


def _combine_gotcha(context: Context) -> str:
    if context.scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
        return "Nothing is summed on the way: as many messages come back as went out."
    dtype = context.scenario.dtype
    same = dtype.dispatch == dtype.combine
    base = "Combine mirrors dispatch copy for copy" + (
        "."
        if same
        else f", but in {dtype.combine.upper()}, not {dtype.dispatch.upper()}: more bytes return than left."
    )
    if context.size(Axis.DP) == 1:
        return base
    return (
        base + " All replicas wait here for the slowest: even an idle one has to take part with dummy tokens."
    )


_UNITS = {
    Part.EMBEDDING: "the embedding",
    Part.ATTENTION: "the layer's weights",
    Part.MOE: "the layer's experts",
    Part.HEAD: "the last norm and the LM head",
}


def weight_gather(context: Context) -> Words:
    """Sharded weights come together before they are used (FSDP, ZeRO-3)."""
    moves = context.hop.transfers
    runners, owners = sorted({t.dst for t in moves}), {t.src for t in moves}
    unit = _UNITS.get(context.hop.part, "weights")
    return Words(
        f"Gather {unit} on {gpus(runners or [context.home])}",
        STOP if context.hop.part is Part.MOE else "Weights",
        f"{format_bytes(context.hop.bytes)} of {unit} arrive from {plural(len(owners), 'GPU')}, tallied "
        "apart from the token's own bytes.",
        "Data-parallel ranks would hold copies of the same weights. Each keeps one piece instead, and all "
        "pieces come together just before the weights are used.",
        "The bytes are the same for one token as for a full batch: many tokens must share a gather. After "
        "use the copy is dropped"
        + (", or kept for backward, as here." if context.scenario.plan.weight_keep else "."),
    )


def weight_pull(context: Context) -> Words:
    """DWDP: weights come to the token."""
    pulled = context.hop.bytes
    pullers = sorted({t.dst for t in context.hop.transfers}) or [context.home]
    crosses = context.hop.crosses
    gotcha = (
        "Every expert that is not local is pulled, picked or not, once a layer whatever the prompt's "
        "length: it pays only when there are many tokens to share it."
    )
    if crosses:
        gotcha = (
            f"The group spans {context.domain_word}s, so weights cross InfiniBand: far more than tokens "
            f"would. {gotcha}"
        )
    return Words(
        f"Pull experts to {gpus(pullers)}",
        STOP,
        f"The token stays. {gpus(pullers)} pulls the experts it does not hold from "
        f"{plural(len({t.src for t in context.hop.transfers}), 'owner')}: {format_bytes(pulled)} of "
        "weights, tallied apart from the token's own bytes.",
        "Weights move instead of tokens, so replicas never wait for each other at the experts: no "
        "collective, no comm op.",
        gotcha,
    )
