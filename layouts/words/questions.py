"""A question about each hop, asked before it is shown; the hop itself is the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from layouts.scene.labels import and_list, gpus, plural
from layouts.scene.scene import Question
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Contract
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from layouts.words.context import Context

MAX_OPTIONS = 4


def question_about(context: Context) -> Question | None:
    """What a reader can work out from the map before the hop is shown, if anything."""
    asker = _ASKERS.get(context.hop.kind)
    return asker(context) if asker else None


def _question(ask: str, answer: str, wrong: Iterable[str], explain: str) -> Question | None:
    """A question with its answer among distinct options, in an order that gives nothing away."""
    others = [option for option in dict.fromkeys(wrong) if option and option != answer]
    if not others:
        return None
    options = sorted([answer, *others[: MAX_OPTIONS - 1]], key=lambda text: (len(text), text))
    return Question(ask, tuple(options), answer, explain)


def _crossings(context: Context) -> Question | None:
    if context.scenario.plan.contract is not Contract.EP:
        return None
    hop = context.hop
    count = hop.crossings
    picks = and_list([str(expert) for expert in sorted(context.picks)])
    ask = f"Combine comes next. How many copies cross between {context.domain_word}s on the way back?"
    if hop.kind is HopKind.DISPATCH:
        ask = (
            f"Dispatch comes next, to {'expert' if len(context.picks) == 1 else 'experts'} {picks}. How "
            f"many copies cross to another {context.domain_word}?"
        )
    wrong = [str(n) for n in (count + 1, count - 1, len(context.picks), count + 2) if n >= 0]
    takes = "takes" if count == 1 else "take"
    explain = f"{count} of {plural(len(hop.transfers), 'transfer')} {takes} InfiniBand."
    if not count:
        explain = "Nothing of it takes InfiniBand."
    return _question(ask, str(count), wrong, explain)


def _receivers(context: Context) -> Question | None:
    """Which GPUs get the row before attention."""
    cp = [rank for rank in context.scenario.mesh.dense.group(context.home, Axis.CP) if rank != context.home]
    wrong = [_some(cp), _some(_dp_partners(context)), _some(_pp_partners(context))]
    explain = "All-gather runs over the TP group: the ranks that differ in tp only."
    ask = f"All-gather comes next. Which GPUs get the row of GPU {context.home}?"
    return _question(ask, gpus(context.peers), wrong, explain)


def _kv_receivers(context: Context) -> Question | None:
    partners = sorted({t.dst for t in context.hop.transfers} - set(context.tp_group))
    wrong = [_some(context.peers), _some(_dp_partners(context)), _some(_pp_partners(context))]
    explain = "K/V goes to the CP partners: each TP rank sends to the ranks with its own tp."
    return _question("The K/V exchange comes next. Which GPUs get a copy?", gpus(partners), wrong, explain)


def _whole_row(context: Context) -> Question | None:
    home, group = gpus([context.home]), gpus(context.tp_group)
    scatter = context.hop.kind is HopKind.REDUCE_SCATTER
    name = "Reduce-scatter" if scatter else "All-reduce"
    answer = home if scatter else group
    explain = (
        "A reduce-scatter leaves each sum on one rank."
        if scatter
        else "An all-reduce leaves the sum on every rank."
    )
    ask = f"{name} comes next. Where is the whole row after it?"
    return _question(ask, answer, [home, group, gpus(context.peers)], explain)


def _next_stage(context: Context) -> Question | None:
    target = next(t.dst for t in context.hop.transfers if t.src == context.home)
    size = context.scenario.mesh.world_size
    step = context.scenario.cluster.gpus_per_nvlink_domain
    near = [context.home + 1, context.home + step, context.home - step]
    wrong = [gpus([rank]) for rank in near if 0 <= rank < size]
    explain = "Only pp changes: tp, cp and dp stay."
    return _question(
        f"The token leaves stage {context.hop.stage}. Which GPU gets it from GPU {context.home}?",
        gpus([target]),
        wrong,
        explain,
    )


def _some(ranks: list[int]) -> str:
    return gpus(ranks) if ranks else ""


def _dp_partners(context: Context) -> list[int]:
    group = context.scenario.mesh.dense.group(context.home, Axis.DP)
    return [rank for rank, _ in zip(group, range(8), strict=False) if rank != context.home]


def _pp_partners(context: Context) -> list[int]:
    return [rank for rank in context.scenario.mesh.dense.group(context.home, Axis.PP) if rank != context.home]


_ASKERS: dict[HopKind, Callable[[Context], Question | None]] = {
    HopKind.DISPATCH: _crossings,
    HopKind.COMBINE: _crossings,
    HopKind.ALL_GATHER: _receivers,
    HopKind.KV_EXCHANGE: _kv_receivers,
    HopKind.REDUCE_SCATTER: _whole_row,
    HopKind.ALL_REDUCE: _whole_row,
    HopKind.PP_SEND: _next_stage,
}
