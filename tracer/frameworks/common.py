"""Checks, placements and warnings that every framework's reader shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.notes import Note, Refusal
from tracer.scenario.placement import Placement

if TYPE_CHECKING:
    from tracer.frameworks.axis_groups import AxisGroups
    from tracer.frameworks.settings import Request

MAX_SCANNED_RANKS = 1 << 16
MAX_EXPERT_SLOTS = 1 << 20


def check_heads(request: Request, dest: str, tp: int, rule: str, heads: int | None = None) -> None:
    """Refuse a TP size that does not divide the attention heads, of the model or else as given.

    ``rule`` may use {heads} and {tp}.
    """
    if request.model is not None and request.model.heads is not None:
        heads = request.model.heads
    if heads is not None and heads % tp:
        raise Refusal(dest, rule.format(heads=heads, tp=tp))


def shared_expert(request: Request, tp: int, word: str) -> dict[str, object]:
    """The plan's key for a shared expert under TP, where there is TP and the model may have one."""
    has_none = request.model is not None and not request.model.shared_experts
    return {} if tp == 1 or has_none else {"shared_tp": word}


def sharded_weights(shards: int, copies: int, *, keep: bool = False) -> dict[str, object]:
    """The plan's keys for weights in ``shards`` pieces, ``copies`` times (1: FSDP, more: HSDP)."""
    if shards == 1:
        return {}
    kept: dict[str, object] = {"weight_keep": True} if keep else {}
    if copies == 1:
        return {"weight_shard": "fsdp"} | kept
    return {"weight_shard": "hsdp", "weight_shard_size": shards} | kept


def linear(
    experts: int | None, ep: int, dest: str, rule: str, mend: tuple[str, ...] = ()
) -> Placement | None:
    """Experts in equal runs over the EP ranks; where E % ep != 0, ``rule`` (with {experts}, {ep}) is said."""
    if experts is None:
        return None
    if experts % ep:
        raise Refusal(dest, rule.format(experts=experts, ep=ep), mend=mend)
    return Placement.linear(experts, ep)


def with_redundant(experts: int, redundant: int, ep: int) -> Placement:
    """Physical experts: all logical ones once, then the first again; contiguous runs over EP ranks.

    The start-up map of vLLM's and SGLang's EPLB: physical expert i is logical expert i % E.

    Raises:
        ConfigError: above ``MAX_EXPERT_SLOTS`` physical experts.
    """
    if experts + redundant > MAX_EXPERT_SLOTS:
        raise ConfigError(
            "num_redundant_experts",
            redundant,
            f"makes more than {MAX_EXPERT_SLOTS:,} physical experts",
            f"try {experts} or fewer",
        )
    return Placement.table([slot % experts for slot in range(experts + redundant)], ep, experts)


def crosses_nodes(walk: AxisGroups, gpus_per_node: int) -> list[int] | None:
    """The first group whose members sit on more than one node, or None.

    Above ``MAX_SCANNED_RANKS`` ranks only rank 0's group is looked at.
    """
    if walk.size == 1:
        return None
    if walk.grid.size > MAX_SCANNED_RANKS:
        group = walk.grid.group(0, walk.axes)
        return list(group[:64]) if group[len(group) - 1] // gpus_per_node else None
    crossing = (each for each in walk.walked() if len({rank // gpus_per_node for rank in each}) > 1)
    return next(crossing, None)


def is_contiguous(walk: AxisGroups) -> bool:
    """Whether rank 0's group is a run of consecutive ranks."""
    group = walk.grid.group(0, walk.axes)
    return group[len(group) - 1] - group[0] == len(group) - 1


def node_notes(request: Request, tp: AxisGroups, tp_flag: str, ep: AxisGroups) -> list[Note]:
    """Warnings about groups that leave an NVLink domain: their collectives run over the network."""
    spanned = request.nodes_per_domain
    per_node = request.gpus_per_node * spanned
    word = "node" if spanned == 1 else "NVLink domain"
    notes = []
    group = crosses_nodes(tp, per_node)
    if group is not None:
        notes.append(
            Note(
                "tp_across_nodes",
                f"the TP group {_shown(group)} spans {word}s of {per_node} GPUs: every layer's "
                "all-reduce runs over the network",
                f"keep {tp_flag} at or below {per_node}, and let it divide {per_node}",
            )
        )
    group = crosses_nodes(ep, per_node)
    if group is not None:
        notes.append(
            Note(
                "ep_across_nodes",
                f"the EP group {_shown(group)} spans {len({rank // per_node for rank in group})} or more "
                f"{word}s of {per_node} GPUs: dispatch and combine use the network",
                f"expected for wide EP; for NVLink only, keep the EP group inside one {word}",
            )
        )
    return notes


def not_contiguous(ep: AxisGroups, why: str, fix: str) -> list[Note]:
    """A warning where EP groups are not runs of consecutive ranks."""
    if ep.size == 1 or is_contiguous(ep):
        return []
    return [
        Note("ep_not_contiguous", f"EP groups are not consecutive ranks ({_shown(ep.first())}): {why}", fix)
    ]


def ep_no_factor(title: str, product: str, ep: int, world: int) -> list[Note]:
    """The most common misreading: EP does not multiply the number of GPUs."""
    if ep == 1:
        return []
    return [
        Note(
            "ep_is_no_world_factor",
            f"{title} counts {product} = {world} GPUs; ep = {ep} lies over the same GPUs and does not "
            "multiply them",
            "leave EP out when you work out the world size or the number of replicas",
        )
    ]


def experts_unknown(request: Request, ep: int) -> list[Note]:
    """A remark that the placement needs a model."""
    if ep == 1 or request.model is not None:
        return []
    return [
        Note(
            "experts_unknown",
            "which expert sits where is not shown: the flags do not say how many experts there are",
            "add --model config.json",
        )
    ]


def idle_gpus(request: Request, world: int, title: str, flags: str) -> list[Note]:
    """A remark that the flags start fewer ranks than there are GPUs."""
    if request.gpus is None or request.gpus == world:
        return []
    return [
        Note(
            "idle_gpus",
            f"{title} starts {world} ranks; {request.gpus - world} of the {request.gpus} GPUs stay idle",
            f"raise {flags}, or say --gpus {world}",
        )
    ]


def ep_all_reduce(title: str, when: str) -> Note:
    """EP inside TP without a dispatch: rows are everywhere already and partial sums are all-reduced."""
    return Note(
        "ep_all_reduce",
        f"{title} dispatches nothing {when}: every rank has all rows, runs its own experts, and one "
        "all-reduce sums them; the scenario's contract says ag_rs, which has no word for this",
        "read the groups and the placement; the trip's EP hops count more than this launch moves",
    )


def _shown(group: list[int]) -> str:
    text = ", ".join(map(str, group[:8]))
    return f"[{text}{', ...' if len(group) > 8 else ''}]"
