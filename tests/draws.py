"""How much hypothesis draws: in ``make test`` always the same, in ``make fuzz`` five times as much, anew."""

from __future__ import annotations

from hypothesis import settings

#: What a property test draws when it says nothing of its own.
USUAL = 100


def draws(usual: int) -> int:
    """Examples of a test that draws ``usual`` of them in ``make test``."""
    return max(1, usual * settings.default.max_examples // USUAL)
