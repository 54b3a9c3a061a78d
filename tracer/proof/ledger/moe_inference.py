"""Figures of "MoE inference internals" on models, volumes and routing."""

from __future__ import annotations

from math import comb

import numpy as np

from tracer.batch.permutation import permute
from tracer.model.configs.presets import model_preset
from tracer.model.dtype import BYTES, dispatch_row_bytes
from tracer.model.parameters import count_parameters
from tracer.model.router_kind import RouterKind
from tracer.model.routers import Router, route
from tracer.model.spec import ModelSpec
from tracer.proof.ledger.line import Check, LedgerLine, Verdict, near
from tracer.traffic.chance import HitChance

SOURCE = "MoE inference internals"


def _v3() -> ModelSpec:
    return model_preset("deepseek-v3")


def sparsity() -> LedgerLine:
    """Active parameters of DeepSeek-V3."""
    model = _v3()
    count = count_parameters(model)
    embedding = (model.vocab or 0) * (model.hidden or 0)
    low, high = (count.active - embedding) / 1e9, count.active / 1e9
    idle, routed = 1 - 37 / 671, 1 - (model.top_k or 0) / (model.experts or 1)
    return LedgerLine(
        SOURCE,
        "37B of 671B active, 94.5 % of FFN parameters idle",
        Verdict.REPRODUCES,
        f"{count.total / 1e9:.0f}B; {low:.1f}–{high:.1f}B active; {idle:.1%} of all parameters idle",
        near(count.total / 1e9, 671, 3) and low < 37 < high and near(idle, 0.945, 3),
        f'it says "FFN parameters": of the routed FFN {routed:.1%} is idle (248 of 256 experts)',
    )


def tokens_per_expert() -> LedgerLine:
    """Average tokens per expert, and distinct experts hit."""
    experts, top_k = 256, 8
    means = [batch * top_k / experts for batch in (8, 4096 * 4, 4)]
    hit = experts * (1 - (1 - top_k / experts) ** 8)
    return LedgerLine(
        SOURCE,
        "M_e = 64/256 = 0.25; 131,072 picks → 512 an expert; 32 → 0.125",
        Verdict.REPRODUCES,
        ", ".join(f"{mean:g}" for mean in means),
        means == [0.25, 512.0, 0.125],
        f"distinct experts hit at B = 8: {hit:.1f} of 256 on average",
    )


def intensity() -> LedgerLine:
    """FLOPs per weight byte of a GEMM with M rows."""
    per_byte = {name: 2 * 512 / BYTES[name] for name in ("fp8", "bf16")}
    return LedgerLine(
        SOURCE,
        "arithmetic intensity 2·M FLOP/byte (M = 512: 1024)",
        Verdict.LOOSE,
        f"{per_byte['fp8']:g} with 1-byte weights, {per_byte['bf16']:g} with BF16",
        per_byte == {"fp8": 1024.0, "bf16": 512.0},
        "2·M FLOP a weight byte holds for 1-byte weights; BF16 is M",
    )


def tp_volume() -> LedgerLine:
    """All-reduce volume a token."""
    hidden, tp = 7168, 8
    formula = 2 * hidden * (tp - 1) / tp * 2
    chunk = hidden / tp
    ring = 2 * (tp - 1) * chunk * 2
    return LedgerLine(
        SOURCE,
        "TP volume 2·h·(TP−1)/TP·bytes per token",
        Verdict.REPRODUCES,
        f"ring of 8, h = 7168, BF16: {ring:,.0f} bytes sent a GPU and token",
        ring == formula,
    )


def dispatch_volume() -> LedgerLine:
    """EP bytes per token and layer."""
    copies, fp8 = 8 * 7168 * 2, dispatch_row_bytes(7168, "fp8", low_latency=False)
    ranks = HitChance(256, 8)
    distinct = 64 * ranks.of_count(4)
    return LedgerLine(
        SOURCE,
        "EP dispatch 114,688 bytes per token, 224 KB a layer",
        Verdict.REPRODUCES,
        f"{copies:,} bytes out, {2 * copies / 1024:g} KiB both ways",
        copies == 114_688 and 2 * copies / 1024 == 224 and fp8 == 7392,
        f"before de-duplication ({distinct:.2f} distinct GPUs of 64) and local experts; "
        f"FP8 is {fp8:,} a copy",
    )


def fabric() -> LedgerLine:
    """Bytes a token over all MoE layers."""
    layer = 2 * 8 * 7168 * 2
    sixty, model = 60 * layer, _v3()
    right = model.moe_layers * layer
    return LedgerLine(
        SOURCE,
        "60 layers → 13.1 MB a token, 105 Gb/s at 1,000 tokens/s",
        Verdict.LOOSE,
        f"{sixty / 1e6:.2f} MB, {sixty * 8 * 1000 / 1e9:.0f} Gb/s; V3 has {model.moe_layers} MoE layers: "
        f"{right / 1e6:.2f} MB",
        near(sixty / 1e6, 13.76, 4) and near(sixty / 2**20, 13.1, 3) and near(right / 1e6, 13.3, 3),
        f"mixes KiB and MB: {sixty / 2**20:.2f} MiB",
    )


def combinations() -> LedgerLine:
    """C(256, 8)."""
    every, pool = comb(256, 8), 0
    # Inclusion-exclusion over the groups of 32 that a choice of 8 touches: at most 4 of 8.
    for touched in range(1, 5):
        exactly = sum(
            (-1) ** (touched - j) * comb(touched, j) * comb(32 * j, 8) for j in range(1, touched + 1)
        )
        pool += comb(8, touched) * exactly
    return LedgerLine(
        SOURCE,
        "C(256,8) ≈ 4.3e14",
        Verdict.WRONG,
        f"{every:,} ≈ {every:.2e}",
        every == 409_663_695_276_000 and pool == 71_614_201_382_880 and not near(every, 4.3e14, 2),
        f"with V3's 4 of 8 groups {pool:,}",
    )


def small_counts() -> LedgerLine:
    """C(8,2), experts per GPU, BF16 bytes."""
    size = count_parameters(_v3()).total * 2 / 1e12
    return LedgerLine(
        SOURCE,
        "C(8,2) = 28; 4 experts per GPU at EP64; 1.34 TB in BF16",
        Verdict.REPRODUCES,
        f"{comb(8, 2)}; {256 // 64}; {size:.2f} TB",
        comb(8, 2) == 28 and near(size, 1.34, 3),
    )


def offsets() -> LedgerLine:
    """Inclusive sums of counts."""
    found = permute(np.array([[0], [2], [2]]), 4)
    sums = np.cumsum(found.counts)
    return LedgerLine(
        SOURCE,
        "expert_offsets by inclusive cumsum",
        Verdict.LOOSE,
        f"counts {found.counts.tolist()}: cumsum {sums.tolist()} are ends, "
        f"starts are {found.starts.tolist()}",
        sums.tolist() == found.ends.tolist() and found.starts.tolist() == [0, 1, 1, 3],
        "starts are the sums shifted by one",
    )


def biased_router() -> LedgerLine:
    """Sigmoid + bias top-k: choice with the bias, weights without it."""
    logits, bias = np.array([[1.0, 0.5, 0.0, -3.0]]), np.array([-1.0, 0.0, 0.0, 1.0])
    ids, weights = route(Router(RouterKind.SIGMOID_BIAS_TOPK, 2), logits, bias)
    clean = 1 / (1 + np.exp(-logits[0, ids[0]]))
    expected = clean / clean.sum()
    return LedgerLine(
        SOURCE,
        "sigmoid + bias top-k, weights without bias, bias ± by load",
        Verdict.REPRODUCES,
        f"picks {ids[0].tolist()} by score + bias, weights {weights[0].round(3).tolist()} by score",
        sorted(ids[0].tolist()) == [1, 3] and bool(np.allclose(weights[0], expected)),
        "V3 also limits groups and multiplies by 2.5",
    )


CHECKS: tuple[Check, ...] = (
    sparsity,
    tokens_per_expert,
    intensity,
    tp_volume,
    dispatch_volume,
    fabric,
    combinations,
    small_counts,
    offsets,
    biased_router,
)
