"""A whole model's weights, drawn from a seed: what one device would hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.model.routers import Router
from tracer.proof.replay.layer.maths import FloatArray

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

WHY = "draw the model's weights"
Checkpoint = dict[str, FloatArray]
Shapes = dict[str, tuple[int, ...]]
NORMS = ("norm", "norm1", "norm2", "q_norm", "kv_norm")


def draw_checkpoint(model: ModelSpec, seed: int) -> Checkpoint:
    """Weights by name: ``embed``, ``head``, ``norm`` and, in layer 3, ``3.q``, ``3.experts.gate`` and so on.

    A matrix is ``[input, output]`` float64, experts stacked in front: ``[experts, input, output]``;
    ``embed`` is ``[vocab, hidden]``, and so is ``head``. Entries are normal, scaled to keep rows near 1.
    """
    random = np.random.default_rng((seed, 1))
    found: Checkpoint = {}
    for name, shape in checkpoint_shapes(model).items():
        last = name.rsplit(".", 1)[-1]
        drawn = random.standard_normal(shape)
        if last in NORMS:
            found[name] = 1.0 + 0.1 * drawn
        elif last in ("embed", "router_bias"):
            found[name] = drawn if last == "embed" else 0.1 * drawn
        else:
            found[name] = drawn / np.sqrt(shape[-1] if last == "head" else shape[-2])
    if model.tie_embeddings:
        found["head"] = found["embed"]
    return found


def checkpoint_shapes(model: ModelSpec) -> Shapes:
    """Shape of every weight, by name."""
    hidden, vocab = model.need("hidden", WHY), model.need("vocab", WHY)
    shapes: Shapes = {"embed": (vocab, hidden), "norm": (hidden,)}
    if not model.tie_embeddings:
        shapes["head"] = (vocab, hidden)
    for layer in range(1, model.layers + 1):
        parts: Shapes = {"norm1": (hidden,), "norm2": (hidden,)}
        parts |= _latent_shapes(model, hidden) if model.mla else _grouped_shapes(model, hidden)
        parts |= _expert_shapes(model, hidden) if model.is_moe(layer) else _dense_shapes(model, hidden)
        shapes |= {f"{layer}.{name}": shape for name, shape in parts.items()}
    return shapes


def _grouped_shapes(model: ModelSpec, hidden: int) -> Shapes:
    heads, kv_heads = model.need("heads", WHY), model.need("kv_heads", WHY)
    width, value_width = model.need("head_dim", WHY), model.need("v_head_dim", WHY)
    return {
        "q": (hidden, heads * width),
        "k": (hidden, kv_heads * width),
        "v": (hidden, kv_heads * value_width),
        "o": (heads * value_width, hidden),
    }


def _latent_shapes(model: ModelSpec, hidden: int) -> Shapes:
    heads, latent = model.need("heads", WHY), model.need("kv_lora_rank", WHY)
    nope, rope = model.need("qk_nope_head_dim", WHY), model.need("qk_rope_head_dim", WHY)
    value_width = model.need("v_head_dim", WHY)
    shapes: Shapes = {"q": (hidden, heads * (nope + rope))}
    if model.q_lora_rank is not None:
        shapes = {
            "q_down": (hidden, model.q_lora_rank),
            "q_norm": (model.q_lora_rank,),
            "q": (model.q_lora_rank, heads * (nope + rope)),
        }
    return shapes | {
        "kv_down": (hidden, latent + rope),
        "kv_norm": (latent,),
        "k_up": (latent, heads * nope),
        "v_up": (latent, heads * value_width),
        "o": (heads * value_width, hidden),
    }


def _dense_shapes(model: ModelSpec, hidden: int) -> Shapes:
    return _gated("dense", hidden, model.need("dense_hidden", WHY))


def _expert_shapes(model: ModelSpec, hidden: int) -> Shapes:
    experts = model.need("experts", WHY)
    shapes: Shapes = {"router": (hidden, experts)}
    if Router.of(model).has_bias:
        shapes["router_bias"] = (experts,)
    for name, shape in _gated("experts", hidden, model.need("expert_hidden", WHY)).items():
        shapes[name] = (experts, *shape)
    if model.shared_experts:
        shapes |= _gated("shared", hidden, model.need("shared_hidden", WHY))
        if model.shared_gate:
            shapes["shared_gate"] = (hidden, 1)
    return shapes


def _gated(name: str, hidden: int, width: int) -> Shapes:
    """Shapes of one gated feed-forward block."""
    return {f"{name}.gate": (hidden, width), f"{name}.up": (hidden, width), f"{name}.down": (width, hidden)}
