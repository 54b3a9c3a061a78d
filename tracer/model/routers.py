"""How router logits become ``top_k`` experts and their weights, for many tokens at once.

Sources: deepseek-ai/DeepSeek-V3 ``inference/model.py`` class Gate; transformers 5.24.0
DeepseekV3TopkRouter, MixtralTopKRouter, GptOssTopKRouter and Llama4Router.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.model.router_kind import RouterKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.model.spec import ModelSpec

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

BEST_OF_A_GROUP = 2


@dataclass(frozen=True, slots=True)
class Router:
    """A routing rule; the words are those of :class:`RouterKind` and :class:`ModelSpec`.

    ``groups`` = 1 means that no group limits the choice.
    """

    kind: RouterKind
    top_k: int
    groups: int = 1
    top_groups: int = 1
    renormalise: bool = True
    scale: float = 1.0

    @classmethod
    def of(cls, model: ModelSpec) -> Router:
        """The router of a model; one that states none gets a softmax over all experts, renormalised.

        Raises:
            ConfigError: when the model states no ``top_k``.
        """
        return cls(
            model.router or RouterKind.SOFTMAX_TOPK,
            model.need("top_k", "pick experts"),
            model.expert_groups or 1,
            model.top_groups or 1,
            True if model.renormalise is None else model.renormalise,
            1.0 if model.routed_scale is None else model.routed_scale,
        )

    @property
    def has_bias(self) -> bool:
        """Whether a learned bias takes part in the choice."""
        return self.kind is RouterKind.SIGMOID_BIAS_TOPK

    @property
    def weighs_input(self) -> bool:
        """Whether an expert's weight multiplies its input instead of its output (Llama-4)."""
        return self.kind is RouterKind.TOPK_SIGMOID


def route(router: Router, logits: FloatArray, bias: FloatArray | None = None) -> tuple[IntArray, FloatArray]:
    """Experts and weights of each token.

    ``logits`` is ``[tokens, experts]`` float64, ``bias`` ``[experts]`` float64 or None. Returns ids
    ``[tokens, top_k]`` int64, best first (ties to the lower id), and weights ``[tokens, top_k]``.
    """
    ids = choose(router, logits, bias)
    return ids, weigh(router, logits, ids)


def choose(router: Router, logits: FloatArray, bias: FloatArray | None = None) -> IntArray:
    """Ids ``[tokens, top_k]`` int64 of the experts that a router picks from ``[tokens, experts]`` logits."""
    choice = choice_scores(router, logits, bias)
    if router.top_groups < router.groups:
        choice = np.where(_kept(router, choice), choice, -np.inf)
    return _best(choice, router.top_k)


def choice_scores(router: Router, logits: FloatArray, bias: FloatArray | None = None) -> FloatArray:
    """What experts are ranked by, ``[tokens, experts]``."""
    scores = expert_scores(router, logits)
    return scores + bias if router.has_bias and bias is not None else scores


def expert_scores(router: Router, logits: FloatArray) -> FloatArray:
    """An expert's score before any bias, ``[tokens, experts]``; a top-k-first router ranks logits."""
    if router.kind is RouterKind.SIGMOID_BIAS_TOPK:
        return sigmoid(logits)
    if router.kind is RouterKind.SOFTMAX_TOPK:
        return softmax(logits)
    return logits


def weigh(router: Router, logits: FloatArray, ids: IntArray) -> FloatArray:
    """Weights ``[tokens, top_k]`` of picked experts, whoever picked them; a bias never enters."""
    picked = np.take_along_axis(expert_scores(router, logits), ids, axis=1)
    if router.kind is RouterKind.TOPK_SOFTMAX:
        return softmax(picked)
    if router.kind is RouterKind.TOPK_SIGMOID:
        return sigmoid(picked)
    return scaled(router, picked)


def scaled(router: Router, picked: FloatArray) -> FloatArray:
    """Picked scores ``[tokens, top_k]`` divided by their sum where the model does so, times its scale."""
    if router.renormalise:
        picked = picked / picked.sum(axis=1, keepdims=True)
    return picked * router.scale


def _kept(router: Router, choice: FloatArray) -> NDArray[np.bool_]:
    """Which experts lie in a token's best groups, ``[tokens, experts]``.

    A group's score is the sum of its two best choices (DeepSeek-V3), or its best (DeepSeek-V2).
    """
    tokens, experts = choice.shape
    by_group = choice.reshape(tokens, router.groups, experts // router.groups)
    best = min(BEST_OF_A_GROUP, by_group.shape[2]) if router.has_bias else 1
    group_scores = np.sort(by_group, axis=2)[:, :, -best:].sum(axis=2)
    kept = np.zeros((tokens, router.groups), dtype=bool)
    np.put_along_axis(kept, _best(group_scores, router.top_groups), True, axis=1)
    return np.repeat(kept, experts // router.groups, axis=1)


def _best(scores: FloatArray, count: int) -> IntArray:
    """Columns of the ``count`` largest scores of each row, largest first, ties to the lower column."""
    order: IntArray = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return order


def softmax(scores: FloatArray) -> FloatArray:
    """Softmax over the last axis."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: FloatArray = raised / raised.sum(axis=-1, keepdims=True)
    return result


def sigmoid(scores: FloatArray) -> FloatArray:
    """Logistic function of each element, without overflow."""
    result: FloatArray = np.exp(-np.logaddexp(0.0, -scores))
    return result
