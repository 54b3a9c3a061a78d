"""The operators of a layer timed by measured calls: attention, feed-forward, experts and the LM head.

An operator that no measured call stands for keeps its roofline time and says so by having no estimate.
Some work comes in one measured module: DeepSeek's attention block with its projections, and experts with
routing, permutation and activation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.errors import ConfigError
from tracer.model.layers import AttentionType
from tracer.model.parameters import part_format
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightMatrix, WeightPart
from tracer.scenario.plan import Contract
from tracer.scenario.step import tokens_per_replica
from tracer.scenario.token import Phase
from tracer.timing import estimate
from tracer.timing.calibration.answer import Estimate, one_after_the_other
from tracer.timing.calibration.attention import DEEPSEEK, causal_pairs
from tracer.timing.calibration.formats import KernelDtype
from tracer.timing.layer_work import LayerWork, dense_rows, shared_rows
from tracer.timing.operators import Operator, is_gated, main_attention
from tracer.timing.roofline import LayerTime, OperatorTime, operator_time
from tracer.traffic.moe import dispatched_rows

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario
    from tracer.timing.batch import TimedBatch

GEMM_FORMATS = {
    WeightFormat.FP8: KernelDtype.FP8,
    WeightFormat.FP8_CHANNEL: KernelDtype.FP8,
    WeightFormat.FP8_BLOCK128: KernelDtype.FP8_BLOCK,
    WeightFormat.FP8_BLOCK128_UE8M0: KernelDtype.FP8_BLOCK,
    WeightFormat.MXFP8: KernelDtype.FP8_BLOCK,
    WeightFormat.NVFP4: KernelDtype.NVFP4,
}
EXPERT_FORMATS = {**GEMM_FORMATS, WeightFormat.MXFP4: KernelDtype.W4A16_MXFP4}
ATTENTION_BLOCK = "attention block"
LM_HEAD = "LM head"


@dataclass(frozen=True, slots=True)
class MeasuredWork:
    """What one GPU computes in a layer, timed; ``head`` is the LM head, once a pass on the last stage."""

    attention: LayerTime
    shared: LayerTime
    experts: LayerTime
    dense: LayerTime
    head: LayerTime


@dataclass(frozen=True, slots=True)
class Slice:
    """The requests of one GPU's part of a batch, as a kernel takes them.

    ``scale`` is what a part of a single prompt takes of the whole prompt's time; 1 for whole requests.
    """

    sequences: int
    length: int
    scale: float

    @classmethod
    def of(cls, batch: TimedBatch, parts: int) -> Slice:
        """One of ``parts`` equal parts: whole requests while there are enough, else a share of one.

        In decode a share of a request is a share of its context. Attention after cached tokens was not
        measured: the whole prompt's time is shared out by (query, key) pairs.
        """
        length, sequences = batch.new + batch.past, batch.sequences / parts
        if batch.phase is Phase.DECODE:
            return cls(ceil(sequences), max(1, ceil(length * min(1.0, sequences))), 1.0)
        seen = causal_pairs(batch.new, past=batch.past) / causal_pairs(length)
        return cls(ceil(sequences), length, seen * min(1.0, sequences))


def measured_work(
    scenario: Scenario,
    batch: TimedBatch,
    parts: int,
    hardware: Hardware,
    work: LayerWork,
    imbalance: float = 1.0,
) -> MeasuredWork:
    """The layer's operators of :func:`~tracer.timing.layer_work.layer_work`, by measured calls.

    Raises:
        ConfigError: for a rate that is needed and that no source states.
    """
    model, mesh, unstated = scenario.model, scenario.mesh, WeightFormat(scenario.dtype.weights)
    rows = dispatched_rows(scenario, tokens_per_replica(scenario))
    shared_split = mesh.tp if scenario.plan.slices_shared else 1
    split = scenario.dense_tp
    own = dense_rows(scenario, batch, parts)
    return MeasuredWork(
        _attention(scenario, batch, parts, hardware, work.attention),
        _ffns(
            model,
            WeightPart.SHARED,
            shared_rows(scenario, rows),
            shared_split,
            hardware,
            work.shared,
            unstated,
        ),
        _experts(scenario, rows, hardware, work.experts, imbalance),
        _ffns(model, WeightPart.DENSE, own, split, hardware, work.dense, unstated),
        _head(scenario, batch, parts, hardware),
    )


def at_best(operator: Operator, hardware: Hardware, asked: Callable[[], Estimate]) -> OperatorTime:
    """The operator with a measured estimate, or at its roofline where none can be had."""
    peak = operator_time(operator, hardware)
    try:
        return replace(peak, estimate=asked())
    except ConfigError:
        return peak


def scaled_estimate(found: Estimate, factor: float, why: str) -> Estimate:
    """An estimate of a part of a call, or of fewer bytes; its error is no longer a measured one."""
    if factor == 1.0:
        return found
    basis = f"{found.basis}, times {factor:.3g}: {why}"
    return Estimate(found.seconds * factor, basis, None, found.floor_seconds * factor)


def count_rows(value: float) -> int:
    """Rows of a kernel, at least one."""
    return max(1, ceil(value))


def gemm_format(stored: WeightFormat) -> KernelDtype:
    """The measured GEMM format that multiplies weights stored so; four-bit MXFP4 is widened to BF16."""
    return GEMM_FORMATS.get(stored, KernelDtype.BFLOAT16)


def _attention(
    scenario: Scenario, batch: TimedBatch, parts: int, gpu: Hardware, operators: tuple[Operator, ...]
) -> LayerTime:
    if not operators:
        return LayerTime(())
    model, tp = scenario.model, scenario.mesh.tp
    stored = gemm_format(part_format(model, WeightPart.ATTENTION, WeightFormat(scenario.dtype.weights)))
    count = scenario.mesh.cp * parts
    part = Slice.of(batch, count)
    heads = model.need("heads", "time attention") // tp
    if is_deepseek_block(model):
        projects = KernelDtype.FP8_BLOCK if stored is KernelDtype.FP8 else stored

        def block() -> Estimate:
            found = estimate.mla(gpu, batch.phase, part.sequences, part.length, heads, projects)
            return scaled_estimate(found, part.scale, "a part of each prompt")

        return LayerTime((at_best(joined(operators), gpu, block),))
    rows = count_rows(batch.tokens / count)
    projections, core, output = operators
    matrices = main_attention(model)
    inner, outer = [m for m in matrices if m.name != "o"], [m for m in matrices if m.name == "o"]

    def kernel() -> Estimate:
        if model.mla:
            raise ConfigError("model", model.name, "has a latent attention of unmeasured sizes", "")
        kv_heads = max(1, model.need("kv_heads", "time attention") // tp)
        width = model.need("head_dim", "time attention")
        found = estimate.attention(gpu, batch.phase, part.sequences, part.length, heads, kv_heads, width)
        return scaled_estimate(found, part.scale, "a part of each prompt")

    return LayerTime(
        (
            at_best(projections, gpu, lambda: projection_gemms(gpu, rows, inner, tp, stored)),
            at_best(core, gpu, kernel),
            at_best(output, gpu, lambda: projection_gemms(gpu, rows, outer, tp, stored, input_cut=True)),
        )
    )


def is_deepseek_block(model: ModelSpec) -> bool:
    """Whether the model's attention is the measured block of DeepSeek-V3 in all sizes but its heads."""
    sizes = (model.hidden, model.q_lora_rank, model.kv_lora_rank, model.qk_nope_head_dim, model.v_head_dim)
    shape = DEEPSEEK
    sparse = any(kind.attention and kind.attention.type is AttentionType.DSA for kind in model.layer_kinds)
    return (
        model.mla
        and not sparse
        and sizes == (shape.hidden, shape.q_rank, shape.kv_rank, shape.nope, shape.value)
    )


def joined(operators: Iterable[Operator]) -> Operator:
    """Several operators as one block, at the rate of its projections."""
    parts = list(operators)
    return Operator(
        ATTENTION_BLOCK,
        exact_sum(each.flops for each in parts),
        exact_sum(each.weight_bytes for each in parts),
        exact_sum(each.row_bytes for each in parts),
        parts[0].rate,
    )


def projection_gemms(
    gpu: Hardware,
    rows: int,
    matrices: list[WeightMatrix],
    tp: int,
    stored: KernelDtype,
    *,
    input_cut: bool = False,
) -> Estimate:
    """Matrices that read the same rows are one GEMM; TP cuts outputs, or inputs of an output projection."""
    widths: dict[int, int] = {}
    for each in matrices:
        widths[each.columns] = widths.get(each.columns, 0) + each.rows
    found = []
    for k, n in widths.items():
        cut = (n, count_rows(k / tp)) if input_cut else (count_rows(n / tp), k)
        found.append(estimate.gemm(gpu, rows, *cut, stored))
    return one_after_the_other(found)


def _ffns(
    model: ModelSpec,
    part: WeightPart,
    tokens: float,
    tp: int,
    gpu: Hardware,
    operators: tuple[Operator, ...],
    unstated: WeightFormat,
) -> LayerTime:
    stored = gemm_format(part_format(model, part, unstated))
    width = model.shared_hidden if part is WeightPart.SHARED else model.dense_hidden
    hidden = model.need("hidden", "time a GEMM")

    def gemms() -> Estimate:
        inner, rows = count_rows((width or 0) / tp), count_rows(tokens)
        up = estimate.gemm(gpu, rows, (2 if is_gated(model, part) else 1) * inner, hidden, stored)
        return one_after_the_other([up, estimate.gemm(gpu, rows, hidden, inner, stored)])

    return LayerTime(tuple(at_best(each, gpu, gemms) for each in operators))


def _experts(
    scenario: Scenario, rows: float, gpu: Hardware, operators: tuple[Operator, ...], imbalance: float
) -> LayerTime:

    def asked() -> Estimate:
        return _expert_call(scenario, rows, gpu, imbalance)

    return LayerTime(tuple(at_best(each, gpu, asked) for each in operators))


def _expert_call(scenario: Scenario, rows: float, gpu: Hardware, imbalance: float) -> Estimate:
    """The routed experts of the busiest GPU, which has ``imbalance`` times the mean of the picks.

    After a dispatch a GPU sees only the rows it was picked for: its experts alone, a row a pick. Where all
    rows are gathered, or experts are all at hand, the call is the group's.
    """
    model, mesh, contract = scenario.model, scenario.mesh, scenario.plan.contract
    stored = part_format(model, WeightPart.EXPERTS, WeightFormat(scenario.dtype.weights))
    dtype = EXPERT_FORMATS.get(stored, KernelDtype.BFLOAT16)
    hidden, width = model.expert_row, model.need("expert_hidden", "time experts")
    experts, top_k = model.need("experts", "time experts"), model.need("top_k", "time experts")
    always = len(scenario.always_picked)
    total, picks = experts + always, top_k + always
    ep, tp = (1, 1) if contract is Contract.DWDP else (mesh.ep, mesh.etp)
    group = rows * ep * tp
    held = ceil(total / ep)
    kernel = "gated" if is_gated(model, WeightPart.SHARED) else "nongated"
    if contract is Contract.EP and ep > 1:
        pairs = count_rows(group * picks / ep * imbalance)
        return estimate.moe(gpu, pairs, hidden, width, held, 1, 1, dtype, "balanced", tp, kernel)
    rows_of_all = count_rows(group * imbalance)
    return estimate.moe(gpu, rows_of_all, hidden, width, held * ep, picks, ep, dtype, "balanced", tp, kernel)


def all_experts(scenario: Scenario, tokens: int, gpu: Hardware) -> Estimate:
    """A layer's routed experts, all on one GPU, for ``tokens`` with uniform picks.

    Raises:
        ConfigError: for a model without experts, a format that was not measured, or a rate that is unknown.
    """
    model = scenario.model
    stored = part_format(model, WeightPart.EXPERTS, WeightFormat(scenario.dtype.weights))
    width, experts, picks = (
        model.need(name, "time experts") for name in ("expert_hidden", "experts", "top_k")
    )
    dtype = EXPERT_FORMATS.get(stored, KernelDtype.BFLOAT16)
    kernel = "gated" if is_gated(model, WeightPart.SHARED) else "nongated"
    rest = (width, experts, picks, 1, dtype, "balanced")
    return estimate.moe(gpu, tokens, model.expert_row, *rest, kernel=kernel)


def _head(scenario: Scenario, batch: TimedBatch, parts: int, gpu: Hardware) -> LayerTime:
    """The LM head over the rows that give a token: one a request; BF16, cut over TP."""
    model, mesh = scenario.model, scenario.mesh
    if model.vocab is None:
        return LayerTime(())
    hidden, columns = model.need("hidden", "time the LM head"), ceil(model.vocab / mesh.tp)
    rows = count_rows(batch.sequences / (parts * mesh.cp))
    weights = 2.0 * columns * hidden
    operator = Operator(
        LM_HEAD, 2.0 * rows * columns * hidden, weights, 2.0 * rows * (columns + hidden), "bf16_flops"
    )
    head = at_best(operator, gpu, lambda: estimate.gemm(gpu, rows, columns, hidden, KernelDtype.BFLOAT16))
    return LayerTime((head,))
