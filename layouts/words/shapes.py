"""What one GPU of the token's group holds before and after a hop; decode, with its few rows, shows none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.words import kinds
from tracer.mesh.axes import Axis

if TYPE_CHECKING:
    from layouts.words.context import Context

Shapes = tuple[str, str] | None


def _rows(context: Context) -> tuple[int, int]:
    """Rows of a rank outside attention, and inside it."""
    landing = context.scenario.landing
    return landing.tokens_per_rank, landing.tokens_per_rank * context.size(Axis.TP)


def hidden_shapes(context: Context, *, gather: bool) -> Shapes:
    """``[own tokens, hidden]`` and ``[group's tokens, hidden]``, in the hop's direction."""
    if context.scenario.decodes:
        return None
    own, group = _rows(context)
    hidden = context.model.need("hidden", "size a row")
    small, large = f"[{own:,} tokens, {hidden:,}]", f"[{group:,} tokens, {hidden:,}]"
    return (small, large) if gather else (f"{large} partial", small)


def attention_shapes(context: Context) -> Shapes:
    """Whole rows of few tokens become some heads of many tokens."""
    if context.scenario.decodes:
        return None
    own, group = _rows(context)
    model = context.model
    heads = kinds.heads_of(context) // context.size(Axis.TP)
    hidden = model.need("hidden", "size a row")
    return f"[{own:,} tokens, {hidden:,}]", f"[{group:,} tokens, {heads:,} heads]"


def kv_shapes(context: Context) -> Shapes:
    """K/V of one CP rank's tokens becomes K/V of all tokens."""
    if context.scenario.decodes:
        return None
    _, group = _rows(context)
    return f"K/V of {group:,} tokens", f"K/V of {group * context.size('cp'):,} tokens"
