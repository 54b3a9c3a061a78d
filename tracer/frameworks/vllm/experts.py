"""vLLM's expert placement: strategy, its silent fallback, redundant experts, and uneven remainders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.common import with_redundant
from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.vllm.checks import EPLB, redundant_experts
from tracer.frameworks.vllm.flags import ROUND_ROBIN_BACKENDS
from tracer.scenario.placement import Placement, PlacementKind, Remainder

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request


def place_experts(
    request: Request, ep: int, backend: str, all2all: bool
) -> tuple[Placement | None, list[Note]]:
    """The placement over ``ep`` ranks, and what happened to a strategy asked for in vain.

    Source: ``expert_map_manager.py`` (determine_expert_placement_strategy, determine_expert_map).
    """
    strategy, notes = _strategy(request, ep, backend, all2all)
    experts, redundant = request.experts, redundant_experts(request)
    if experts is None:
        return None, notes
    if request.settings.on(EPLB):
        physical = experts + redundant
        if physical % ep:
            more = -physical % ep + redundant
            raise Refusal(
                "eplb_config",
                f"n_physical_experts={physical} must be divisible by ep_size={ep}. Adjust "
                "num_redundant_experts.",
                otherwise=f"try --eplb-config.num_redundant_experts {more}",
            )
        if redundant:
            return with_redundant(experts, redundant, ep), notes
    if experts % ep:
        notes.append(_uneven(experts, ep))
    remainder = Remainder.FIRST if experts % ep else Remainder.REFUSE
    return Placement(experts, ep, strategy, remainder), notes


def _strategy(request: Request, ep: int, backend: str, all2all: bool) -> tuple[PlacementKind, list[Note]]:
    settings = request.settings
    if settings.text("expert_placement_strategy") != "round_robin" or ep == 1:
        return PlacementKind.LINEAR, []
    groups = request.model.expert_groups if request.model is not None else None
    if request.model is not None and not (groups and groups > 1):
        why = "the model has no more than one expert group"
    elif redundant_experts(request) or settings.on(EPLB):
        why = "EPLB or redundant experts are on"
    elif all2all and backend not in ROUND_ROBIN_BACKENDS:
        why = f"the all2all backend is {backend}, not {' or '.join(ROUND_ROBIN_BACKENDS)}"
    else:
        return PlacementKind.ROUND_ROBIN, []
    return PlacementKind.LINEAR, [
        Note(
            "round_robin_fallback",
            f"--expert-placement-strategy round_robin falls back to linear: {why}",
            f"--all2all-backend {ROUND_ROBIN_BACKENDS[0]} without EPLB keeps it, given expert groups",
        )
    ]


def _uneven(experts: int, ep: int) -> Note:
    share, extra = divmod(experts, ep)
    return Note(
        "uneven_experts",
        f"{experts} experts over {ep} EP ranks: the first {extra} ranks hold {share + 1}, the others {share}",
        "pick sizes whose product divides the experts",
    )
