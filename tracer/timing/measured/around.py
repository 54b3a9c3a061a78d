"""The small kernels around the big ones: norms, activations, rotary embedding, router, quantise.

Each moves rows through memory. They are timed as the measured quantise kernel that moves as many bytes
(that kernel reads two bytes a value and writes one), the router as a GEMM.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from tracer.model.dtype import Dtype
from tracer.model.layers import CompressedAttention, HeadAttention, LatentAttention
from tracer.model.parameters import part_format
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart
from tracer.scenario.plan import Contract, DispatchMode
from tracer.timing import estimate
from tracer.timing.calibration.answer import Estimate
from tracer.timing.calibration.formats import KernelDtype
from tracer.timing.layer_work import shared_rows
from tracer.timing.measured.compute import at_best, gemm_format, is_deepseek_block
from tracer.timing.operators import Operator
from tracer.timing.roofline import LayerTime, OperatorTime
from tracer.traffic.moe import RowBytes

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.model.layers import LayerKind
    from tracer.scenario.scenario import Scenario

COPIES = ("dispatch send", "dispatch receive", "combine send", "combine receive")
QUANTISE_BYTES = 3
NORM_BYTES = 8
"""A norm that adds the residual: rows and residual in, rows and residual out, BF16."""
GATE_BYTES = 6
"""SiLU of the gate times the up projection: two BF16 values in, one out."""
ROTARY_BYTES = 4


def around_kind(
    scenario: Scenario, rows: float, heads_rows: float, gpu: Hardware, kind: LayerKind
) -> LayerTime:
    """Kernels of a layer of one kind: its norms, and rotary and quantise kernels around its mixer."""
    model, tp, attention = scenario.model, scenario.mesh.tp, kind.attention
    hidden = model.need("hidden", "time a norm")
    found = [_kernel(f"norm {number + 1}", rows, hidden, NORM_BYTES, gpu) for number in range(kind.norms)]
    if attention is None:
        return LayerTime(tuple(found))
    width = 0
    if isinstance(attention, HeadAttention):
        width = (attention.heads + attention.kv_heads) * attention.head_dim
    elif isinstance(attention, LatentAttention):
        width = attention.heads * attention.qk_head_dim
    elif isinstance(attention, CompressedAttention):
        width = attention.heads * attention.head_dim
    if width:
        found.append(_kernel("rotary", heads_rows, width / tp, ROTARY_BYTES, gpu))
    stored = part_format(model, WeightPart.ATTENTION, WeightFormat(scenario.dtype.weights))
    if gemm_format(stored) is not KernelDtype.BFLOAT16:
        found.append(_kernel("quantise for attention", heads_rows, hidden, QUANTISE_BYTES, gpu))
    return LayerTime(tuple(found))


def around_layer(scenario: Scenario, rows: float, heads_rows: float, gpu: Hardware) -> LayerTime:
    """Kernels of any layer: two norms with their residual, and what attention needs around its GEMMs.

    ``rows`` are a GPU's rows outside attention, ``heads_rows`` those inside (all TP ranks see them).
    DeepSeek's measured block has its own rotary and quantise kernels inside.
    """
    model, tp = scenario.model, scenario.mesh.tp
    hidden = model.need("hidden", "time a norm")
    found = [_kernel(name, rows, hidden, NORM_BYTES, gpu) for name in ("norm before attention", "norm after")]
    if is_deepseek_block(model):
        return LayerTime(tuple(found))
    width = (model.heads or 0) * (model.qk_head_dim or 0) + (model.kv_heads or 0) * (model.head_dim or 0)
    found.append(_kernel("rotary", heads_rows, width / tp, ROTARY_BYTES, gpu))
    stored = part_format(model, WeightPart.ATTENTION, WeightFormat(scenario.dtype.weights))
    if gemm_format(stored) is not KernelDtype.BFLOAT16:
        output = (model.heads or 0) * (model.v_head_dim or 0) / tp
        found.append(_kernel("quantise for attention", heads_rows, hidden + output, QUANTISE_BYTES, gpu))
    return LayerTime(tuple(found))


def around_moe(scenario: Scenario, rows: float, shared_tp: int, gpu: Hardware) -> LayerTime:
    """Kernels of a MoE layer: the router, the shared expert's activation, quantise before FP8 dispatch.

    The measured expert call has the experts' own activation, permutation and quantise kernels inside.
    """
    model = scenario.model
    experts, hidden = model.need("experts", "time the router"), model.need("hidden", "time the router")
    count = max(1, ceil(rows))
    flops, weights = 2.0 * count * hidden * experts, 2.0 * hidden * experts
    router = Operator("router", flops, weights, 2.0 * count * (hidden + experts), "bf16_flops")
    found = [
        at_best(router, gpu, lambda: estimate.gemm(gpu, count, experts, hidden, KernelDtype.BFLOAT16)),
    ]
    if model.shared_experts and not scenario.always_picked:
        found += _feed_forward(
            scenario,
            WeightPart.SHARED,
            shared_rows(scenario, rows),
            shared_tp,
            gpu,
            model.shared_hidden or 0,
        )
    if scenario.plan.contract in (Contract.EP, Contract.AG_RS) and scenario.dtype.dispatch is Dtype.FP8:
        found.append(_kernel("quantise for dispatch", rows, hidden, QUANTISE_BYTES, gpu))
    return LayerTime(tuple(found))


def around_dense(scenario: Scenario, rows: float, gpu: Hardware, width: int | None = None) -> LayerTime:
    """Kernels of a dense layer's feed-forward; ``width`` where layers differ (None: the model's)."""
    wide = (scenario.model.dense_hidden or 0) if width is None else width
    return LayerTime(tuple(_feed_forward(scenario, WeightPart.DENSE, rows, scenario.dense_tp, gpu, wide)))


def _feed_forward(
    scenario: Scenario, part: WeightPart, rows: float, tp: int, gpu: Hardware, whole: int
) -> list[OperatorTime]:
    """The gate's activation, and where weights are narrower than BF16 a quantise before both GEMMs."""
    model = scenario.model
    width = whole / tp
    name = "shared expert" if part is WeightPart.SHARED else "dense FFN"
    found = [_kernel(f"{name} activation", rows, width, GATE_BYTES, gpu)]
    stored = part_format(model, part, WeightFormat(scenario.dtype.weights))
    if gemm_format(stored) is not KernelDtype.BFLOAT16:
        columns = model.need("hidden", "time a quantise kernel") + width
        found.append(_kernel(f"{name} quantise", rows, columns, QUANTISE_BYTES, gpu))
    return found


def low_latency_copies(scenario: Scenario, rows: float, gpu: Hardware) -> LayerTime:
    """What the low-latency dispatch and combine do on a GPU's own memory: send, receive, send, receive.

    Their measured times hold it. Dispatch reads BF16 rows and writes a copy for each pick into the send
    buffer, and receives by copying rows out of another; combine copies each pick's result to send it, and
    reads a token's results to add them. Picks are even, so that as many rows come as go. Empty where no
    low-latency kernel runs.
    """
    plan, members = scenario.plan, scenario.mesh.etp * scenario.mesh.ep
    if plan.contract is not Contract.EP or plan.dispatch is not DispatchMode.LOW_LATENCY or members < 2:
        return LayerTime(())
    model, size = scenario.model, RowBytes.of(scenario)
    hidden = model.need("hidden", "time the copies of a dispatch")
    picks = model.need("top_k", "time the copies of a dispatch") + len(scenario.always_picked)
    there, back = size.dispatch / hidden, size.combine / hidden
    return LayerTime(
        (
            _kernel(COPIES[0], rows, hidden, 2 + picks * there, gpu),
            _kernel(COPIES[1], rows * picks, hidden, 2 * there, gpu),
            _kernel(COPIES[2], rows * picks, hidden, 2 * back, gpu),
            _kernel(COPIES[3], rows, hidden, (picks + 1) * back, gpu),
        )
    )


def _kernel(name: str, rows: float, columns: float, bytes_per_value: float, gpu: Hardware) -> OperatorTime:
    """A kernel that moves ``bytes_per_value`` of every value of ``[rows, columns]``."""
    count, wide = max(1, ceil(rows)), max(1, ceil(columns * bytes_per_value / QUANTISE_BYTES))

    def asked() -> Estimate:
        found = estimate.quantize(gpu, count, wide)
        if bytes_per_value == QUANTISE_BYTES:
            return found
        basis = f"{found.basis}, as the quantise kernel that moves as many bytes"
        return Estimate(found.seconds, basis, None, found.floor_seconds)

    return at_best(Operator(name, 0.0, 0.0, rows * columns * bytes_per_value, "bf16_flops"), gpu, asked)
