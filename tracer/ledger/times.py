"""Figures on time of the article on weights that move, each beside the model's own answer."""

from __future__ import annotations

from tracer.ledger.line import Check, LedgerLine, Verdict
from tracer.ledger.weights_move import SOURCE
from tracer.timing.dwdp_crossover import crossover_prompt
from tracer.timing.measurements import published
from tracer.timing.published_dwdp import (
    LENGTHS,
    compare_synchronization,
    source_contests,
    source_group,
)

WITHIN = 0.25


def window() -> LedgerLine:
    """Compute against prefetch at four prompt lengths."""
    ours = [each.window_ratio for each in source_contests(plain=True)]
    stated = [row["compute_over_prefetch"] for row in published("dwdp")["roofline"]["rows"]]
    worst = max(abs(o / s - 1) for o, s in zip(ours, stated, strict=True))
    return LedgerLine(
        SOURCE,
        "compute / prefetch 0.19, 0.62, 1.52, 4.77 at 1K, 8K, 16K, 32K",
        Verdict.PUBLISHED,
        ", ".join(f"{value:.2f}" for value in ours),
        worst <= WITHIN,
        f"peak rates, BF16 attention, NVFP4 experts, nothing fitted; worst error {worst:.0%}",
    )


def speedup() -> LedgerLine:
    """DEP against DWDP at four prompt lengths: the crossover, and a gain that is not monotonic."""
    ours = [each.speedup for each in source_contests()]
    crossing = crossover_prompt(source_group())
    return LedgerLine(
        SOURCE,
        "DEP / DWDP 0.10, 0.73, 1.27, 1.17 at 1K, 8K, 16K, 32K",
        Verdict.PUBLISHED,
        ", ".join(f"{value:.2f}" for value in ours),
        crossing is not None and LENGTHS[1] < crossing < LENGTHS[2] and ours[3] < ours[2],
        f"every pick sent; crosses at {crossing:,} tokens, and the gain falls again past {LENGTHS[2]:,}",
    )


def synchronization() -> LedgerLine:
    """What waiting costs when prompts differ in length."""
    compared = compare_synchronization()
    return LedgerLine(
        SOURCE,
        "synchronization 12 % (blog: 10 %) at a CV of 20 %",
        Verdict.PUBLISHED,
        f"{compared.rows[0].predicted:.1f} % when all of the time varies with length",
        compared.rows[0].predicted > 0,
        compared.assumptions,
    )


CHECKS: tuple[Check, ...] = (window, speedup, synchronization)
