"""Slices of block-quantised FP8 weights: where vLLM and SGLang refuse what tensor parallelism cuts.

Their linear layers keep one scale per 128 x 128 block, so a rank's slice must be whole blocks. Read from
vLLM 0.33.0 (``model_executor/layers/quantization/utils/fp8_utils.py`` validate_fp8_block_shape and
validate_fp8_block_shape_moe, ``layers/linear.py`` _maybe_allow_fp8_block_shape_mismatch,
``layers/fused_moe/oracle/fp8.py`` refine_fp8_moe_block_shape) and SGLang 0.5.23
(``srt/layers/quantization/fp8.py`` validate_block_quant_shapes and Fp8MoEMethod).

- Cut by rows of heads or inner width (column parallel): the rank's output must be whole blocks. Where several
  projections are one layer (q with k and v, gate with up), SGLang asks that without TP too, and vLLM lets
  them differ.
- Cut by columns (row parallel: o, down): the rank's input must be whole blocks.
- Embedding and head are not quantised by either.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.notes import Refusal
from tracer.model.layers import LatentAttention
from tracer.model.parameters import part_format
from tracer.model.weight_format import FP8_BLOCK, WeightFormat
from tracer.model.weights import Cut, WeightMatrix, WeightPart, layer_matrices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracer.frameworks.settings import Request
    from tracer.model.spec import ModelSpec

_BLOCKED = (WeightFormat.FP8_BLOCK128, WeightFormat.FP8_BLOCK128_UE8M0)
_PARTS = (WeightPart.ATTENTION, WeightPart.DENSE, WeightPart.SHARED, WeightPart.EXPERTS)
_ATTENTION = ("q", "q_b", "k", "v", "kv_b", "o")
_ROWS = (Cut.HEAD_ROWS, Cut.KV_ROWS, Cut.INNER_ROWS)
_FINEST = 32
"""The smallest block that vLLM's Triton kernels take."""


def check_fp8_blocks(
    request: Request, dest: str, parts: Mapping[WeightPart, int], *, merged_may_differ: bool
) -> None:
    """Refuse slices that cut a block, in the framework's words.

    ``parts`` are the ranks over which each part of the model is cut; a part that is left out is not cut
    here. ``merged_may_differ`` is vLLM's allowance for projections that are one layer.

    Raises:
        Refusal: naming the flag ``dest`` and the weight.
    """
    if request.model is None:
        return
    for matrix, merged in _blocked_matrices(request.model):
        ranks = parts.get(matrix.part)
        if ranks is None or (merged and merged_may_differ):
            continue
        if matrix.part is WeightPart.EXPERTS:
            _check_expert(request, dest, matrix, ranks, refines=merged_may_differ)
        elif merged or ranks > 1:
            _check_linear(dest, matrix, ranks)


def _blocked_matrices(model: ModelSpec) -> Iterator[tuple[WeightMatrix, bool]]:
    """(block-quantised matrix, whether it is one layer with others) of each kind of layer."""
    if model.hidden is None or not any(part_format(model, part) in _BLOCKED for part in _PARTS):
        return
    try:
        kinds = model.kinds("check blocks of FP8")
    except ConfigError:  # a size that the blocks need is not stated
        return
    for kind, _ in kinds:
        latent = isinstance(kind.attention, LatentAttention)
        for each in layer_matrices(kind, model.hidden):
            attends = each.part is WeightPart.ATTENTION
            if each.cut is Cut.WHOLE or part_format(model, each.part) not in _BLOCKED:
                continue
            if attends and each.name not in _ATTENTION:
                continue
            if each.part in _PARTS:
                together = not latent if attends else each.part is not WeightPart.EXPERTS
                yield each, together and each.cut in _ROWS and each.name != "q_b"


def _check_linear(dest: str, matrix: WeightMatrix, ranks: int) -> None:
    where = f"({matrix.part}, {matrix.name})"
    if matrix.cut in _ROWS:
        slices = min(ranks, matrix.groups) if matrix.cut is Cut.KV_ROWS else ranks
        size = matrix.rows // slices
        if size % FP8_BLOCK:
            raise Refusal(
                dest,
                f"Weight output_partition_size = {size} is not divisible by weight quantization "
                f"block_n = {FP8_BLOCK}. {where}",
            )
        return
    size = matrix.columns // ranks
    if size % FP8_BLOCK:
        raise Refusal(
            dest,
            f"Weight input_size_per_partition = {size} is not divisible by weight quantization "
            f"block_k = {FP8_BLOCK}. {where}",
        )


def _check_expert(request: Request, dest: str, matrix: WeightMatrix, ranks: int, *, refines: bool) -> None:
    """A routed expert's slice; vLLM's Triton kernels can take finer blocks, its others cannot."""
    if matrix.cut is not Cut.INNER_ROWS:
        return
    width, hidden = matrix.rows, matrix.columns
    size = width // ranks
    if size % FP8_BLOCK == 0:
        return
    finer = gcd(FP8_BLOCK, size, hidden)
    only = (
        f"; vLLM 0.33 splits the scales to blocks of {finer} for its Triton kernels alone"
        if refines and finer >= _FINEST
        else ""
    )
    raise Refusal(
        dest,
        f"The output_size of gate's and up's weight = {size} is not divisible by weight quantization "
        f"block_n = {FP8_BLOCK}. (experts: {width} / {ranks}{only})",
    )
