"""Which experts a token's router picks: given, or drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

WHY = "pick experts"


def draw_picks(
    model: ModelSpec, layers: int, *, seed: int, replica: int, position: int
) -> list[tuple[int, ...]]:
    """Uniform picks without repeats of one token, ``top_k`` experts for each of ``layers`` MoE layers.

    A model with group-limited routing first draws ``top_groups`` of its ``expert_groups``, then experts
    within them. The draw depends on the seed, the replica and the position alone. A pick of an expert
    without weights goes nowhere and is left out.
    """
    experts, top_k = model.need("experts", WHY), model.need("top_k", WHY)
    random = Random(f"{seed}/{replica}/{position}")
    if not _limited(model):
        drawn = [random.sample(range(experts + model.zero_experts), top_k) for _ in range(layers)]
        return [tuple(expert for expert in picks if expert < experts) for picks in drawn]
    all_groups, kept = model.need("expert_groups", WHY), model.need("top_groups", WHY)
    share = experts // all_groups
    picks = []
    for _ in range(layers):
        groups = random.sample(range(all_groups), kept)
        places = random.sample(range(len(groups) * share), top_k)
        picks.append(tuple(groups[place // share] * share + place % share for place in places))
    return picks


def _limited(model: ModelSpec) -> bool:
    return bool(model.expert_groups and model.top_groups and 1 <= model.top_groups < model.expert_groups)


def describe_draw(model: ModelSpec, seed: int) -> str:
    """How picks that nobody gave were made, for the log."""
    limit = f" within {model.top_groups} of {model.expert_groups} expert groups" if _limited(model) else ""
    zero = f", {model.zero_experts} experts without weights among them" if model.zero_experts else ""
    return f"drawn uniformly without repeats{limit}{zero}, seed {seed}"


def check_picks(model: ModelSpec, picks: Mapping[int, Sequence[int]]) -> None:
    """Refuse picks that the model's router could not make.

    Raises:
        ConfigError: naming the layer, for a dense or unknown layer, a wrong number of picks, a repeat,
            or an expert that does not exist.
    """
    if not picks:
        return
    count, last = model.need("top_k", WHY), model.need("experts", WHY) - 1
    for layer, experts in picks.items():
        field = f"picks.{layer}"
        if not 1 <= layer <= model.layers:
            raise ConfigError(
                field, list(experts), f"names a layer outside 1 to {model.layers}", "number layers from 1"
            )
        if not model.is_moe(layer):
            raise ConfigError(
                field, list(experts), "names a dense layer, which has no router", "leave it out"
            )
        if len(experts) != count and not (model.zero_experts and len(experts) < count):
            raise ConfigError(field, list(experts), f"must name top_k = {count} experts", "add or drop some")
        for expert in experts:
            if not 0 <= expert <= last:
                raise ConfigError(
                    field, list(experts), f"must name experts from 0 to {last}", f"mend {expert}"
                )
        if len(set(experts)) != len(experts):
            raise ConfigError(
                field, list(experts), "names an expert twice, which top-k never does", "name each once"
            )
