"""Models that are known and refused, each with the reason: their counts would be guesses."""

from __future__ import annotations

REFUSED_MODEL_TYPES = {
    "deepseek_v4": (
        "is not read: its first layers route by hash, its scores are sqrtsoftplus, its attention is "
        "compressed by layer, and no parameter total of it has been checked"
    ),
    "glm_moe_dsa": (
        "is not read: its attention picks keys with a sparse indexer, and no parameter total of it has "
        "been checked"
    ),
    "minimax_m2": (
        "is not read: its routing bias and per-layer q/k norms are its own, and no parameter total of it "
        "has been checked"
    ),
}
REFUSED_PRESETS = {
    "deepseek-v4-flash": "deepseek_v4",
    "deepseek-v4-pro": "deepseek_v4",
    "glm-5": "glm_moe_dsa",
    "minimax-m2.5": "minimax_m2",
}
REFUSAL_FIX = "give the sizes that matter in [model] by hand"
