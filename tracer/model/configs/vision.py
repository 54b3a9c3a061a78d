"""Parameters of the vision encoders that come with a language model's own class (Gemma 3 and 4).

Source: transformers 5.24.0 ``models/gemma4`` and ``models/siglip`` modelling files.
"""

from __future__ import annotations

from tracer.model.configs.config_keys import ConfigKeys


def gemma4_vision(keys: ConfigKeys, text_hidden: int) -> int:
    """Patch embedder, layers with gated FFNs and q/k norms, and the projection to the text's size."""
    hidden, layers = keys.size("hidden_size"), keys.size("num_hidden_layers")
    heads, size = keys.size("num_attention_heads"), keys.size("head_dim")
    kv_heads, width = keys.size("num_key_value_heads"), keys.size("intermediate_size")
    attention = 2 * hidden * size * (heads + kv_heads) + 2 * size
    layer = attention + 3 * hidden * width + 4 * hidden
    patches = 3 * keys.size("patch_size") ** 2 * hidden + 2 * keys.size("position_embedding_size") * hidden
    return patches + layers * layer + text_hidden * hidden


def siglip_vision(keys: ConfigKeys, text_hidden: int) -> int:
    """SigLIP with Gemma-3's projector; its pooling head where the config keeps it."""
    hidden, layers = keys.size("hidden_size"), keys.size("num_hidden_layers")
    width, patch = keys.size("intermediate_size"), keys.size("patch_size")
    ffn = 2 * hidden * width + width + hidden
    layer = 4 * (hidden * hidden + hidden) + ffn + 4 * hidden
    patches = 3 * patch**2 * hidden + hidden + (keys.size("image_size") // patch) ** 2 * hidden
    head = hidden + 4 * (hidden * hidden + hidden) + ffn + 2 * hidden
    pooled = head if keys.switch("vision_use_head", True) else 0
    return patches + layers * layer + 2 * hidden + pooled + hidden * text_hidden + hidden


def gemma4_unified_vision(keys: ConfigKeys, text_hidden: int) -> int:
    """Gemma 4 without an encoder: a projection of merged patches, its norms and positions, and one more."""
    side = keys.size("patch_size") * keys.size("pooling_kernel_size")
    patch, wide = 3 * side**2, keys.size("mm_embed_dim")
    norms = 2 * patch + 4 * wide
    positions = 2 * keys.size("mm_posemb_size") * wide
    return norms + patch * wide + wide + positions + keys.size("output_proj_dims") * text_hidden
