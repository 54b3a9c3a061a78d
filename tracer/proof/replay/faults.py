"""Known mistakes, by name: switch one on and replay fails and says where first."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, listed, nearest
from tracer.model.routers import Router
from tracer.scenario.plan import Contract, PromptCut, Sp

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


class Fault(StrEnum):
    """A mistake that an implementation can make and still run."""

    ROPE_LOCAL = "rope_local"
    MERGE_UNWEIGHTED = "merge_unweighted"
    MASK_CONTIGUOUS = "mask_contiguous"
    BIAS_IN_WEIGHTS = "bias_in_weights"
    DISPATCH_TWICE = "dispatch_twice"


MEANING = {
    Fault.ROPE_LOCAL: "rotary embedding by a row's index on its CP rank, not by its position in the prompt",
    Fault.MERGE_UNWEIGHTED: "partial attentions averaged, without their m and ℓ",
    Fault.MASK_CONTIGUOUS: "causal mask as if the prompt were cut contiguously, though it lies in zigzag",
    Fault.BIAS_IN_WEIGHTS: "gate weights taken from score + bias, where the bias should only choose",
    Fault.DISPATCH_TWICE: "rows gathered over TP before dispatch, so that every TP rank dispatches them",
}


def check_fault(scenario: Scenario, name: str | None) -> Fault | None:
    """The fault of a name, when it can show in this scenario.

    Raises:
        ConfigError: for an unknown name, or a scenario in which the mistake changes nothing.
    """
    if name is None:
        return None
    if name not in tuple(Fault):
        known = [str(fault) for fault in Fault]
        raise ConfigError("fault", name, f"must be {listed(known)}", nearest(name, known))
    fault = Fault(name)
    lacking = _lacks(scenario, fault)
    if lacking is not None:
        raise ConfigError("fault", str(fault), f"cannot show here: {MEANING[fault]}", f"it needs {lacking}")
    return fault


def faults_of(scenario: Scenario) -> tuple[Fault, ...]:
    """The faults that can show in a scenario."""
    return tuple(fault for fault in Fault if _lacks(scenario, fault) is None)


def _lacks(scenario: Scenario, fault: Fault) -> str | None:
    """What a scenario would need for a fault to show, or None when it has it."""
    size_of, model, plan = scenario.mesh.size_of, scenario.model, scenario.plan
    if fault is Fault.BIAS_IN_WEIGHTS:
        biased = (
            model.moe_layers > 0 and Router.of(model).has_bias and model.need("top_k", "pick experts") > 1
        )
        return None if biased else "a router with a bias, for instance model.router = 'sigmoid_bias_topk'"
    if fault is Fault.DISPATCH_TWICE:
        shares = plan.contract in (Contract.EP, Contract.AG_RS) and plan.sp is not Sp.OFF
        group = size_of("ep") * size_of("etp")
        able = shares and model.moe_layers > 0 and size_of("tp") > 1 and group > 1
        return None if able else "tp above 1, SP, and routed experts on more than one GPU"
    if size_of("cp") == 1:
        return "cp above 1"
    if fault is Fault.MERGE_UNWEIGHTED and plan.head_parts(size_of("cp")) == size_of("cp"):
        return "K/V of several CP ranks to merge over, for instance mesh.kv_exchange = 'ring'"
    if fault is Fault.MASK_CONTIGUOUS and plan.landing is not PromptCut.ZIGZAG:
        return "mesh.landing = 'zigzag'"
    return None
