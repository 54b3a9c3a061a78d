"""Figures of "MoE inference internals"."""

from __future__ import annotations

from math import comb

import numpy as np

from tracer.dtype import BYTES, dispatch_row_bytes
from tracer.hit_chance import HitChance
from tracer.ledger.line import Check, LedgerLine, Verdict, near
from tracer.model_config.presets import model_preset
from tracer.model_spec import ModelSpec
from tracer.parameters import count_parameters
from tracer.permutation import permute
from tracer.presets import load_scenario
from tracer.router_kind import RouterKind
from tracer.routers import Router, route
from tracer.timing.overlap import MoeTimes, overlap_two

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
    """Average tokens an expert, and distinct experts hit."""
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
    """FLOPs a weight byte of a GEMM with M rows."""
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
        "TP volume 2·h·(TP−1)/TP·bytes a token",
        Verdict.REPRODUCES,
        f"ring of 8, h = 7168, BF16: {ring:,.0f} bytes sent a GPU and token",
        ring == formula,
    )


def dispatch_volume() -> LedgerLine:
    """EP bytes a token and layer."""
    copies, fp8 = 8 * 7168 * 2, dispatch_row_bytes(7168, "fp8", low_latency=False)
    ranks = HitChance(256, 8)
    distinct = 64 * ranks.of_count(4)
    return LedgerLine(
        SOURCE,
        "EP dispatch 114,688 bytes a token, 224 KB a layer",
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
    """C(8,2), experts a GPU, BF16 bytes."""
    size = count_parameters(_v3()).total * 2 / 1e12
    return LedgerLine(
        SOURCE,
        "C(8,2) = 28; 4 experts a GPU at EP64; 1.34 TB in BF16",
        Verdict.REPRODUCES,
        f"{comb(8, 2)}; {256 // 64}; {size:.2f} TB",
        comb(8, 2) == 28 and near(size, 1.34, 3),
    )


def fits_a_node() -> LedgerLine:
    """Whether V3 fits eight GPUs."""
    from tracer.hardware import hardware_preset

    total = count_parameters(_v3()).total
    memory = {name: 8 * hardware_preset(name).need("hbm_bytes") for name in ("h100", "h200", "b200")}
    bf16, fp8 = 2 * total, total
    left = (memory["h100"] - fp8) / 8
    holds = bf16 > memory["h200"] and left < 4e9 and fp8 < memory["h200"] and bf16 < memory["b200"]
    return LedgerLine(
        SOURCE,
        '"cannot fit inside an 8-GPU node"',
        Verdict.LOOSE,
        f"BF16 {bf16 / 1e12:.2f} TB, FP8 {fp8 / 1e12:.2f} TB; nodes hold "
        + ", ".join(f"{name} {size / 1e12:.2f} TB" for name, size in memory.items()),
        holds,
        f"true of 80 GB H100s: FP8 leaves {left / 1e9:.1f} GB a GPU for all else; "
        "FP8 fits 8×H200, BF16 fits 8×B200",
    )


def eight_nodes() -> LedgerLine:
    """Nodes of DeepSeek's deployments."""
    nodes = {
        name: load_scenario(name).cluster.nodes
        for name in ("deepseek-v3-prefill-ep32", "deepseek-v3-decode-ep144", "deepseek-v3-decode-ep320")
    }
    return LedgerLine(
        SOURCE,
        '"mandate 8-node clusters"',
        Verdict.WRONG,
        "prefill {} nodes, decode {} (or {} in the report)".format(*nodes.values()),
        list(nodes.values()) == [4, 18, 40],
        "DeepSeek open-infra-index, day 6; technical report section 3.4",
    )


def nvlink() -> LedgerLine:
    """NVLink's 900 GB/s."""
    rate = load_scenario("six-cuts").cluster.nvlink.bytes_per_s
    return LedgerLine(
        SOURCE,
        '"900 GB/s" NVLink',
        Verdict.LOOSE,
        f"{rate / 1e9:g} GB/s in each direction",
        rate == 450e9,
        "900 is both directions together",
    )


def hybrid() -> LedgerLine:
    """TP8+EP4 against TP4+EP8 on four nodes: remote copies a token, one an EP rank or one a node."""
    chance = HitChance(256, 8)
    copies = {}
    for name in ("hybrid-tp8-ep4", "hybrid-tp4-ep8"):
        scenario = load_scenario(name)
        ep, nodes = scenario.mesh.size_of("ep"), scenario.cluster.nodes or 1
        remote = ep - ep // nodes
        copies[name] = (remote * chance.of_count(256 // ep), (nodes - 1) * chance.of_count(256 // nodes))
    eight, four = copies["hybrid-tp8-ep4"], copies["hybrid-tp4-ep8"]
    return LedgerLine(
        SOURCE,
        'TP8+EP4: inter-node dispatch "lower" than TP4+EP8 on 4 nodes',
        Verdict.LOOSE,
        f"{eight[0]:.2f} remote copies a token against {four[0]:.2f}, one an EP rank",
        near(eight[0], 2.71, 3) and near(four[0], 3.97, 3) and near(eight[1], four[1], 12),
        f"with one copy a node both {eight[1]:.2f} (uniform picks, groups not limiting)",
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


def qwen_name() -> LedgerLine:
    """The model called Qwen2.5-MoE-57B."""
    total = count_parameters(model_preset("qwen2-57b-a14b")).total
    return LedgerLine(
        SOURCE,
        '"Qwen2.5-MoE-57B"',
        Verdict.WRONG,
        f"Qwen2-57B-A14B has {total / 1e9:.1f}B parameters",
        near(total / 1e9, 57, 2),
        "the model is Qwen2-57B-A14B",
    )


def spanning() -> LedgerLine:
    """TP4+EP8 on four nodes."""
    scenario = load_scenario("hybrid-tp4-ep8")
    groups = len(scenario.mesh.groups("tp"))
    nodes = scenario.cluster.nodes or 1
    return LedgerLine(
        SOURCE,
        'TP4+EP8 on 4 nodes "spanning 8 nodes"',
        Verdict.WRONG,
        f"{nodes} nodes, {groups} TP groups, {groups // nodes} a node",
        (nodes, groups) == (4, 8),
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


def overlap_gain() -> LedgerLine:
    """The 40-70 % of overlap."""
    equal = overlap_two(MoeTimes(4, 4, 1, 3, 4), layers=58)
    half = overlap_two(MoeTimes(4, 2, 1, 3, 2), layers=58)
    return LedgerLine(
        SOURCE,
        "overlap boosts throughput by 40–70 %",
        Verdict.PUBLISHED,
        f"{half.gain:.0%} when communication is half of compute, {equal.gain:.0%} when they are equal",
        half.gain < equal.gain <= 1,
        "a claim without its ratio; the bound is all work over the fuller stream, at most 2",
    )


def dualpipe() -> LedgerLine:
    """What is called DualPipe."""
    return LedgerLine(
        SOURCE,
        "§5 calls two-micro-batch overlap DualPipe",
        Verdict.LOOSE,
        "DualPipe is a training schedule; serving overlaps two batches",
        True,
        "DeepSeek-V3 report, sections 3.2.1 and 3.4",
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
    fits_a_node,
    eight_nodes,
    nvlink,
    hybrid,
    dualpipe,
    offsets,
    qwen_name,
    spanning,
    biased_router,
    overlap_gain,
)
