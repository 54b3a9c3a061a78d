"""A layer of one kind timed by measured calls, where there is one for its core; else at its roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.model.layers import (
    AttentionType,
    DenseFfn,
    HeadAttention,
    LatentAttention,
    LinearAttention,
)
from tracer.model.parameters import part_format
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart
from tracer.scenario.token import Phase
from tracer.timing import estimate
from tracer.timing.calibration.answer import one_after_the_other
from tracer.timing.calibration.attention import DEEPSEEK, DSA_MODELS
from tracer.timing.calibration.formats import KernelDtype
from tracer.timing.kind_work import mixer_projections
from tracer.timing.measured.compute import (
    Slice,
    at_best,
    count_rows,
    gemm_format,
    joined,
    projection_gemms,
    scaled_estimate,
)
from tracer.timing.roofline import LayerTime

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.model.layers import Attention
    from tracer.scenario.scenario import Scenario
    from tracer.timing.batch import TimedBatch
    from tracer.timing.calibration.answer import Estimate
    from tracer.timing.kind_work import KindWork

_PART = "a part of each prompt"


def measured_mixer(
    scenario: Scenario, batch: TimedBatch, parts: int, gpu: Hardware, work: KindWork
) -> LayerTime:
    """Projections by GEMMs, the core by the attention kernel that was measured for its type."""
    if not work.mixer:
        return LayerTime(())
    model, tp = scenario.model, scenario.mesh.tp
    stored = gemm_format(part_format(model, WeightPart.ATTENTION, WeightFormat(scenario.dtype.weights)))
    count = scenario.mesh.cp * parts
    part, rows = Slice.of(batch, count), count_rows(batch.tokens / count)
    attention = work.kind.attention
    block = _block_name(model.hidden, attention)
    if isinstance(attention, LatentAttention) and block is not None:

        def whole() -> Estimate:
            return _block(gpu, batch, part, attention, tp, stored, block)

        return LayerTime((at_best(joined(work.mixer), gpu, whole),))
    projections, core, output = work.mixer
    inner, outer = mixer_projections(work.kind, model.need("hidden", "time attention"))
    return LayerTime(
        (
            at_best(projections, gpu, lambda: projection_gemms(gpu, rows, inner, tp, stored)),
            at_best(core, gpu, lambda: _core(gpu, batch, part, attention, tp)),
            at_best(output, gpu, lambda: projection_gemms(gpu, rows, outer, tp, stored, input_cut=True)),
        )
    )


def _block_name(hidden: int | None, attention: Attention | None) -> str | None:
    """The measured block with a latent that has these sizes: "mla", or the model of a sparse one."""
    if not isinstance(attention, LatentAttention):
        return None
    ranks = (hidden, attention.q_lora_rank, attention.kv_lora_rank)
    sizes = (*ranks, attention.qk_nope_head_dim, attention.v_head_dim)
    for name, shape in {"mla": DEEPSEEK, **DSA_MODELS}.items():
        same = sizes == (shape.hidden, shape.q_rank, shape.kv_rank, shape.nope, shape.value)
        sparse = attention.type is AttentionType.DSA
        if same and sparse == (name != "mla") and (not sparse or attention.index_heads == shape.index_heads):
            return name
    return None


def _block(
    gpu: Hardware,
    batch: TimedBatch,
    part: Slice,
    attention: LatentAttention,
    tp: int,
    stored: KernelDtype,
    name: str,
) -> Estimate:
    projects = KernelDtype.FP8_BLOCK if stored is KernelDtype.FP8 else stored
    heads = attention.heads // tp
    if name == "mla":
        found = estimate.mla(gpu, batch.phase, part.sequences, part.length, heads, projects)
    else:
        found = estimate.dsa(gpu, batch.phase, part.sequences, part.length, heads, projects, model=name)
    return scaled_estimate(found, part.scale, _PART)


def _core(gpu: Hardware, batch: TimedBatch, part: Slice, attention: Attention | None, tp: int) -> Estimate:
    if isinstance(attention, HeadAttention) and not attention.index_heads:
        if attention.type is AttentionType.CHUNKED and attention.window and part.length > attention.window:
            raise ConfigError("model", attention.type, "has chunks, which were not measured", "")
        if attention.head_dim != attention.v_head_dim:
            raise ConfigError("model", attention.type, "has keys and values of unmeasured widths", "")
        window = attention.window or 0
        reach = window if window < part.length else 0
        heads, kv_heads = attention.heads // tp, max(1, attention.kv_heads // tp)
        found = estimate.attention(
            gpu, batch.phase, part.sequences, part.length, heads, kv_heads, attention.head_dim, window=reach
        )
        return scaled_estimate(found, part.scale, _PART)
    if isinstance(attention, LinearAttention) and attention.type is AttentionType.GATED_DELTA_NET:
        length = 1 if batch.phase is Phase.DECODE else part.length
        heads = attention.value_heads // tp
        found = estimate.linear_attention(gpu, batch.phase, part.sequences, length, heads)
        return scaled_estimate(found, part.scale, _PART)
    raise ConfigError("model", "attention", "has no measured kernel", "")


def measured_feed(scenario: Scenario, own: float, rows: float, gpu: Hardware, work: KindWork) -> LayerTime:
    """The dense FFN's GEMMs, or the projections around LatentMoE's experts."""
    model, split = scenario.model, scenario.dense_tp
    hidden, part = model.need("hidden", "time a GEMM"), work.kind.feed_forward
    unstated = WeightFormat(scenario.dtype.weights)
    if not work.dense or part is None:
        return LayerTime(())
    if isinstance(part, DenseFfn):
        stored = gemm_format(part_format(model, WeightPart.DENSE, unstated))
        inner, count, gated = count_rows(part.width / split), count_rows(own), part.gated

        def gemms() -> Estimate:
            up = estimate.gemm(gpu, count, (2 if gated else 1) * inner, hidden, stored)
            return one_after_the_other([up, estimate.gemm(gpu, count, hidden, inner, stored)])

        return LayerTime(tuple(at_best(each, gpu, gemms) for each in work.dense))
    stored, latent, count = KernelDtype.BFLOAT16, part.latent, count_rows(rows)

    def around() -> Estimate:
        down = estimate.gemm(gpu, count, latent, hidden, stored)
        return one_after_the_other([down, estimate.gemm(gpu, count, hidden, latent, stored)])

    return LayerTime(tuple(at_best(each, gpu, around) for each in work.dense))
