"""Whether in decode the query travels or K/V does, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.model_spec import ModelSpec
    from tracer.scenario import Scenario


@dataclass(frozen=True, slots=True)
class PassRule:
    """The published choice between passing queries and passing K/V, with its numbers.

    Queries are smaller when ``new / (new + cached) <= kv_elements / query_elements``; with heads of one
    width the right side is ``2 · kv_heads / heads`` (arXiv 2411.01783, equation for pass-Q: 0.125 for
    Llama 3 405B). What returns, partial outputs, is not in the rule.

    >>> PassRule(new=1, cached=64, kv_elements=2 * 8 * 128, query_elements=128 * 128).way
    'pass_q'
    """

    new: int
    cached: int
    kv_elements: int
    query_elements: int

    @property
    def miss_rate(self) -> float:
        """Share of the context that is new."""
        return self.new / (self.new + self.cached)

    @property
    def threshold(self) -> float:
        """Largest share for which queries are the smaller load."""
        return self.kv_elements / self.query_elements

    @property
    def way(self) -> str:
        """``pass_q`` or ``pass_kv``."""
        return "pass_q" if self.miss_rate <= self.threshold else "pass_kv"

    def __str__(self) -> str:
        sign = "<=" if self.way == "pass_q" else ">"
        return (
            f"{self.new} new / {self.new + self.cached:,} in context = {self.miss_rate:.3g} {sign} "
            f"{self.kv_elements:,} K/V / {self.query_elements:,} query elements = {self.threshold:.3g}"
        )


def query_elements_per_token(model: ModelSpec) -> int:
    """Elements of one token's query over all heads; MLA: absorbed into the latent."""
    why = "size a query"
    width = model.kv_values_per_token if model.mla else model.need("head_dim", why)
    return model.need("heads", why) * width


def pass_rule(scenario: Scenario) -> PassRule:
    """The rule for the scenario's token: alone new, all positions before it cached."""
    model = scenario.need_model()
    return PassRule(1, scenario.position, model.kv_values_per_token, query_elements_per_token(model))


def attention_way(scenario: Scenario) -> str:
    """``pass_q`` or ``pass_kv``: as the scenario says, or by the rule when it says ``auto``.

    With dcp > 1 no rank of a TP group has a KV head's whole context, so the query travels whatever it costs.
    """
    said = scenario.plan.decode_attention
    if said != "auto":
        return said
    return "pass_q" if scenario.plan.dcp > 1 else pass_rule(scenario).way
