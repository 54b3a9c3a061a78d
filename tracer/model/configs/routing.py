"""How a config says its router picks experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.parts import SHARED
from tracer.model.router_kind import RouterKind

# (scoring_func, topk_method) -> (router, whether groups limit the choice)
_ROUTERS = {
    ("sigmoid", "noaux_tc"): (RouterKind.SIGMOID_BIAS_TOPK, True),
    ("softmax", "group_limited_greedy"): (RouterKind.SOFTMAX_TOPK, True),
    ("softmax", "greedy"): (RouterKind.SOFTMAX_TOPK, False),
}
_SCORES = {"sigmoid": RouterKind.SIGMOID_BIAS_TOPK, "softmax": RouterKind.SOFTMAX_TOPK}
_SCORE_KEYS = ("scoring_func", "score_function", "moe_router_activation_func")
_RENORMALISE_KEYS = ("norm_topk_prob", "moe_renormalize", "route_norm")
_SCALE_KEYS = (
    "routed_scaling_factor",
    "route_scale",
    "router_scaling_factor",
    "moe_router_scaling_factor",
    "moe_routed_scaling_factor",
)


def deepseek_routing(keys: ConfigKeys) -> dict[str, Any]:
    """Router, groups, scale; a pair of scoring_func and topk_method without a known meaning is refused."""
    score = keys.word("scoring_func", {"sigmoid": "sigmoid", "softmax": "softmax"})
    methods = {method: both for (scoring, method), both in _ROUTERS.items() if scoring == score}
    router, grouped = keys.word("topk_method", methods)
    renormalise = keys.flag("norm_topk_prob")
    if renormalise and router == RouterKind.SOFTMAX_TOPK:
        rule = "has no one meaning with softmax scores: DeepSeek-V2's code then leaves the scale out"
        raise ConfigError(keys.field("norm_topk_prob"), True, rule, "give the model in [model] instead")
    return {
        "router": router,
        "expert_groups": keys.size("n_group") if grouped else None,
        "top_groups": keys.size("topk_group") if grouped else None,
        "routed_scale": keys.number("routed_scaling_factor"),
        "renormalise": renormalise,
        "shared_experts": keys.whole("n_shared_experts"),
    }


def routing(
    default: RouterKind,
    *,
    groups: bool = False,
    group_key: str = "n_group",
    renormalise: str | bool | None = None,
    shared_experts: int | None = None,
) -> Callable[[ConfigKeys], dict[str, Any]]:
    """The router of a family whose scores are ``default`` unless a key says otherwise.

    ``renormalise`` is fixed, or the key that states it (``!key``: true where it is absent).
    """

    def read(keys: ConfigKeys) -> dict[str, Any]:
        key = keys.first(*_SCORE_KEYS)
        found: dict[str, Any] = {
            "router": keys.word(key, _SCORES) if keys.has(key) else default,
            "shared_experts": keys.whole(keys.first(*SHARED)) if shared_experts is None else shared_experts,
            "renormalise": _renormalise(keys, renormalise),
        }
        scale = keys.first(*_SCALE_KEYS)
        if keys.has(scale):
            found["routed_scale"] = keys.number(scale)
        if groups and keys.has(group_key):
            found |= {"expert_groups": keys.size(group_key), "top_groups": keys.size("topk_group")}
        return found

    return read


def _renormalise(keys: ConfigKeys, stated: str | bool | None) -> bool | None:
    if isinstance(stated, bool):
        return stated
    if stated is None:
        key = keys.first(*_RENORMALISE_KEYS)
        return keys.flag(key) if keys.has(key) else None
    key = stated.removeprefix("!")
    return keys.switch(key, True) if stated.startswith("!") else keys.flag(key)
