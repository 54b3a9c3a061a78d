"""Figures of "Expert parallelism simulation"."""

from __future__ import annotations

import numpy as np

from tracer.batch.picks.averaging import averaging_curve
from tracer.batch.picks.draws import DrawnPicks
from tracer.batch.picks.inclusion import inclusion_probabilities
from tracer.proof.ledger.line import Check, LedgerLine, Verdict, near
from tracer.scenario.files import load_scenario

SOURCE = "Expert parallelism simulation"
TOKENS, HIDDEN, BATCHES = 4096, 4096, 200
SKEW = (0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)


def volumes() -> LedgerLine:
    """Mixtral's all-to-all on eight GPUs."""
    pair = TOKENS // 8 * 2 // 8
    pair_bytes = pair * HIDDEN * 2
    whole = TOKENS * 2 * HIDDEN * 2
    total = whole * 2 * 32
    return LedgerLine(
        SOURCE,
        "128 tokens a pair, 1 MiB a pair, 7 MiB a GPU, 67 MB an all-to-all, 4.3 GB a pass",
        Verdict.REPRODUCES,
        f"{pair} tokens, {pair_bytes / 2**20:g} MiB, {7 * pair_bytes / 2**20:g} MiB, {whole / 1e6:.0f} MB, "
        f"{total / 1e9:.1f} GB",
        (pair, pair_bytes) == (128, 2**20) and near(whole / 1e6, 67, 2) and near(total / 1e9, 4.3, 2),
        "67 MB includes the eighth that stays home",
    )


def link_times() -> LedgerLine:
    """9.5 ms and 86 ms."""
    cluster = load_scenario("six-cuts").cluster
    moved = 7 * 2**20 * 64
    stated = TOKENS * 2 * HIDDEN * 2 * 64
    times = [moved / rate * 1e3 for rate in (cluster.nvlink.bytes_per_s, cluster.ib.bytes_per_s)]
    wrong = [stated / rate * 1e3 for rate in (450e9, 50e9)]
    return LedgerLine(
        SOURCE,
        "9.5 ms on NVLink, 86 ms over IB",
        Verdict.WRONG,
        f"a GPU sends 7.34 MB × 64 = {moved / 1e6:.0f} MB: {times[0]:.2f} ms and {times[1]:.1f} ms",
        near(times[0], 1.04, 3)
        and near(times[1], 9.4, 2)
        and near(wrong[0], 9.5, 2)
        and near(wrong[1], 86, 2),
        "it divides all GPUs' bytes by one GPU's link",
    )


def bidirectional() -> LedgerLine:
    """450 GB/s bidirectional."""
    rate = load_scenario("six-cuts").cluster.nvlink.bytes_per_s
    return LedgerLine(
        SOURCE,
        '"450 GB/s bidirectional"',
        Verdict.WRONG,
        f"{rate / 1e9:g} GB/s in each direction, {2 * rate / 1e9:g} both",
        rate == 450e9,
    )


def skewed_loads() -> LedgerLine:
    """Loads under the article's skew."""
    chances = inclusion_probabilities(np.array(SKEW), 2)
    hot, cold = TOKENS * chances[0], TOKENS * chances[7]
    point = averaging_curve(DrawnPicks(BATCHES, TOKENS, 2, 8, popularity=np.array(SKEW), seed=1))[-1]
    lost = 1 - 1 / point.of_means
    return LedgerLine(
        SOURCE,
        "skewed experts ~1640 and ~820, imbalance 1.6, 37.5 % lost",
        Verdict.WRONG,
        f"{hot:.0f} and {cold:.0f}; ratio of means {point.of_means:.3f} ({lost:.1%} lost); expected max/mean "
        f"{point.max_over_mean:.3f} ± {point.standard_error:.3f} ({point.time_lost:.1%})",
        (round(hot), round(cold)) == (1570, 842)
        and near(point.of_means, 1.533, 4)
        and abs(point.max_over_mean - 1.553) < 5 * point.standard_error,
        f"top-2 without repeats picks them with chance {chances[0]:.4f} and {chances[7]:.4f}, "
        "not 0.4 and 0.2",
    )


def repeats() -> LedgerLine:
    """Picks drawn with repeats."""
    share = 1 / 8
    rng = np.random.default_rng(42)
    seen = rng.integers(0, 8, (200_000, 2))
    measured = float((seen[:, 0] == seen[:, 1]).mean())
    return LedgerLine(
        SOURCE,
        "random picks drawn with repeats, as top-2",
        Verdict.WRONG,
        f"{share:.1%} of the tokens pick one expert twice ({measured:.1%} drawn)",
        abs(measured - share) < 0.005,
        "top-2 never picks an expert twice",
    )


def ep_inside() -> LedgerLine:
    """EP within a node, TP between nodes."""
    deployed = (
        "deepseek-v3-prefill-ep32",
        "deepseek-v3-decode-ep144",
        "sglang-prefill-ep32",
        "sglang-decode-ep72",
    )
    spans = [load_scenario(name).mesh.ep > 8 for name in deployed]
    inside = [load_scenario(name).mesh.tp <= 8 for name in deployed]
    return LedgerLine(
        SOURCE,
        '"EP within a node, TP between nodes"',
        Verdict.WRONG,
        f"{sum(spans)} of {len(deployed)} deployed presets span nodes with EP, "
        f"{sum(inside)} keep TP inside one",
        all(spans) and all(inside),
        "wrong as advice: deployments and the other sources do the opposite",
    )


def replicated_attention() -> LedgerLine:
    """Attention replicated, tokens split."""
    return LedgerLine(
        SOURCE,
        'attention "replicated on all GPUs", yet tokens split evenly over them',
        Verdict.LOOSE,
        f"{TOKENS} tokens over 8 GPUs, {TOKENS // 8} each: data-parallel attention",
        TOKENS // 8 == 512,
        "inconsistent as told; split tokens mean data-parallel attention",
    )


def v3_on_eight() -> LedgerLine:
    """DeepSeek-V3 on eight GPUs."""
    a_gpu, an_expert = 256 // 8, TOKENS * 8 // 256
    return LedgerLine(
        SOURCE,
        "V3 on 8 GPUs: 32 experts, 128 tokens per expert, 4,096 pairs a GPU",
        Verdict.REPRODUCES,
        f"{a_gpu}, {an_expert}, {a_gpu * an_expert:,}",
        (a_gpu, an_expert, a_gpu * an_expert) == (32, 128, 4096),
    )


CHECKS: tuple[Check, ...] = (
    volumes,
    link_times,
    bidirectional,
    skewed_loads,
    repeats,
    ep_inside,
    replicated_attention,
    v3_on_eight,
)
