"""Figures on time of the article on weights that move, each beside the model's own answer."""

from __future__ import annotations

from tracer.proof.ledger.line import Check, LedgerLine, Verdict
from tracer.proof.ledger.weights_move import SOURCE
from tracer.proof.published.dwdp import LENGTHS, compare_synchronization, source_contests, source_group
from tracer.proof.published.measurements import published
from tracer.proof.published.passes import (
    compare_overlap,
    compare_overview,
    compare_published_passes,
    same_sign,
)
from tracer.proof.published.serving import STATED, compare_serving
from tracer.timing.weights.crossover import crossover_prompt

WITHIN = 0.25
PROFILE_WITHIN = 0.15
PASSES_SOURCE = "Published passes of DeepSeek-V3 (DeepSeek, SGLang)"


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


def serving() -> LedgerLine:
    """Throughput a GPU against the first token, in serving."""
    measured, given = (compare_serving("tps_gpu", passes) for passes in ("measured", STATED))
    first = compare_serving("ttft", "measured")
    slower = all(
        later.predicted > sooner.predicted
        for sooner, later in zip(first.rows[::2], first.rows[1::2], strict=True)
    )
    return LedgerLine(
        SOURCE,
        "TPS/GPU 1.10, 1.08, 1.12, 1.06, 0.97×; TTFT 2,538 to 494 ms, with DWDP 8,314 to 660 ms",
        Verdict.PUBLISHED,
        ", ".join(f"{row.predicted:.2f}" for row in measured.rows)
        + "×; TTFT "
        + " to ".join(f"{row.predicted:,.0f}" for row in (first.rows[0], first.rows[-2]))
        + " ms, with DWDP "
        + " to ".join(f"{row.predicted:,.0f}" for row in (first.rows[1], first.rows[-1]))
        + " ms",
        slower and given.worst_error <= WITHIN,
        f"not fitted: median and worst error of TPS/GPU {measured.median_error:.0%}, "
        f"{measured.worst_error:.0%}, of TTFT {first.median_error:.0%}, {first.worst_error:.0%}: its queue "
        f"is longer than what is published explains. By the published TTFT TPS/GPU is within "
        f"{given.worst_error:.0%}",
    )


def profile() -> LedgerLine:
    """Prefill and decode of DeepSeek's own profile."""
    rows = compare_published_passes().rows[:2]
    return LedgerLine(
        PASSES_SOURCE,
        "prefill 62,713 and decode 18,598 tok/s a node (balanced experts, H800)",
        Verdict.PUBLISHED,
        " and ".join(f"{row.predicted:,.0f} ({row.error:+.0%})" for row in rows),
        all(abs(row.error) <= PROFILE_WITHIN for row in rows),
        f"measured kernels of an H100, nothing fitted to passes; {compare_published_passes().assumptions}",
    )


def sglang() -> LedgerLine:
    """Prefill and decode of SGLang on 96 H100."""
    rows = compare_published_passes().rows[2:]
    return LedgerLine(
        PASSES_SOURCE,
        "SGLang: prefill 57,674, 54,543, 50,302 and with balanced experts 59,337; decode 22,282 tok/s a node",
        Verdict.PUBLISHED,
        ", ".join(f"{row.predicted:,.0f} ({row.error:+.0%})" for row in rows),
        all(abs(row.error) <= WITHIN for row in rows),
        "even loads, where all but the fourth had SGLang's own",
    )


def production() -> LedgerLine:
    """DeepSeek's production averages: what nights, uneven loads and waiting cost is not modelled."""
    rows = compare_overview().rows
    return LedgerLine(
        PASSES_SOURCE,
        "DeepSeek in production: prefill 32,206 uncached, decode 14,800 tok/s a node",
        Verdict.PUBLISHED,
        ", ".join(f"{row.predicted:,.0f} ({row.error:+.0%})" for row in rows),
        all(row.error > 0 for row in rows),
        "a bound from above: averages of a day hold nights, uneven loads and waiting",
    )


def published_overlap_gain() -> LedgerLine:
    """Where two-batch overlap gains, and where it loses."""
    compared = compare_overlap()
    return LedgerLine(
        PASSES_SOURCE,
        "two-batch overlap: prefill +27 to +35 %, decode +25.5 % at 256 requests and -27 % at 32",
        Verdict.PUBLISHED,
        ", ".join(f"{row.predicted - 1:+.1%}" for row in compared.rows),
        same_sign(compared),
        "every sign is right; the size of the gain in decode is not",
    )


CHECKS: tuple[Check, ...] = (
    window, speedup, synchronization, serving, profile, sglang, production, published_overlap_gain,
)  # fmt: skip
