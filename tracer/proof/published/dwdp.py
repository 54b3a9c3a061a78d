"""What was published of DWDP beside ours: roofline, breakdown, synchronization; SGLang's as it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.display import exact_sum
from tracer.mesh.cluster import Link
from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset
from tracer.model.weight_format import WeightFormat
from tracer.proof.published.comparison import PublishedComparison, Row
from tracer.proof.published.measurements import published
from tracer.timing.batch import TimedBatch
from tracer.timing.operators import dense_layer
from tracer.timing.roofline import layer_time
from tracer.timing.weights.group import MoeGroup
from tracer.timing.weights.layer import LayerContest, contest
from tracer.timing.weights.rendezvous import waiting_share

GROUP = 4
_PROJECTIONS = ("attention projections", "attention output")
LENGTHS = (1024, 8192, 16384, 32768)
_SETUP = (
    "DeepSeek-R1, experts, shared and dense FFN in NVFP4, attention in BF16 (as NVIDIA's first FP4 "
    "checkpoint); causal core; GB200 peak rates (2.5 PFLOP/s BF16, 10 FP4, 8 TB/s, NVLink 900 GB/s one "
    "way); group of 4, even shares; weights read once; nothing fitted"
)


def source_group(copies: str = "picks", output_weights: WeightFormat | None = None) -> MoeGroup:
    """The published setup as read here: see the assumptions printed with each table."""
    hardware = hardware_preset("gb200-nvl72")
    fp4, bf16 = WeightFormat.NVFP4, WeightFormat.BF16
    spec = replace(
        model_preset("deepseek-r1"),
        weights=bf16,
        attention_weights=bf16,
        dense_weights=fp4,
        shared_weights=fp4,
        expert_weights=fp4,
    )
    link = Link(hardware.need("nvlink_bytes_per_s", "pull experts"))
    return MoeGroup(spec, hardware, GROUP, link, copies, output_weights=output_weights)


def source_contests(group: MoeGroup | None = None, *, plain: bool = False) -> tuple[LayerContest, ...]:
    """One prompt per rank at each published length."""
    group = group or source_group()
    return tuple(contest(group, TimedBatch.prompts(length), plain=plain) for length in LENGTHS)


def compare_window(*, plain: bool = True, output_weights: WeightFormat | None = None) -> PublishedComparison:
    """T_compute / T_prefetch: with ``plain``, the larger of all compute and all memory of a layer."""
    group = source_group(output_weights=output_weights)
    roof = "the larger of compute and memory, a layer" if plain else "the larger of the two, an operator"
    extra = f"; output projection in {output_weights.upper()}" if output_weights else ""
    return _table(
        f"DWDP, compute over prefetch ({roof}{extra})",
        "compute_over_prefetch",
        [each.window_ratio for each in source_contests(group, plain=plain)],
        f"{_SETUP}{extra}",
    )


def compare_speedup(copies: str = "picks", *, plain: bool = False) -> PublishedComparison:
    """T_DEP / T_DWDP, tokens counted by ``copies``: ``picks``, ``distinct`` GPUs, or ``all`` ranks."""
    words = {
        "picks": "every pick is sent (3/4 leave the GPU)",
        "distinct": "one copy a distinct GPU",
        "all": "every row to every rank",
    }
    contests = source_contests(source_group(copies), plain=plain)
    return _table(
        f"DWDP, DEP time over DWDP time ({words[copies]})",
        "dep_over_dwdp",
        [each.speedup for each in contests],
        f"{_SETUP}; rows dispatched in NVFP4, combined in BF16, after compute; {words[copies]}",
    )


def _table(title: str, column: str, ours: list[float], assumptions: str) -> PublishedComparison:
    data = published("dwdp")
    rows = tuple(
        Row(f"{row['prompt']:,} tokens", row[column], value, "ratio")
        for row, value in zip(data["roofline"]["rows"], ours, strict=True)
    )
    return PublishedComparison(title, data["source"], data["roofline"]["setting"], assumptions, rows)


def breakdown_batch() -> TimedBatch:
    """A pass of 32,768 tokens as four prompts of 8,192; the source's lengths vary from 80 % of that."""
    return TimedBatch.prompts(8192, 4)


def compare_breakdown() -> PublishedComparison:
    """One context iteration in ms (printed as µs at the source), DEP and DWDP, category by category.

    Published times are of kernels; ours are peak rates, a floor.
    """
    data = published("dwdp")
    rows = [
        Row(f"{mode} {category}", value, ours[category] * 1e3, "ms")
        for mode, ours in context_iteration(breakdown_batch()).items()
        for category, value in ((r["category"], r[mode.lower()]) for r in data["breakdown"]["rows"])
        if category in ours and value
    ]
    assumptions = (
        f"{_SETUP}, but the output projection in NVFP4, as the checkpoint measured here stores it, and one "
        "copy per distinct GPU; four prompts of 8,192 tokens per rank, balanced: no synchronization, no "
        "'others' (norms, routing, quantization), no contention; iteration is the sum of what is predicted"
    )
    setting = f"{data['breakdown']['setting']}; {data['breakdown']['unit_note']}"
    return PublishedComparison(
        "DWDP, one context iteration", data["source"], setting, assumptions, tuple(rows)
    )


def context_iteration(batch: TimedBatch) -> dict[str, dict[str, float]]:
    """Seconds of each category of one context pass over all layers, by contract; ``batch`` is a rank's."""
    group = source_group("distinct", WeightFormat.NVFP4)
    found = contest(group, batch)
    dense = layer_time(
        dense_layer(group.spec, batch, output=group.output_weights), group.hardware, rows=False
    )
    moe = group.spec.moe_layers
    few = group.spec.layers - moe
    result: dict[str, dict[str, float]] = {}
    for mode, layer in (("DEP", found.dep), ("DWDP", found.dwdp)):
        gemms = moe * exact_sum(layer.of(name) for name in (*_PROJECTIONS, "shared expert"))
        gemms += few * exact_sum(dense.of(name) for name in (*_PROJECTIONS, "dense FFN"))
        parts = {
            "attention": moe * layer.of("attention core") + few * dense.of("attention core"),
            "grouped GEMM": moe * layer.of("expert GEMMs"),
            "dense GEMM": gemms,
        }
        if mode == "DEP":
            parts["communication"] = moe * found.exchange_seconds
        parts["iteration"] = exact_sum(parts.values())
        if mode == "DWDP":
            parts["iteration"] = max(parts["iteration"], moe * found.prefetch_seconds)
            parts["copy (overlapped)"] = moe * found.prefetch_seconds
        result[mode] = parts
    return result


def copy_rate() -> float:
    """Bytes a second of the measured copy: remote experts of all MoE layers over 429 ms."""
    group = source_group()
    rows = published("dwdp")["breakdown"]["rows"]
    measured = next(row["dwdp"] for row in rows if row["category"].startswith("copy"))
    return float(group.spec.moe_layers * group.remote_bytes / (measured * 1e-3))


def compare_synchronization() -> PublishedComparison:
    """Waiting at rendezvous with a CV of 20 %: ours when all of the time varies with length."""
    data = published("dwdp")
    sync = data["synchronization"]
    ours = waiting_share(sync["ranks"], sync["cv"])
    rows = tuple(
        Row(f"{where}, CV 20 %", sync[where] * 100, ours.share * 100, "% of the iteration")
        for where in ("paper", "blog")
    )
    assumptions = (
        f"{ours}; normal lengths, one rendezvous a pass. A smaller part that varies waits less: "
        f"70 % gives {waiting_share(sync['ranks'], sync['cv'], variable_share=0.7).share:.1%}"
    )
    return PublishedComparison("DWDP, synchronization", data["source"], sync["setting"], assumptions, rows)


def sglang_prefill() -> dict[str, Any]:
    """SGLang's prefill-only speed-ups (4 B200, gpt-oss-120b), with their protocol; never end to end."""
    found: dict[str, Any] = published("dwdp")["sglang"]
    return found
