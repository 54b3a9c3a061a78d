"""TensorRT-LLM's load balancer: how many expert slots there are, and which expert starts in each.

``moe_config.load_balancer`` has ``num_slots``, and may have ``initial_global_assignments``: by layer index
from 0, the expert of each slot, EP rank after EP rank (``MoeLoadBalancerConfig`` of
``tensorrt_llm/llmapi/llm_args.py``; ``examples/wide_ep/ep_load_balancer/generate_eplb_config.py`` writes such
tables).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError, whole_number
from tracer.frameworks.common import MAX_EXPERT_SLOTS
from tracer.frameworks.notes import Note, Refusal
from tracer.scenario.placement import Placement

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request


def balancer_slots(request: Request) -> int | None:
    """``moe_config.load_balancer.num_slots``; None where it is absent, or the balancer is in a file."""
    balancer = request.settings.table("moe_config").get("load_balancer")
    value = balancer.get("num_slots") if isinstance(balancer, dict) else None
    if value is None:
        return None
    return whole_number("moe_config.load_balancer.num_slots", value, at_most=MAX_EXPERT_SLOTS)


def balanced(slots: int, experts: int, ep: int) -> Placement:
    """Slots that a balancer starts from: each EP rank's own experts, then the first of the next rank's.

    Source: ``tensorrt_llm/_torch/modules/fused_moe`` (initial_global_assignments):
    ``(ep_rank · experts // ep + slot) mod experts`` for the ``slots // ep`` slots of a rank.
    """
    share = slots // ep
    table = [(rank * experts // ep + slot) % experts for rank in range(ep) for slot in range(share)]
    if slots % ep or set(table) != set(range(experts)):
        raise Refusal(
            "moe_config",
            f"load_balancer.num_slots ({slots}) must be whole slots on each of {ep} EP ranks, enough for "
            f"{experts} experts",
            otherwise=f"try num_slots {-(-experts // ep) * ep}",
        )
    return Placement.table(table, ep, experts)


def assigned_slots(request: Request, ep: int) -> tuple[tuple[int, Placement], ...]:
    """``load_balancer.initial_global_assignments``: the expert of each slot, by layer index from 0.

    Layers that it leaves out start from the balancer's default.

    Raises:
        ConfigError: naming the layer, for one without experts, or a table that is not ``num_slots`` experts,
            each at least once.
    """
    balancer = request.settings.table("moe_config").get("load_balancer")
    given = balancer.get("initial_global_assignments") if isinstance(balancer, dict) else None
    slots, model = balancer_slots(request), request.model
    if not given or slots is None or model is None or model.experts is None:
        return ()
    field = "moe_config.load_balancer.initial_global_assignments"
    if not isinstance(given, dict) or len(given) * slots > MAX_EXPERT_SLOTS:
        rule = f"must be a table of layers, of {MAX_EXPERT_SLOTS:,} slots in all at most"
        raise ConfigError(field, type(given).__name__, rule, "write {layer: [expert of each slot]}")
    found = []
    for key, table in given.items():
        text = str(key)
        layer = int(text) + 1 if text.isascii() and text.isdigit() and len(text) < 7 else 0
        if not 1 <= layer <= model.layers or not model.is_moe(layer):
            rule = f"names a layer without experts; the model's layers are 0 to {model.layers - 1}"
            raise ConfigError(f"{field}.{text[:20]}", text[:20], rule, "name MoE layers")
        if not isinstance(table, list) or len(table) != slots:
            rule = f"must list the expert of each of num_slots = {slots} slots"
            raise ConfigError(f"{field}.{text}", "a table", rule, f"list {slots} experts")
        experts = [whole_number(f"{field}.{text}", expert, at_least=0) for expert in table]
        found.append((layer, Placement.table(experts, ep, model.experts)))
    return tuple(sorted(found, key=lambda pair: pair[0]))


def balancer_notes(request: Request) -> list[Note]:
    """A load balancer in a file is not laid out."""
    balancer = request.settings.table("moe_config").get("load_balancer")
    if isinstance(balancer, str):
        return [
            Note(
                "load_balancer_not_read",
                f"moe_config.load_balancer is a file ({balancer}), which is not opened: experts are laid out "
                "without spare slots",
                "write its num_slots into moe_config.load_balancer",
            )
        ]
    return []
