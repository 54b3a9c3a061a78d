"""Everything predicted beside everything published, as tables with median and worst error."""

from __future__ import annotations

from tracer.display import left, right, text_table
from tracer.model.weight_format import WeightFormat
from tracer.proof.published.comparison import PublishedComparison
from tracer.proof.published.deepep import compare_deepep, compare_deepep_calibrated
from tracer.proof.published.dwdp import (
    compare_breakdown,
    compare_speedup,
    compare_synchronization,
    compare_window,
)
from tracer.proof.published.nccl import KINDS, compare_nccl, compare_nccl_calibrated
from tracer.proof.published.passes import compare_overlap, compare_overview, compare_published_passes
from tracer.proof.published.serving import PASSES, STATED, compare_serving
from tracer.timing.basis import Rates
from tracer.timing.rates import PEAK

DEEPEP_PROFILES = {
    "deepep_normal": "h800-deepep-normal",
    "deepep_low_latency": "h800-deepep-low-latency",
    "deepep_v2": "h800-deepep-normal",
}


def all_comparisons() -> tuple[PublishedComparison, ...]:
    """Links at peak and at fitted rates, whole passes, then tokens against weights."""
    links = [
        compare_deepep(name, profile)
        for name, fitted in DEEPEP_PROFILES.items()
        for profile in (PEAK, fitted)
    ]
    collectives = [compare_nccl(kind, profile) for kind in KINDS for profile in (PEAK, "h100-nccl")]
    calibrated = [
        *(compare_nccl_calibrated(kind) for kind in KINDS),
        *(compare_deepep_calibrated(name) for name in DEEPEP_PROFILES),
    ]
    passes = [compare_published_passes(), compare_overlap(), compare_overview()]
    passes += [compare_published_passes(Rates.PEAK), compare_overlap(Rates.PEAK)]
    weights = [
        compare_window(),
        compare_window(plain=False),
        compare_window(output_weights=WeightFormat.NVFP4),
        compare_speedup("picks"),
        compare_speedup("distinct"),
        compare_breakdown(),
        compare_synchronization(),
    ]
    gains = [compare_serving("tps_gpu", passes) for passes in (*PASSES, STATED)]
    serving = [*gains, *(compare_serving("ttft", passes) for passes in PASSES)]
    return (*links, *collectives, *calibrated, *passes, *weights, *serving)


def summary(comparisons: tuple[PublishedComparison, ...]) -> str:
    """One line per table: median and worst error."""
    columns = (left(gap=0), right("median", 7, gap=1), right("worst", 7, gap=1), right("rows", 5, gap=1))
    rows = [
        (each.title, f"{each.median_error:.1%}", f"{each.worst_error:.1%}", len(each.rows))
        for each in comparisons
    ]
    return "\n".join(text_table(columns, rows))
