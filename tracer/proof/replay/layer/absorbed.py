"""What decode sends and keeps of attention: queries, cached K/V and partial outputs in the form that travels.

Grouped-query attention sends its heads as they are. MLA's queries are absorbed into the latent: a score is
``(W_uk·q)·latent + q_rope·k_rope``, so one latent serves every head, and partial outputs are latents too
(DeepSeek-V2 report, section 2.1.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.proof.replay.layer.grouped_attention import open_kv

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.layer.maths import FloatArray

WHY = "cut the heads"


def query_width(model: ModelSpec) -> int:
    """Elements of one head's query as sent."""
    return model.kv_values_per_token if model.mla else model.need("head_dim", WHY)


def output_width(model: ModelSpec) -> int:
    """Elements of one head's partial output as returned."""
    return model.need("kv_lora_rank" if model.mla else "v_head_dim", WHY)


def queries_to_send(model: ModelSpec, weights: Checkpoint, layer: int, queries: FloatArray) -> FloatArray:
    """Queries ``[rows, heads · query width]`` of a rank's heads, from its projection's.

    MLA's are scaled so that dividing scores by the root of their width is dividing by that of a head.
    """
    if not model.mla:
        return queries
    nope, rank = model.need("qk_nope_head_dim", WHY), model.need("kv_lora_rank", WHY)
    heads = queries.reshape(len(queries), queries.shape[1] // model.qk_head_dim, model.qk_head_dim)
    up = weights[f"{layer}.k_up"].reshape(rank, heads.shape[1], nope)
    absorbed = np.einsum("qhn,lhn->qhl", heads[..., :nope], up)
    both = np.concatenate((absorbed, heads[..., nope:]), axis=-1)
    scale = np.sqrt(both.shape[-1] / model.qk_head_dim)
    return np.asarray(both * scale).reshape(len(queries), heads.shape[1] * both.shape[-1])


def keys_and_values(
    model: ModelSpec, weights: Checkpoint, layer: int, stored: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Keys and values ``[rows, kv heads, width]`` of kept K/V; MLA: one head, its values without the rope."""
    if not model.mla:
        return open_kv(model, weights, layer, stored)
    return stored[:, None, :], stored[:, None, : model.need("kv_lora_rank", WHY)]


def heads_of_output(model: ModelSpec, weights: Checkpoint, layer: int, out: FloatArray) -> FloatArray:
    """Merged outputs ``[rows, heads · v width]`` from ``[rows, heads, output width]``."""
    if model.mla:
        rank = model.need("kv_lora_rank", WHY)
        up = weights[f"{layer}.v_up"].reshape(rank, out.shape[1], -1) if out.shape[1] else out
        out = np.einsum("qhl,lhv->qhv", out, up)
    return out.reshape(len(out), out.shape[1] * out.shape[2])
