"""Figures of "MoE inference internals" on machines and deployments."""

from __future__ import annotations

from tracer.mesh.axes import Axis
from tracer.model.configs.presets import model_preset
from tracer.model.parameters import count_parameters
from tracer.proof.ledger.line import Check, LedgerLine, Verdict, near
from tracer.proof.ledger.moe_inference import SOURCE
from tracer.scenario.files import load_scenario
from tracer.timing.schedules.overlap import MoeTimes, overlap_two
from tracer.traffic.chance import HitChance


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
    """TP8+EP4 against TP4+EP8 on four nodes: remote copies per token, one per EP rank or one per node."""
    chance = HitChance(256, 8)
    copies = {}
    for name in ("hybrid-tp8-ep4", "hybrid-tp4-ep8"):
        scenario = load_scenario(name)
        ep, nodes = scenario.mesh.ep, scenario.cluster.nodes or 1
        remote = ep - ep // nodes
        copies[name] = (remote * chance.of_count(256 // ep), (nodes - 1) * chance.of_count(256 // nodes))
    eight, four = copies["hybrid-tp8-ep4"], copies["hybrid-tp4-ep8"]
    return LedgerLine(
        SOURCE,
        'TP8+EP4: inter-node dispatch "lower" than TP4+EP8 on 4 nodes',
        Verdict.LOOSE,
        f"{eight[0]:.2f} remote copies per token against {four[0]:.2f}, one an EP rank",
        near(eight[0], 2.71, 3) and near(four[0], 3.97, 3) and near(eight[1], four[1], 12),
        f"with one copy a node both {eight[1]:.2f} (uniform picks, groups not limiting)",
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
    groups = len(scenario.mesh.groups(Axis.TP))
    nodes = scenario.cluster.nodes or 1
    return LedgerLine(
        SOURCE,
        'TP4+EP8 on 4 nodes "spanning 8 nodes"',
        Verdict.WRONG,
        f"{nodes} nodes, {groups} TP groups, {groups // nodes} a node",
        (nodes, groups) == (4, 8),
    )


def fits_a_node() -> LedgerLine:
    """Whether V3 fits eight GPUs."""
    from tracer.mesh.hardware import hardware_preset

    total = count_parameters(model_preset("deepseek-v3")).total
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


def dualpipe_line() -> LedgerLine:
    """What is called DualPipe."""
    return LedgerLine(
        SOURCE,
        "§5 calls two-micro-batch overlap DualPipe",
        Verdict.LOOSE,
        "DualPipe is a training schedule; serving overlaps two batches",
        True,
        "DeepSeek-V3 report, sections 3.2.1 and 3.4",
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


CHECKS: tuple[Check, ...] = (
    eight_nodes,
    nvlink,
    hybrid,
    qwen_name,
    spanning,
    fits_a_node,
    dualpipe_line,
    overlap_gain,
)
