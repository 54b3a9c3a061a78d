"""Whether a recorded value holds picks or expert counts: its keys say so, else the length of its last axis.

Counts have a number for each expert of a layer; picks have the ``top_k`` experts of a token.
"""

from __future__ import annotations

from tracer.errors import ConfigError

LOGICAL = ("logical_count", "counts", "expert_counts", "tokens_per_expert")
PHYSICAL = ("global_physical_count", "expert_load_window", "expert_load_pass", "expert_load")
MAPS = ("last_physical_to_logical_map", "physical_to_logical_map", "phy2log")
_MOST_DIGITS = 9


def counts_key(value: object) -> str | None:
    """The key under which a value holds counts; None for one that does not say."""
    if not isinstance(value, dict):
        return None
    first = next((str(key) for key in value if iteration_of(key) is not None), None)
    if first is not None:
        return first
    records = value.get("records")
    if isinstance(records, list) and records and isinstance(records[0], dict) and PHYSICAL[0] in records[0]:
        return f"records[0].{PHYSICAL[0]}"
    return next((key for key in (*LOGICAL, *PHYSICAL) if key in value), None)


def iteration_of(key: object) -> tuple[int, int] | None:
    """(iteration, layer) of TensorRT-LLM's keys, ``"<iteration>_<layer>"``.

    >>> iteration_of("50_3"), iteration_of("arr_0")
    ((50, 3), None)
    """
    parts = str(key).split("_")
    if len(parts) != 2 or not all(p.isascii() and p.isdigit() and len(p) <= _MOST_DIGITS for p in parts):
        return None
    return int(parts[0]), int(parts[1])


def looks_like_counts(shape: tuple[int, ...], experts: int | None, top_k: int | None) -> bool:
    """Whether the last axis has a number for each expert, which a token's picks have not."""
    return bool(shape) and shape[-1] == experts and experts != top_k


def check_are_picks(what: str, shape: tuple[int, ...], experts: int | None, top_k: int | None) -> None:
    """Refuse counts that are given as picks.

    Raises:
        ConfigError: naming the option that takes them.
    """
    if looks_like_counts(shape, experts, top_k):
        raise are_counts(what, experts, top_k)


def are_counts(what: str, experts: int | None, top_k: int | None) -> ConfigError:
    """The error for counts that are given as picks."""
    rule = f"has a number for each of {experts} experts: those are counts, and a token picks {top_k}"
    return ConfigError("picks", what, rule, "give counts as --counts FILE to census or eplb")
