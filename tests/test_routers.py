"""Every routing rule, on scores small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.model.router_kind import RouterKind
from tracer.model.routers import Router, choose, route, sigmoid, softmax, weigh
from tracer.model.spec import ModelSpec

LOGITS = np.log(np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]))
"""Softmax is n/36 and, once picked, weights are in the ratio of the numbers."""


def one(router: Router, logits: np.ndarray = LOGITS, bias: np.ndarray | None = None) -> tuple[list, list]:
    ids, weights = route(router, logits, bias)
    return ids[0].tolist(), weights[0].tolist()


def test_softmax_then_top_k() -> None:
    """Mixtral, Qwen3: renormalised; Qwen2, DeepSeek-V2-Lite: not."""
    ids, weights = one(Router(RouterKind.SOFTMAX_TOPK, 2))
    assert ids == [7, 6]
    assert weights == pytest.approx([8 / 15, 7 / 15])
    _, plain = one(Router(RouterKind.SOFTMAX_TOPK, 2, renormalise=False))
    assert plain == pytest.approx([8 / 36, 7 / 36])


def test_deepseek_v2_takes_the_groups_with_the_best_expert() -> None:
    """Groups (1,8) (2,7) (3,6) (4,5): the best two hold 8 and 7; not renormalised, times 16."""
    logits = LOGITS[:, [0, 7, 1, 6, 2, 5, 3, 4]]
    router = Router(RouterKind.SOFTMAX_TOPK, 3, groups=4, top_groups=2, renormalise=False, scale=16.0)
    ids, weights = one(router, logits)
    assert ids == [1, 3, 2], "8, 7 and 2, though 6 is larger: its group is out"
    assert weights == pytest.approx([16 * 8 / 36, 16 * 7 / 36, 16 * 2 / 36])


def test_deepseek_v3_takes_the_groups_with_the_best_two() -> None:
    """Group sums of the two best sigmoids; the bias chooses and does not weigh; times 2.5."""
    scores = np.array([[0.9, 0.1, 0.1, 0.6, 0.5, 0.1, 0.55, 0.3, 0.2]])
    logits = np.log(scores / (1 - scores))
    router = Router(RouterKind.SIGMOID_BIAS_TOPK, 2, groups=3, top_groups=1, scale=2.5)
    ids, weights = one(router, logits, np.zeros(9))
    assert ids == [3, 4], "0.6 + 0.5 beats 0.9 + 0.1"
    assert weights == pytest.approx([2.5 * 0.6 / 1.1, 2.5 * 0.5 / 1.1])
    bias = np.zeros(9)
    bias[8] = 0.5
    ids, weights = one(router, logits, bias)
    assert ids == [8, 6], "0.2 + 0.5 and 0.55, in the third group"
    assert weights == pytest.approx([2.5 * 0.2 / 0.75, 2.5 * 0.55 / 0.75])


def test_gpt_oss_softmax_over_the_picked() -> None:
    ids, weights = one(Router(RouterKind.TOPK_SOFTMAX, 3))
    assert ids == [7, 6, 5]
    assert weights == pytest.approx([8 / 21, 7 / 21, 6 / 21])


def test_llama_4_sigmoid_of_one() -> None:
    router = Router(RouterKind.TOPK_SIGMOID, 1)
    ids, weights = one(router)
    assert ids == [7]
    assert weights == pytest.approx([8 / 9])
    assert router.weighs_input


def test_ties_go_to_the_lower_id() -> None:
    ids, _ = one(Router(RouterKind.SOFTMAX_TOPK, 3), np.zeros((1, 6)))
    assert ids == [0, 1, 2]


def test_picks_that_someone_gave_are_weighed_alike() -> None:
    weights = weigh(Router(RouterKind.SOFTMAX_TOPK, 2), LOGITS, np.array([[0, 3]]))
    assert weights[0].tolist() == pytest.approx([1 / 5, 4 / 5])


def test_group_limited_picks_stay_in_their_groups() -> None:
    logits = np.random.default_rng(0).standard_normal((500, 256))
    router = Router(RouterKind.SIGMOID_BIAS_TOPK, 8, groups=8, top_groups=4, scale=2.5)
    ids, weights = route(router, logits, np.zeros(256))
    assert max(len(set(row // 32)) for row in ids) <= 4
    assert np.allclose(weights.sum(axis=1), 2.5)
    assert all(len(set(row)) == 8 for row in ids)
    free = choose(Router(RouterKind.SIGMOID_BIAS_TOPK, 8), logits, np.zeros(256))
    assert max(len(set(row // 32)) for row in free) > 4


def test_rule_of_a_model() -> None:
    spec = ModelSpec(
        layers=1, experts=16, top_k=2, router="sigmoid_bias_topk", expert_groups=4, top_groups=2,
        routed_scale=2.5, renormalise=True,
    )  # fmt: skip
    assert Router.of(spec) == Router(RouterKind.SIGMOID_BIAS_TOPK, 2, 4, 2, True, 2.5)
    assert Router.of(ModelSpec(layers=1, experts=4, top_k=2)) == Router(RouterKind.SOFTMAX_TOPK, 2)


def test_large_logits_do_not_overflow() -> None:
    far = np.array([[-1000.0, 0.0, 1000.0]])
    assert softmax(far).tolist() == [[0.0, 0.0, 1.0]]
    assert sigmoid(far).tolist() == [[0.0, 0.5, 1.0]]
