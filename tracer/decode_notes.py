"""What the log of a decode trip adds: the rule that chose, the K/V that others move, the batch's padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.decode_attention import attention_way, pass_rule
from tracer.dtype import BYTES
from tracer.hops.kv_exchange import kv_elements
from tracer.kv_layout import kv_tps

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def decode_notes(scenario: Scenario) -> list[str]:
    """Lines for the log, none about what the scenario does not have."""
    landing = scenario.decode_landing
    notes = _attention(scenario)
    if scenario.plan.dcp > 1:
        held = ", ".join(map(str, kv_tps(scenario, scenario.position)))
        notes.append(
            f"dcp {scenario.plan.dcp} carved from tp {scenario.mesh.size_of('tp')}: the position's K/V is on "
            f"TP ranks {held}"
        )
    if landing.padded > landing.batch:
        notes.append(f"batch padded by {landing.padded - landing.batch} rows to {landing.padded}")
    return notes


def _attention(scenario: Scenario) -> list[str]:
    """Which of the two travels, by what rule, and what passing K/V costs the rest of the request."""
    if scenario.mesh.size_of("cp") == 1:
        return []
    way, cp = attention_way(scenario), scenario.mesh.size_of("cp")
    notes = []
    if scenario.plan.decode_attention == "auto":
        word = "pass-Q" if way == "pass_q" else "pass-KV"
        sharded = f"dcp = {scenario.plan.dcp} shards every context"
        why = sharded if scenario.plan.dcp > 1 else f"{pass_rule(scenario)} (arXiv 2411.01783)"
        notes.append(f"decode attention is {word}: {why}")
    if way == "pass_kv":
        each = kv_elements(scenario) * BYTES[scenario.dtype.kv] * scenario.mesh.size_of("tp")
        notes.append(
            f"K/V of the {scenario.position:,} positions before this one goes to the other {cp - 1} CP ranks "
            f"too: {each * scenario.position * (cp - 1):,} bytes a layer, not counted here"
        )
    return notes
