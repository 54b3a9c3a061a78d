"""The weights a GPU holds, matrix by matrix: each slice's shape, how many there are, and who else has it.

Column-parallel matrices (q, k, v, gate, up, and the up-projections of MLA's latents) are cut by rows,
row-parallel ones (o, down) by columns, over TP, as Megatron, vLLM and SGLang do; MLA's down-projections,
routers and norms are whole on every rank. Experts follow the GPU's slots; embedding and output head are cut
by vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.memory.share import cut
from tracer.mesh.axes import Axis
from tracer.model.parameters import format_in, part_format
from tracer.model.weight_format import WeightFormat, stored_bytes
from tracer.model.weights import Cut, WeightMatrix, WeightPart, weight_matrices
from tracer.scenario.plan import Contract, Embedding
from tracer.scenario.sharding import shard_sizes

if TYPE_CHECKING:
    from tracer.memory.share import ModelShare
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class WeightShard:
    """``count`` slices of one shape ``[rows, columns]`` on one GPU, for instance one per layer.

    ``held_by`` is how many times the whole mesh holds each of them, and ``why`` says so in words;
    ``padding`` are elements of a slice that are no parameters (the vocabulary is padded to TP). Sharded
    weights (FSDP, ZeRO-3) lie in ``pieces``, of which the GPU keeps one: ``bytes`` are the piece's.
    """

    part: WeightPart
    name: str
    rows: int
    columns: int
    count: int
    held_by: int
    why: str
    bytes: int
    padding: int = 0
    pieces: int = 1

    @property
    def parameters(self) -> int:
        """Parameters of all slices together, or of the GPU's piece of them."""
        return -(-self.count * (self.rows * self.columns - self.padding) // self.pieces)


@dataclass(frozen=True, slots=True)
class Copies:
    """How many times the mesh holds a slice, and why."""

    held_by: int
    why: str


def copies(reason: str, *factors: tuple[str, int]) -> Copies:
    """Copies along several axes at once.

    >>> copies("heads over tp 2", ("cp", 2), ("dp", 4)).why
    'heads over tp 2; the same on cp 2 × dp 4'
    """
    held_by, named = 1, []
    for name, number in factors:
        held_by *= number
        if number > 1:
            named.append(f"{name} {number}")
    return Copies(
        held_by, f"{reason}; " + (f"the same on {' × '.join(named)}" if named else "held here alone")
    )


def stage_copies(scenario: Scenario, reason: str, in_tp: int) -> Copies:
    """Copies of a slice that ``in_tp`` ranks of each TP group hold: on every cp and dp of the stage."""
    mesh = scenario.mesh
    return copies(reason, ("tp", in_tp), ("cp", mesh.cp), ("dp", mesh.dp))


def hold(
    scenario: Scenario,
    part: WeightPart,
    name: str,
    shape: tuple[int, int],
    count: int,
    shared: Copies,
    *,
    padding: int = 0,
    stored_as: WeightPart | None = None,
) -> WeightShard:
    """A holding, its bytes as the model stores the part (else in the scenario's weights dtype).

    ``stored_as`` is another part whose storage it has. A slice that cuts through a block of a block format
    has scales for the block it cut.
    """
    plain = WeightFormat(scenario.dtype.weights)
    stored = stored_bytes(part_format(scenario.model, stored_as or part, plain), *shape)
    return WeightShard(part, name, *shape, count, shared.held_by, shared.why, count * stored, padding)


def held_experts(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[WeightShard]:
    """One holding for each number of slots that an expert has in the group; shared ones apart.

    Every EP group (edp) has all slots; a slot has an etp-th of its expert. A shared expert that is routed
    is stored as routed ones are.
    """
    if not share.expert_hidden:
        return
    counts: Counter[tuple[WeightPart, int]] = Counter()
    for placement, layers in share.layers.placements:
        for kind, held in _by_slots(scenario, share, placement).items():
            counts[kind] += layers * held
    axis = "tp" if scenario.plan.contract is Contract.TP else "etp"
    parts, edp = scenario.mesh.size_of(axis), scenario.mesh.edp
    reason = f"inner width over {axis} {parts}" if parts > 1 else "whole in a slot"
    width = len(share.expert_hidden)
    shape = (matrix.rows, matrix.columns)
    if matrix.cut is not Cut.WHOLE:
        shape = (matrix.rows, width) if matrix.cut is Cut.INNER_COLUMNS else (width, matrix.columns)
    for (part, slots), count in sorted(counts.items()):
        shared = copies(reason, ("slots", slots), ("edp", edp))
        for each in hold_by_format(scenario, share, matrix, shape, count, shared):
            yield each if matrix.part is WeightPart.BIASES else replace(each, part=part)


def _by_slots(scenario: Scenario, share: ModelShare, placement: Placement) -> Counter[tuple[WeightPart, int]]:
    """(part, slots an expert has) -> slots on this GPU."""
    routed = scenario.always_picked.start
    if placement.slots is not None:
        return Counter(
            (WeightPart.EXPERTS if expert < routed else WeightPart.SHARED, len(placement.ep_ranks_of(expert)))
            for expert in placement.experts_on(share.ep_rank)
        )
    shared = sum(share.ep_rank in placement.ep_ranks_of(expert) for expert in scenario.always_picked)
    return Counter(
        {(WeightPart.EXPERTS, 1): placement.slots_on(share.ep_rank) - shared, (WeightPart.SHARED, 1): shared}
    )


def held_vocabulary(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[WeightShard]:
    """The embedding on stage 0; the head's slice on the stage of the last layer.

    Where the two are tied and on one stage, the head reads the embedding; where they are not, the head's
    stage has a copy of its own (Megatron ties them so).
    """
    tied = scenario.model.tie_embeddings
    if matrix.part is WeightPart.EMBEDDING and share.embedding is not None:
        is_whole = scenario.plan.embedding is Embedding.REPLICATED
        rows = len(share.embedding) if is_whole else share.vocab_slice
        yield _rows(scenario, share.embedding, matrix, "embedding", rows, _embedding_copies(scenario))
    second_copy = tied and scenario.head_stage > 0
    if (matrix.part is WeightPart.LM_HEAD or second_copy) and share.lm_head is not None:
        name = "tied_head" if tied else "lm_head"
        yield _rows(scenario, share.lm_head, matrix, name, share.vocab_slice, _head_copies(scenario))


def _rows(
    scenario: Scenario, real: range, matrix: WeightMatrix, name: str, rows: int, shared: Copies
) -> WeightShard:
    """``rows`` rows of the matrix, of which ``real`` are the vocabulary's."""
    padding = (rows - len(real)) * matrix.columns
    return hold(scenario, matrix.part, name, (rows, matrix.columns), 1, shared, padding=padding)


def _embedding_copies(scenario: Scenario) -> Copies:
    tp, is_whole = scenario.mesh.tp, scenario.plan.embedding is Embedding.REPLICATED
    reason = "whole" if is_whole else f"vocabulary over tp {tp}"
    return _with_tied(scenario, stage_copies(scenario, reason, tp if is_whole else 1), scenario.head_stage)


def _head_copies(scenario: Scenario) -> Copies:
    reason = f"vocabulary over tp {scenario.mesh.size_of('tp')}"
    return _with_tied(scenario, stage_copies(scenario, reason, 1), 0)


def _with_tied(scenario: Scenario, here: Copies, other_stage: int) -> Copies:
    """The same with the tied matrix's copies on the other end of the pipeline."""
    mesh = scenario.mesh
    if not scenario.model.tie_embeddings or scenario.head_stage == 0:
        return here
    whole = other_stage == 0 and scenario.plan.embedding is Embedding.REPLICATED
    there = mesh.cp * mesh.dp * (mesh.tp if whole else 1)
    return Copies(here.held_by + there, f"{here.why}; tied: {there} more on stage {other_stage}")


def held_weights(scenario: Scenario, share: ModelShare) -> tuple[WeightShard, ...]:
    """Everything of the model that lies on a GPU, by part in the model's order; pieces of sharded weights.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    sizes, held = shard_sizes(scenario.plan, scenario.mesh), whole_weights(scenario, share)
    if sizes.whole:
        return held
    return tuple(
        _piece(each, sizes.experts if is_expert_weight(scenario, each.part) else sizes.dense) for each in held
    )


def is_expert_weight(scenario: Scenario, part: WeightPart) -> bool:
    """Whether a part lies in expert slots: routed experts, and shared ones that are routed too."""
    return part is WeightPart.EXPERTS or (part is WeightPart.SHARED and scenario.plan.shared_routed)


def _piece(whole: WeightShard, pieces: int) -> WeightShard:
    """One of so many equal pieces of a slice, the last of them padded."""
    if pieces == 1:
        return whole
    return replace(
        whole,
        bytes=-(-whole.bytes // pieces),
        held_by=max(1, whole.held_by // pieces),
        why=f"{whole.why}; in {pieces} pieces, one per GPU",
        pieces=pieces,
    )


def whole_weights(scenario: Scenario, share: ModelShare) -> tuple[WeightShard, ...]:
    """The weights that a GPU computes with, by part in the model's order, whatever is sharded.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    found: list[WeightShard] = []
    for matrix in weight_matrices(scenario.model):
        if matrix.name in ("embedding", "lm_head"):
            found += held_vocabulary(scenario, share, matrix)
        elif matrix.part is WeightPart.EXPERTS or matrix.name.startswith("expert_"):
            found += held_experts(scenario, share, matrix)
        else:
            found += _in_layers(scenario, share, matrix)
    order = list(WeightPart)
    together: dict[tuple[object, ...], WeightShard] = {}
    for each in sorted((each for each in found if each.count), key=lambda each: order.index(each.part)):
        one = each.bytes // each.count
        key = (each.part, each.name, each.rows, each.columns, each.held_by, each.why, each.padding, one)
        old = together.get(key)
        together[key] = (
            each if old is None else replace(old, count=old.count + each.count, bytes=old.bytes + each.bytes)
        )
    return tuple(together.values())


def layers_with(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> list[int]:
    """Layers of the GPU's stage that have a matrix, a layer named once for each kind that lists it."""
    kinds, runs = scenario.model.kinds(), share.layers.runs
    return [layer for kind in matrix.kinds for layer in kinds[kind][1] if any(layer in run for run in runs)]


def _in_layers(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[WeightShard]:
    """A matrix as TP cuts it, in the layers of the stage that have it; outside the layers at an end."""
    if matrix.part is WeightPart.SHARED and scenario.plan.shared_routed:
        return
    if matrix.kinds:
        count = matrix.per_layer * len(layers_with(scenario, share, matrix))
    else:
        at_start = matrix.part in (WeightPart.EMBEDDING, WeightPart.VISION)
        count = int(share.layers.stage == 0 if at_start else share.layers.has_head)
    if count:
        shape, shared = _cut(scenario, share, matrix)
        if 0 not in shape:
            yield from hold_by_format(scenario, share, matrix, shape, count, shared)


def hold_by_format(
    scenario: Scenario,
    share: ModelShare,
    matrix: WeightMatrix,
    shape: tuple[int, int],
    count: int,
    shared: Copies,
) -> Iterator[WeightShard]:
    """One holding for each format in which the stage's layers store a matrix."""
    plain = WeightFormat(scenario.dtype.weights)
    layers = layers_with(scenario, share, matrix) or [0]
    formats = Counter(format_in(scenario.model, matrix, layer, plain) for layer in layers)
    for stored, number in formats.items():
        here = count * number // len(layers)
        size = here * stored_bytes(stored, *shape)
        yield WeightShard(matrix.part, matrix.name, *shape, here, shared.held_by, shared.why, size)


def _cut(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> tuple[tuple[int, int], Copies]:
    """(shape of the GPU's slice, who else has it)."""
    tp = scenario.mesh.tp
    rows, columns, word = matrix.rows, matrix.columns, matrix.cut
    if word in (Cut.INNER_ROWS, Cut.INNER_COLUMNS):
        parts = _inner_parts(scenario, matrix)
        index = scenario.mesh.coordinates(share.rank)[Axis.TP] if parts > 1 else 0
        reason = f"inner width over tp {tp}" if parts > 1 else "whole"
        width = len(cut(rows if word is Cut.INNER_ROWS else columns, parts, index))
        shape = (width, columns) if word is Cut.INNER_ROWS else (rows, width)
        return shape, stage_copies(scenario, reason, tp // parts)
    if word is Cut.WHOLE:
        latent = matrix.part is WeightPart.ATTENTION
        reason = "the projection into the latent is whole" if latent else "whole"
        return (rows, columns), stage_copies(scenario, reason, tp)
    groups = matrix.groups
    held = max(1, -(-groups // tp))
    copied = max(1, tp // groups)
    kv = word is Cut.KV_ROWS
    few = f", which are more than {'KV heads' if kv else 'heads'}" if copied > 1 else ""
    shared = stage_copies(scenario, f"{'KV heads' if kv else 'heads'} over tp {tp}{few}", copied)
    if word is Cut.HEAD_COLUMNS or rows == 1:
        return (rows, columns * held // groups), shared
    return (rows * held // groups, columns), shared


def _inner_parts(scenario: Scenario, matrix: WeightMatrix) -> int:
    """Ranks over which the inner width of an FFN is cut."""
    if matrix.part is WeightPart.SHARED:
        return scenario.mesh.tp if scenario.plan.slices_shared else 1
    return scenario.dense_tp
