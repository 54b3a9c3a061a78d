"""Multi-head latent attention on one TP rank: K/V are one latent per token, whole on every TP rank.

DeepSeek-V2 report, section 2.1. Heads are split over TP; each rank opens the latent for its own heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.proof.replay.layer.maths import rms_norm, rope

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.layer.maths import FloatArray, IntArray

WHY = "cut the heads"


def project(
    model: ModelSpec, weights: Checkpoint, layer: int, rows: FloatArray, positions: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Queries ``[rows, heads · (nope + rope)]`` of a rank's heads and latents ``[rows, kv_lora + rope]``."""
    nope, rank = model.need("qk_nope_head_dim", WHY), model.need("kv_lora_rank", WHY)
    low = rows
    if model.q_lora_rank is not None:
        low = rms_norm(rows @ weights[f"{layer}.q_down"], weights[f"{layer}.q_norm"])
    flat = low @ weights[f"{layer}.q"]
    heads = flat.reshape(len(rows), flat.shape[1] // model.qk_head_dim, model.qk_head_dim)
    queries = np.concatenate((heads[..., :nope], rope(heads[..., nope:], positions)), axis=-1)
    down = rows @ weights[f"{layer}.kv_down"]
    latent = rms_norm(down[:, :rank], weights[f"{layer}.kv_norm"])
    rotary = rope(down[:, None, rank:], positions)[:, 0]
    return queries.reshape(flat.shape), np.concatenate((latent, rotary), axis=1)


def open_kv(
    model: ModelSpec, weights: Checkpoint, layer: int, stored: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Keys ``[rows, heads, nope + rope]`` and values ``[rows, heads, v]`` of a rank's heads, from latents."""
    nope, rank = model.need("qk_nope_head_dim", WHY), model.need("kv_lora_rank", WHY)
    latent, rotary = stored[:, :rank], stored[:, rank:]
    plain = latent @ weights[f"{layer}.k_up"]
    heads = plain.shape[1] // nope
    keys = np.concatenate(
        (plain.reshape(len(stored), heads, nope), np.repeat(rotary[:, None, :], heads, axis=1)), axis=-1
    )
    values = latent @ weights[f"{layer}.v_up"]
    return keys, values.reshape(len(stored), heads, values.shape[1] // heads)
