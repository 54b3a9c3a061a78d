"""Which part of the model a GPU has: its stage's layers, heads, FFN slices, expert slots, vocabulary rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.model.layers import DenseFfn
from tracer.scenario.plan import Contract, Embedding

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class StageLayers:
    """The ``runs`` of layers (from 1, ascending) of a stage, counted by kind.

    ``own`` are the MoE layers that have a slot table of their own; ``common`` is the placement of the
    others, None where there are none. ``kinds`` counts the layers of each kind of ``model.kinds``, empty
    where the layers differ by nothing but dense or MoE. The embedding is on stage 0, the LM head where the
    last chunk is.
    """

    stage: int
    runs: tuple[range, ...]
    dense: int
    moe: int
    common: Placement | None
    own: tuple[tuple[int, Placement], ...]
    has_head: bool
    kinds: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Number of layers."""
        return sum(map(len, self.runs))

    @property
    def placements(self) -> tuple[tuple[Placement, int], ...]:
        """(placement, number of MoE layers so placed), the common one first."""
        common = () if self.common is None else ((self.common, self.moe - len(self.own)),)
        return common + tuple((placement, 1) for _, placement in self.own)

    @property
    def content(self) -> tuple[object, ...]:
        """What decides the weights of a stage: stages with equal content hold alike."""
        return (
            self.dense,
            self.moe,
            self.kinds,
            tuple((layer - self.runs[0].start, placement) for layer, placement in self.own),
            self.stage == 0,
            self.has_head,
        )


def all_stages(scenario: Scenario) -> Iterator[StageLayers]:
    """Every stage's layers, stage 0 first."""
    return (layers_of_stage(scenario, stage) for stage in range(scenario.mesh.stages))


def layers_of_stage(scenario: Scenario, stage: int) -> StageLayers:
    """One stage's layers."""
    has_head = stage == scenario.head_stage
    return _of_runs(scenario, stage, scenario.stage_runs[stage], has_head=has_head)


def one_layer(scenario: Scenario, layer: int) -> StageLayers:
    """A layer, counted from 1, without the embedding and the head that its stage may have."""
    return _of_runs(scenario, _NO_END, (range(layer, layer + 1),), has_head=False)


def no_layer(*, has_head: bool) -> StageLayers:
    """The embedding alone, or the last norm and the head."""
    return StageLayers(_NO_END if has_head else 0, (), 0, 0, None, (), has_head)


_NO_END = -1
"""A stage that is not the first, which has the embedding."""


def _of_runs(scenario: Scenario, stage: int, runs: tuple[range, ...], *, has_head: bool) -> StageLayers:
    model = scenario.model
    dense = sum(_dense_between(model, run.start, run.stop - 1) for run in runs)
    moe = sum(map(len, runs)) - dense
    if model.layer_kinds:
        parts = [model.layer_kinds[layer - 1].feed_forward for run in runs for layer in run]
        dense = sum(isinstance(part, DenseFfn) for part in parts)
    own = tuple(
        (layer, placement)
        for layer, placement in scenario.layer_placements
        if any(layer in run for run in runs) and model.is_moe(layer)
    )
    common = scenario.placement if moe > len(own) else None
    kinds = (
        tuple(sum(_between(layers, run) for run in runs) for _, layers in model.kinds())
        if model.layer_kinds
        else ()
    )
    return StageLayers(stage, runs, dense, moe, common, own, has_head, kinds)


def _between(layers: Sequence[int], run: range) -> int:
    """How many of some ascending layers are in a run."""
    return bisect_right(layers, run.stop - 1) - bisect_left(layers, run.start)


def _dense_between(model: ModelSpec, first: int, last: int) -> int:
    """Layers from ``first`` to ``last`` without experts; the same cost for any depth."""
    if model.experts is None:
        return last - first + 1
    dense = model.dense_layers
    if isinstance(dense, int):
        return max(0, min(last, dense) - first + 1)
    return bisect_right(dense, last) - bisect_left(dense, first)


_WHY = "say what a GPU holds"


def cut(length: int, parts: int, index: int) -> range:
    """Part ``index`` of ``length`` cut as evenly as can be, the first parts taking one more.

    >>> [len(cut(10, 4, index)) for index in range(4)]
    [3, 3, 2, 2]
    """
    share, extra = divmod(length, parts)
    start = index * share + min(index, extra)
    return range(start, start + share + (index < extra))


@dataclass(frozen=True, slots=True)
class ModelShare:
    """One GPU's part of the model, as ranges of whole things.

    ``query_heads`` and ``kv_heads`` of the model's heads; ``kv_heads`` is None with MLA, whose latent is
    whole on every TP rank. ``kv_replicas`` GPUs of a TP group hold the same KV head. ``dense_hidden``,
    ``shared_hidden`` and ``expert_hidden`` are slices of the FFNs' inner width, None where the stage has
    no such FFN. ``embedding`` and ``lm_head`` are vocabulary rows, None on stages without them, and empty
    where all of a slice is padding; ``vocab_slice`` is a slice's rows with its padding.
    """

    rank: int
    layers: StageLayers
    ep_rank: int
    query_heads: range
    kv_heads: range | None
    kv_replicas: int
    dense_hidden: range | None
    shared_hidden: range | None
    expert_hidden: range | None
    embedding: range | None
    lm_head: range | None
    vocab_slice: int


def model_share(scenario: Scenario, rank: int, layers: StageLayers | None = None) -> ModelShare:
    """The part of the model that a rank has; ``layers`` saves looking up its stage's.

    Raises:
        ConfigError: for a rank outside the mesh, or a size the model does not state.
    """
    mesh, model = scenario.mesh, scenario.model
    at = mesh.coordinates(rank)
    tp, tp_size = at[Axis.TP], mesh.tp
    layers = layers if layers is not None else layers_of_stage(scenario, at[Axis.PP])
    kv_parts = tp_size if model.mla else min(tp_size, model.need("kv_heads", _WHY))
    dense_tp = scenario.dense_tp
    return ModelShare(
        rank=rank,
        layers=layers,
        ep_rank=at[Axis.EP],
        query_heads=cut(model.need("heads", _WHY), tp_size, tp),
        kv_heads=None if model.mla else cut(model.need("kv_heads", _WHY), kv_parts, tp * kv_parts // tp_size),
        kv_replicas=tp_size if model.mla else tp_size // kv_parts,
        dense_hidden=_width(scenario, "dense_hidden", layers.dense, dense_tp, tp if dense_tp > 1 else 0),
        shared_hidden=_shared(scenario, layers, tp),
        expert_hidden=_experts(scenario, layers, at),
        embedding=_embedding(scenario, tp) if layers.stage == 0 else None,
        lm_head=_vocab_rows(scenario, tp) if layers.has_head else None,
        vocab_slice=_vocab_slice(scenario),
    )


def _width(scenario: Scenario, size: str, layers: int, parts: int, index: int) -> range | None:
    """A slice of an FFN's inner width, None where no layer has such an FFN."""
    return cut(scenario.model.need(size, _WHY), parts, index) if layers else None


def _shared(scenario: Scenario, layers: StageLayers, tp: int) -> range | None:
    """The slice of the shared experts' FFN; None also where they are routed, for they then take slots."""
    plan = scenario.plan
    if not scenario.model.shared_experts or plan.shared_routed:
        return None
    parts, index = (scenario.mesh.tp, tp) if plan.slices_shared else (1, 0)
    return _width(scenario, "shared_hidden", layers.moe, parts, index)


def _experts(scenario: Scenario, layers: StageLayers, at: dict[str, int]) -> range | None:
    """The slice of every expert in a slot: over etp, or over the replica's TP ranks."""
    axis = "tp" if scenario.plan.contract is Contract.TP else "etp"
    return _width(scenario, "expert_hidden", layers.moe, scenario.mesh.size_of(axis), at[axis])


def _vocab_slice(scenario: Scenario) -> int:
    """Vocabulary rows of a slice over TP, padding included."""
    return -(-scenario.model.need("vocab", _WHY) // scenario.mesh.tp)


def _vocab_rows(scenario: Scenario, tp: int) -> range:
    """The vocabulary's own rows in a TP rank's slice."""
    vocab, share = scenario.model.need("vocab", _WHY), _vocab_slice(scenario)
    return range(min(tp * share, vocab), min((tp + 1) * share, vocab))


def _embedding(scenario: Scenario, tp: int) -> range:
    """Rows of the embedding: all of them, or a slice where it is ``vocab_parallel``."""
    if scenario.plan.embedding is Embedding.REPLICATED:
        return range(scenario.model.need("vocab", _WHY))
    return _vocab_rows(scenario, tp)
