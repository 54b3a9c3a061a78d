"""All-gather, reduce-scatter and all-reduce over the TP group, in every part of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import and_list, every, gpus, plural, times
from layouts.scene.scene import Words
from layouts.words import kinds
from layouts.words.plain import stop_of
from layouts.words.shapes import attention_shapes, hidden_shapes
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Sp, TpAlgo
from tracer.trip.hop import Part

if TYPE_CHECKING:
    from layouts.words.context import Context

STOP = "Attention"
_BLOCKS = {Part.FFN: "dense feed-forward block", Part.SHARED: "shared expert", Part.MOE: "experts"}


def _each(context: Context) -> str:
    """Bytes of a transfer, "each" when there are several."""
    return context.each_bytes + (" each" if len(context.hop.transfers) > 1 else "")


def _ring_note(context: Context) -> str:
    if context.scenario.plan.tp_algo is not TpAlgo.RING or context.size(Axis.TP) < 3:
        return ""
    return f" The ring hands it on rank by rank, in {plural(len(context.peers), 'step')}."


def all_gather(context: Context) -> Words:
    """A row reaches the whole TP group."""
    if context.hop.part is Part.ATTENTION:
        return _gather_for_attention(context)
    if context.hop.part is Part.MOE and context.scenario.plan.sp is Sp.BEFORE_DISPATCH:
        return _restore_copies(context)
    block = _BLOCKS.get(context.hop.part, "block")
    what = (
        f"{gpus([context.home])} sends the token's row {context.row} to {gpus(context.peers)}, "
        f"{_each(context)}.{_ring_note(context)}"
    )
    why = (
        f"The {block} {'are' if block == 'experts' else 'is'} cut over the {context.size('tp')} TP "
        "ranks: every rank holds some columns of the first matrix, and needs the whole row to use them."
    )
    gotcha = "The way back is a reduce-scatter: together they move what one all-reduce would."
    return Words(
        f"All-gather with {gpus(context.peers)}",
        stop_of(context.hop.part),
        what,
        why,
        gotcha,
        hidden_shapes(context, gather=True),
    )


def _gather_for_attention(context: Context) -> Words:
    tp = context.size(Axis.TP)
    heads = kinds.heads_of(context) // tp
    what = (
        f"{gpus([context.home])} sends the token's row {context.row} to {gpus(context.peers)}: "
        f"{_each(context)}.{_ring_note(context)} Each of the {tp} TP ranks then projects the row onto "
        f"its own {plural(heads, 'query head')} and writes {kinds.written(context)}."
    )
    why = (
        "Outside attention each token lives whole on one GPU; inside, tensor parallelism cuts by "
        "heads, and every head needs every token of the group."
    )
    return Words(
        f"All-gather with {gpus(context.peers)}",
        STOP,
        what,
        why,
        kinds.head_gotcha(context),
        attention_shapes(context),
    )


def _restore_copies(context: Context) -> Words:
    what = (
        f"{gpus([context.home])} sends the finished row to {gpus(context.peers)}, {_each(context)}: "
        f"after it {every(context.size('tp'))} TP ranks hold the whole row again."
    )
    why = (
        "Without Megatron's SP the next attention block expects the row on every TP rank, but only one "
        "of them took it to the experts."
    )
    gotcha = (
        "Splitting just before dispatch saves the copies that plain TP would send, yet keeps the "
        "all-reduce: with this all-gather, half as many bytes again as Megatron's SP."
    )
    return Words(f"All-gather back to {gpus(context.peers)}", "Experts", what, why, gotcha)


def reduce_scatter(context: Context) -> Words:
    """Partial rows are summed at home."""
    peers = gpus(context.peers)
    verb = "sends its" if len(context.peers) == 1 else "send their"
    what = (
        f"{peers} {verb} partial row to {gpus([context.home])}, {_each(context)}, and "
        f"{gpus([context.home])} adds its own: the token is whole again, on one GPU."
    )
    if context.scenario.plan.tp_algo is TpAlgo.RING and context.size(Axis.TP) > 2:
        what = (
            f"One running sum walks the TP ring to {gpus([context.home])}, {context.each_bytes} a step, "
            f"{plural(len(context.hop.transfers), 'step')}: the token is whole again, on one GPU."
        )
    return Words(
        f"Reduce-scatter to {gpus([context.home])}",
        stop_of(context.hop.part),
        what,
        _why_sum(context),
        _scatter_gotcha(context),
        hidden_shapes(context, gather=False),
    )


def _why_sum(context: Context) -> str:
    if context.hop.part is Part.EMBEDDING:
        return (
            "The embedding table is cut by vocabulary: the rank whose slice has the token's id found "
            "its row, the others hold zeros, and the sum is the row."
        )
    if context.hop.part is Part.ATTENTION:
        return (
            "Each rank's output projection holds only its heads' rows, so each has a share of every "
            "element of the row. Only the sum means anything."
        )
    block = _BLOCKS.get(context.hop.part, "block")
    verb = "are" if block == "experts" else "is"
    return (
        f"The {block} {verb} cut over TP, so each rank ends with a share of the row; only the sum means "
        "anything."
    )


def _scatter_gotcha(context: Context) -> str:
    if context.hop.part is Part.ATTENTION and context.model.moe_layers:
        return (
            "From here the token lives on one GPU and will be dispatched once, not "
            f"{times(context.size('tp'))}: that is what SP does for experts. It costs no extra bytes, "
            "since an all-reduce is a reduce-scatter followed by an all-gather."
        )
    return "SP adds no bytes: an all-reduce is a reduce-scatter followed by an all-gather."


def all_reduce(context: Context) -> Words:
    """Without SP: partial rows are summed, and every TP rank gets the sum."""
    home = gpus([context.home])
    count = len(context.hop.transfers)
    what = (
        f"{gpus(context.tp_group)} sum their partial rows, and each of them ends with the whole row: "
        f"{plural(count, 'transfer')} of {context.each_bytes}, drawn as a sum at {home} and "
        f"{'a copy' if count == 2 else 'copies'} back. One comm op."
    )
    gotcha = (
        f"{every(context.size('tp')).capitalize()} TP ranks now do the same norms on the same row: SP "
        "would cut that work for the same bytes."
    )
    if context.scenario.plan.sp is Sp.OFF and context.model.moe_layers:
        gotcha = (
            f"The row is on {context.size('tp')} GPUs ({and_list([str(r) for r in context.tp_group])}), "
            "and each will dispatch its own copy to the experts: SP would send one."
        )
    title, stop = f"All-reduce with {gpus(context.peers)}", stop_of(context.hop.part)
    return Words(title, stop, what, _why_sum(context), gotcha)
