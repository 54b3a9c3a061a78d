"""The layout behind a recording: axes, sizes and order from its groups, the model from its shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

from tracer.errors import ConfigError
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES, Axis
from tracer.mesh.mesh import Mesh
from tracer.runs.families import WEIGHTS, WORLD, family_of, is_megatron, mesh_dimension
from tracer.runs.reading.recording import Group, Op, OpKind, Recording
from tracer.runs.shapes import Families, Shapes, read_shapes
from tracer.runs.structure import DEFAULT, guessed_families

AXES = (*DENSE_AXES, *EXPERT_AXES)
_ENDS_TOLERANCE = 0.03
_LOOSE_TOLERANCE = 0.15
"""How far a count of virtual stages may lie from a whole number: of a long run, and of a short one."""


@dataclass(frozen=True, slots=True)
class RecoveredLayout:
    """A run's layout as its recording tells it.

    ``guessed`` names the entries that are no statement of the recording; ``families`` give each group its
    axes; ``mesh`` is None where the sizes do not multiply up to the world. ``chunks`` are virtual stages of
    each rank, None where the recording cannot tell.
    """

    world_size: int
    sizes: dict[str, int]
    order: str
    expert_order: str
    chunks: int | None
    framework: str | None
    names_groups: bool
    families: Families
    shapes: Shapes
    layers: int | None
    nodes: int | None
    gpus_per_node: int | None
    guessed: tuple[str, ...]
    mesh: Mesh | None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/run.schema.json`` describes them."""
        shapes = self.shapes
        return {
            **{axis: self.sizes[axis] for axis in AXES},
            "chunks": self.chunks,
            "order": self.order,
            "expert_order": self.expert_order,
            "world_size": self.world_size,
            "framework": self.framework,
            "nodes": self.nodes,
            "gpus_per_node": self.gpus_per_node,
            "layers": self.layers,
            "hidden": shapes.hidden,
            "rows": shapes.rows,
            "experts": shapes.experts,
            "top_k": shapes.top_k,
            "sequence_parallel": shapes.sequence_parallel,
            "shared_expert": shapes.shared_expert,
            "shared_overlap": shapes.shared_overlap,
            "routing_metadata": shapes.routing_metadata,
            "fp8_gather": shapes.fp8_gather,
            "row_dtype": shapes.row_dtype,
            "dispatch_dtype": shapes.dispatch_dtype,
            "guessed": list(self.guessed),
        }


def recover(recording: Recording) -> RecoveredLayout:
    """The layout of a recording, by its groups' descriptions where they say it, else by structure."""
    sample = recording.sample
    ops = [op for record in sample for op in record.ops]
    named = {group: family for group in recording.groups if (family := family_of(group.description))}
    names_groups = any(family != WORLD for family in named.values())
    families = Families(named)
    guessed: list[str] = []
    if not names_groups:
        found = guessed_families(recording.groups, ops, recording.world_size)
        families.update(found)
        guessed += sorted({*found.values(), "dp"}, key=AXES.index)
    notes: list[str] = []
    sizes = _sizes(recording.world_size, families, notes)
    mesh, order, expert_order = _fitted(recording.world_size, sizes, families, notes)
    if mesh is not None and not names_groups:
        families.update(_over_several_axes(recording.groups, families, mesh, ops))
    shapes = read_shapes([record.ops for record in sample], families)
    chunks, layers, how = _chunks(recording, families, sizes["pp"], ops)
    notes += how
    if chunks is None or chunks > 1:
        guessed.append("chunks")
    guessed += [name for name in ("hidden", "rows", "experts", "top_k", "shared_expert", "sequence_parallel")
                if getattr(shapes, name)]  # fmt: skip
    if layers is not None:
        guessed.append("layers")
    nodes, per_node = _nodes(recording, notes)
    return RecoveredLayout(
        recording.world_size, sizes, order, expert_order, chunks, _framework(recording.groups), names_groups,
        families, shapes, layers, nodes, per_node, tuple(guessed), mesh, tuple(notes),
    )  # fmt: skip


def _framework(groups: Iterable[Group]) -> str | None:
    """Whose words the descriptions are."""
    descriptions = [group.description for group in groups]
    if any(map(is_megatron, descriptions)):
        return "megatron"
    if any(map(mesh_dimension, descriptions)):
        return "device_mesh"
    if any(":" in text and family_of(text) not in (None, WORLD) for text in descriptions):
        return "vllm"
    return None


def _sizes(world: int, families: Families, notes: list[str]) -> dict[str, int]:
    """Sizes of the seven axes; what no group tells is 1, and dp and edp take what is left over."""
    size: dict[str, int] = {}
    for family in dict.fromkeys(families.values()):
        votes = Counter(group.size for group, own in families.items() if own == family and group.members)
        if votes:
            size[family] = votes.most_common(1)[0][0]
        if len(votes) > 1 and family not in (WORLD, WEIGHTS, "optimizer"):
            notes.append(f"groups of {family} have {len(votes)} different sizes; the most frequent counts")
    tp, pp = size.get("tp", 1), size.get("pp", 1)
    if "tp" not in size and "tp-cp" in size and "cp" in size:
        tp = max(1, size["tp-cp"] // size["cp"])
    cp = (
        size.get("cp")
        or _ratio(size, "tp-cp", "tp")
        or _ratio(size, "dp-cp", "dp")
        or _ratio(size, "tp-dp-cp", "tp-dp")
        or 1
    )
    dp = size.get("dp") or (size["dp-cp"] // cp if "dp-cp" in size else 0)
    if dp * tp * cp * pp != world:
        rest = world // (tp * cp * pp) if world % (tp * cp * pp) == 0 else 0
        if dp and rest:
            notes.append(f"dp groups have {dp} members, and {world} ranks over tp, cp and pp leave {rest}")
        dp = rest or max(dp, 1)
    ep = size.get("ep") or _ratio(size, "etp-ep", "etp") or 1
    etp = size.get("etp") or _ratio(size, "etp-ep", "ep") or 1
    stage = tp * cp * dp
    edp = stage // (ep * etp) if stage % (ep * etp) == 0 else 0
    if not edp:
        notes.append(f"ep {ep} times etp {etp} does not divide the {stage} ranks of a stage")
    return {"tp": tp, "cp": cp, "dp": dp, "pp": pp, "etp": etp, "ep": ep, "edp": max(edp, 1)}


def _ratio(size: dict[str, int], whole: str, part: str) -> int:
    """How many times the groups of one family are as large as those of another; 0 where that is not known."""
    if whole not in size or part not in size or size[whole] % size[part]:
        return 0
    return size[whole] // size[part]


def _fitted(
    world: int, sizes: dict[str, int], families: Families, notes: list[str]
) -> tuple[Mesh | None, str, str]:
    """The order of axes that most recorded groups agree with; Megatron's default where several do."""
    usual = ("tp-cp-dp-pp", "etp-ep-edp")
    if prod(sizes[axis] for axis in DENSE_AXES) != world:
        notes.append(f"tp, cp, dp and pp do not multiply to {world} ranks: no mesh can be made of them")
        return None, *usual
    best: tuple[int, Mesh | None, str, str] = (-1, None, *usual)
    for order in _orders(DENSE_AXES, sizes):
        mesh = _mesh(order, usual[1], sizes)
        score = 0 if mesh is None else _agreeing(mesh, families, dense=True)
        if mesh is not None and score > best[0]:
            best = (score, mesh, order, usual[1])
    order = best[2]
    best = (-1, best[1], order, usual[1])
    for expert_order in _orders(EXPERT_AXES, sizes):
        mesh = _mesh(order, expert_order, sizes)
        score = 0 if mesh is None else _agreeing(mesh, families, dense=False)
        if mesh is not None and score > best[0]:
            best = (score, mesh, order, expert_order)
    return best[1], best[2], best[3]


def _orders(axes: tuple[str, ...], sizes: dict[str, int]) -> list[str]:
    """Every order of the axes larger than 1, the others in their usual places; the usual order first."""
    large = [axis for axis in axes if sizes[axis] > 1]
    found = []
    for order in permutations(large):
        names = iter(order)
        found.append("-".join(next(names) if axis in large else axis for axis in axes))
    return list(dict.fromkeys(found))


def _mesh(order: str, expert_order: str, sizes: dict[str, int]) -> Mesh | None:
    try:
        return Mesh.build(order, expert_order=expert_order, **dict(sizes))  # type: ignore[arg-type]
    except ConfigError:
        return None


def _agreeing(mesh: Mesh, families: Families, *, dense: bool) -> int:
    """Recorded groups that a mesh makes too, of the dense or the expert view."""
    score = 0
    for group, family in families.items():
        axes = family.split("-")
        if group.size > 1 and set(axes) <= set(AXES) and (set(axes) <= set(DENSE_AXES)) == dense:
            score += members_of(mesh, family, group.members[0]) == tuple(sorted(group.members))
    return score


def members_of(mesh: Mesh, family: str, rank: int) -> tuple[int, ...] | None:
    """The ranks that a mesh puts into a rank's group of a family, ascending; None for no such family."""
    if not 0 <= rank < mesh.world_size:
        return ()
    if family == WORLD:
        return tuple(range(mesh.world_size))
    if family in ("embd", "pos_embd"):
        stages = tuple(mesh.group(rank, Axis.PP))
        return stages[:1] if family == "pos_embd" or len(stages) == 1 else (stages[0], stages[-1])
    axes = family.split("-")
    if not set(axes) <= set(AXES):
        return None
    return tuple(sorted(mesh.group(rank, axes)))


def _over_several_axes(
    groups: Iterable[Group], families: Families, mesh: Mesh, ops: list[Op]
) -> dict[Group, str]:
    """Groups without a description that no single axis explains: those of two axes together."""
    found: dict[Group, str] = {}
    sums = {op.group for op in ops if op.kind is OpKind.ALL_REDUCE}
    usual = ("etp-ep", "tp-cp", "dp-cp", "edp", "tp-dp-cp", "tp-pp")
    exchanges = {op.group for op in ops if op.kind is OpKind.ALL_TO_ALL}
    for group in groups:
        summed = families.get(group) == "ep" and group in sums and group not in exchanges
        if (group in families and not summed) or group.size < 2 or group.name == DEFAULT:
            continue
        members = tuple(sorted(group.members))
        # Counts are gathered over the experts' ranks, and summed over those that share a batch.
        for family in ("tp-cp", *usual) if group in sums else usual:
            if members_of(mesh, family, members[0]) == members:
                found[group] = family
                break
    return found


def _chunks(
    recording: Recording, families: Families, pp: int, ops: list[Op]
) -> tuple[int | None, int | None, list[str]]:
    """Virtual stages by sends from the last stage to the first; how many, by counting sends and receives.

    With v chunks a stage, a micro-batch makes an inner stage send and receive 4·v times, forward and
    backward, and the first and last stage 4·v − 2 times: the ratio of the two counts is 1 − 1/(2·v).
    """
    if pp < 2:
        return 1, None, []
    pairs = [op for op in ops if op.kind.is_p2p and op.peer is not None and families.of(op.group) == "pp"]
    wraps = any(
        op.group.size > 2 and op.peer in (ends := (op.group.members[0], op.group.members[-1]))
        and _other_end(op, recording, ends)
        for op in pairs
    )  # fmt: skip
    inner, outer = _sends_and_receives(recording, families)
    exact = 1 / (2 * (1 - outer / inner)) if 0 < outer < inner else 0.0
    chunks = round(exact)
    off = abs(exact - chunks) / chunks if chunks else 1.0
    if off <= _ENDS_TOLERANCE and (chunks > 1 or not wraps):
        return chunks, _layers(recording, families, pp, inner / (4 * chunks)), []
    if wraps:
        note = "the last stage sends to the first: there are virtual stages"
        if chunks > 1 and off <= _LOOSE_TOLERANCE:
            return chunks, None, [f"{note}, about {exact:.1f} a stage by the counts of sends"]
        return 2, None, [f"{note}, at least 2 a stage"]
    if pp > 2 and any(not op.is_pending for op in pairs):
        return 1, None, []
    if pp == 2:
        note = "with pp = 2, sends forward and backward look alike: virtual stages are left open"
    else:
        note = "too few sends between stages are recorded: virtual stages are left open"
    return None, None, [note]


def _other_end(op: Op, recording: Recording, ends: tuple[int, int]) -> bool:
    """Whether the rank that recorded the operation is at the other end of its pipeline."""
    mine = next((rank for rank in ends if rank != op.peer), None)
    record = recording.ranks.get(mine) if mine is not None else None
    return record is not None and any(op is each for each in record.ops)


def _sends_and_receives(recording: Recording, families: Families) -> tuple[float, float]:
    """Mean count of a pipeline group's operations on inner stages, and on the first and last stage."""
    counts: dict[bool, list[int]] = {True: [], False: []}
    for record in recording.ranks.values():
        for group, progress in record.progress.items():
            if families.of(group) == "pp" and group.size > 2 and progress.enqueued:
                counts[record.rank in (group.members[0], group.members[-1])].append(progress.enqueued)
    inner, outer = (sum(found) / len(found) if found else 0.0 for found in (counts[False], counts[True]))
    return inner, outer


def _layers(recording: Recording, families: Families, pp: int, micro_batches: float) -> int | None:
    """MoE layers of the model: exchanges of counts a rank, over micro-batches, over all stages."""
    counts = [
        progress.enqueued
        for record in recording.ranks.values()
        for group, progress in record.progress.items()
        if families.of(group) == "etp-ep" and progress.enqueued
    ]
    if not counts or micro_batches < 1:
        return None
    exact = sum(counts) / len(counts) / micro_batches
    layers = round(exact)
    return layers * pp if layers and abs(exact - layers) < _ENDS_TOLERANCE * layers else None


def _nodes(recording: Recording, notes: list[str]) -> tuple[int | None, int | None]:
    """Nodes and ranks a node, where every rank's host is known and each has as many."""
    hosts = recording.hosts
    if len(hosts) < recording.world_size:
        return None, None
    counts = Counter(hosts.values())
    if len(set(counts.values())) > 1:
        notes.append("hosts have different numbers of ranks: nodes are left open")
        return None, None
    per_node = next(iter(counts.values()))
    order = [hosts[rank] for rank in range(recording.world_size)]
    if any(len(set(order[i : i + per_node])) > 1 for i in range(0, len(order), per_node)):
        notes.append("ranks are not laid out node by node: nodes are left open")
        return None, None
    return len(counts), per_node
