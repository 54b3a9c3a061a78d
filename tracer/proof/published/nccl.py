"""NCCL's measured all-reduce and all-gather beside ours, at peak and at fitted rates."""

from __future__ import annotations

from tracer.display import format_bytes
from tracer.mesh.cluster import Link
from tracer.mesh.hardware import hardware_preset
from tracer.proof.published.comparison import PublishedComparison, Row
from tracer.proof.published.measurements import nccl_table, published
from tracer.timing import estimate
from tracer.timing.collectives import busbw_factor, collective_seconds
from tracer.timing.rates import PEAK, CollectiveFit, fit_two_lines, profile

GROUPS = (2, 4, 8)
KINDS = ("all_reduce", "all_gather")


def compare_nccl(kind: str, profile_name: str = PEAK) -> PublishedComparison:
    """All sizes and groups of a collective beside our times in µs.

    With a fitted profile only the sizes are shown that the fit has not seen.

    Raises:
        ConfigError: for a collective that was not measured, or an unknown profile.
    """
    data = published("nccl")
    peak = Link(hardware_preset("h100").need("nvlink_bytes_per_s", "compare with a measurement"))
    rows = []
    for ranks in GROUPS:
        table = nccl_table(kind, ranks)
        fit = None if profile_name == PEAK else profile(profile_name).collective(kind, ranks)
        for size, seconds in table if fit is None else held_out(table):
            ours = fit.seconds(size) if fit else collective_seconds(kind, size, ranks, peak)
            rows.append(Row(f"{ranks} GPUs, {format_bytes(size)}", seconds * 1e6, ours * 1e6, "µs"))
    assumptions = (
        "peak NVLink, no latency: a floor, far off for small messages"
        if profile_name == PEAK
        else "the faster of two lines, fitted on every other size; errors of the sizes in between"
    )
    return PublishedComparison(
        f"NCCL {kind.replace('_', '-')}: {profile_name} rates",
        data["source"],
        f"{data['setting']}; {data['hardware']}",
        assumptions,
        tuple(rows),
    )


def compare_nccl_calibrated(kind: str) -> PublishedComparison:
    """All sizes and groups beside :func:`tracer.timing.estimate.collective`.

    The calibration was fitted on a part of these rows; its errors on rows left out are in the
    documentation of single calls.

    Raises:
        ConfigError: for a collective that was not measured.
    """
    data = published("nccl")
    rows = tuple(
        Row(
            f"{ranks} GPUs, {format_bytes(int(size))}",
            seconds * 1e6,
            estimate.collective("h100", kind, ranks, size).seconds * 1e6,
            "µs",
        )
        for ranks in GROUPS
        for size, seconds in nccl_table(kind, ranks)
    )
    assumptions = (
        "the fit that times use by default; a part of these very rows is among those it was fitted on"
    )
    title = f"NCCL {kind.replace('_', '-')}: calibrated"
    return PublishedComparison(
        title, data["source"], f"{data['setting']}; {data['hardware']}", assumptions, rows
    )


def seen(table: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The sizes that a fit uses: every other one, the smallest and the largest with them."""
    return table[::2]


def held_out(table: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The sizes between those of :func:`seen`."""
    return table[1::2]


def fit_collective(kind: str, ranks: int) -> CollectiveFit:
    """Two lines through the seen sizes of one table, over the bytes a port carries.

    Raises:
        ConfigError: for a table that was not measured.
    """
    table = seen(nccl_table(kind, ranks))
    factor = busbw_factor(kind, ranks)
    lines = fit_two_lines([factor * size for size, _ in table], [seconds for _, seconds in table])
    return CollectiveFit(kind, ranks, lines)
