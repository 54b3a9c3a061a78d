"""How many rows a replica puts through one forward pass: a prompt, or in decode a token of each request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.errors import whole_number
from tracer.model.weight_format import WeightFormat
from tracer.scenario.scenario import Scenario

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario


def bytes_per_expert(scenario: Scenario) -> int:
    """Bytes of one routed expert: gate, up and down projections.

    They are stored as the model says; where it says nothing, in the scenario's weights dtype.
    """
    # Only a layout that pulls experts asks: others do without the parameter counts.
    from tracer.model.parameters import expert_bytes

    return expert_bytes(scenario.model, WeightFormat(scenario.dtype.weights))


def mesh_line(scenario: BareScenario) -> str:
    """The mesh in one line: sizes above 1, experts, order, what is run."""
    mesh, plan = scenario.mesh, scenario.plan
    dense = " ".join(
        f"{axis}{mesh.size_of(axis)}" for axis in ("tp", "cp", "dp", "pp") if mesh.size_of(axis) > 1
    )
    expert = " ".join(
        f"{axis}{mesh.size_of(axis)}" for axis in ("etp", "ep", "edp") if mesh.size_of(axis) > 1
    )
    order = "-".join(mesh.dense.names)
    parts = [f"{mesh.world_size:,} GPUs", dense or "one rank", expert, f"order {order}", f"SP {plan.sp}"]
    if isinstance(scenario, Scenario) and scenario.model.moe_layers:
        parts.append(f"MoE contract {plan.contract}")
    return " · ".join(part for part in parts if part)


def tokens_per_replica(scenario: Scenario) -> int:
    """T of the closed forms, padding included: the prompt's rows, or those of all CP ranks' batches.

    >>> from tracer.scenario.files import load_scenario
    >>> tokens_per_replica(load_scenario("six-cuts")), tokens_per_replica(load_scenario("six-cuts-decode"))
    (64, 4)
    """
    if scenario.decodes:
        return scenario.mesh.cp * scenario.decode_landing.padded
    return scenario.landing.padded


def real_tokens_per_replica(scenario: Scenario) -> int:
    """The same without padding."""
    if scenario.decodes:
        return scenario.mesh.cp * scenario.decode_landing.batch
    return scenario.token.prompt


def with_tokens(scenario: Scenario, tokens: int) -> Scenario:
    """The same scenario with ``tokens`` tokens per replica; the token followed stays inside them.

    In decode they are requests, one new token each, spread over the CP ranks.

    Raises:
        ConfigError: when ``tokens`` is not a whole number of at least 1.
    """
    whole_number("tokens", tokens)
    token = replace(scenario.token, gpu=None, replica=scenario.replica, position=scenario.position)
    if scenario.decodes:
        batch = -(-tokens // scenario.mesh.cp)
        slot = min(scenario.slot or 0, batch - 1)
        return scenario.with_(token=replace(token, batch=batch, slot=slot))
    position = min(scenario.position, tokens - 1)
    return scenario.with_(token=replace(token, prompt=tokens, position=position))


def pass_words(scenario: Scenario) -> str:
    """What one pass is called in the scenario's phase."""
    return "decode step" if scenario.decodes else "forward pass"


def rows_words(scenario: Scenario, rows: int) -> str:
    """What T stands for in the scenario's phase, with its number."""
    if scenario.decodes:
        return f"decode: T = {rows:,} padded new tokens per replica, one of each request of a step"
    return f"prefill: T = {rows:,} padded tokens per replica"
