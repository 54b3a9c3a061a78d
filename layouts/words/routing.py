"""What is told of routing's own exchanges: counts of rows per expert, and the gates' probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from layouts.words.plain import plain_hop

if TYPE_CHECKING:
    from layouts.scene.scene import Words
    from layouts.words.context import Context


def counts_reduce(context: Context) -> Words:
    """Counts are summed over TP and CP, for the loss that balances experts."""
    why = (
        "The balancing loss asks how many rows every expert gets, and each rank has counted its own rows "
        "alone. No row of the token moves."
    )
    return replace(plain_hop(context), why=why)


def counts_gather(context: Context) -> Words:
    """Counts reach the whole dispatch group before any row does."""
    why = (
        "An all-to-all needs the sizes before the rows: every rank says how many rows it will send to each "
        "expert, so that the others know how much room to make."
    )
    return replace(plain_hop(context), why=why)


def probs_dispatch(context: Context) -> Words:
    """One probability goes beside each copy of the row."""
    why = (
        "The expert's GPU multiplies its output by the gate's probability, which only the sender knows: one "
        "number goes beside each copy of the row."
    )
    return replace(plain_hop(context), why=why)
