"""The ways a router picks experts."""

from __future__ import annotations

from enum import StrEnum


class RouterKind(StrEnum):
    """How router logits become ``top_k`` experts and their weights.

    ``softmax_topk``: softmax over all experts, then top-k of it (Mixtral, Qwen2, Qwen3, DeepSeek-V2).
    A group's score, where groups limit the choice, is its best expert's.
    ``sigmoid_bias_topk``: scores are sigmoids; experts are chosen by score + learned bias, weighted by
    score alone (DeepSeek-V3, Kimi-K2, GLM-4.5). A group's score is the sum of its two best.
    ``topk_softmax``: top-k of the logits, then softmax over the k (gpt-oss).
    ``topk_sigmoid``: top-k of the logits, then a sigmoid of each (Llama-4).

    A spec's ``expert_groups`` and ``top_groups`` limit the choice to the best groups, ``renormalise``
    divides the k weights by their sum, ``routed_scale`` multiplies them after that.
    Sources: deepseek-ai/DeepSeek-V3 ``inference/model.py`` class Gate; transformers 5.24.0
    DeepseekV3TopkRouter and MixtralTopKRouter; the models' own config.json.
    """

    SOFTMAX_TOPK = "softmax_topk"
    SIGMOID_BIAS_TOPK = "sigmoid_bias_topk"
    TOPK_SOFTMAX = "topk_softmax"
    TOPK_SIGMOID = "topk_sigmoid"
