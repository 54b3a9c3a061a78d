"""Expected traffic as text a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.step_rows import pass_words, rows_words
from tracer.timing.units import format_seconds
from tracer.trip_text import format_bytes, mesh_line

if TYPE_CHECKING:
    from tracer.expected_traffic import ExpectedTraffic


HEADINGS = ("axis", "part", "per", "elements", "of Td", "bytes", "NVLink", "IB", "time", "x TP", "formula")


def traffic_rows(traffic: ExpectedTraffic) -> list[list[str]]:
    """One row a line, in the order of :data:`HEADINGS`."""
    unit = traffic.tokens * (traffic.scenario.need_model().hidden or 1)
    rows = []
    for line in traffic.lines:
        ratio = traffic.ratio_to_tp(line)
        rows.append(
            [
                line.axis,
                line.part,
                line.per,
                f"{line.elements:,.0f}",
                f"{line.elements / unit:.3g}",
                format_bytes(round(line.bytes)),
                format_bytes(round(line.nvlink_bytes)),
                format_bytes(round(line.ib_bytes)),
                format_seconds(line.seconds) + (f" ({line.tier})" if line.tier else ""),
                "-" if ratio is None else f"{ratio:.3g}",
                f"{line.formula} = {line.numbers}",
            ]
        )
    return rows


def traffic_footer(traffic: ExpectedTraffic) -> list[str]:
    """What the figures assume, and the sums of one forward pass."""
    from tracer.expected_traffic import ASSUMES

    cluster, step = traffic.scenario.cluster, pass_words(traffic.scenario)
    sizes = (traffic.nvlink_bytes_per_pass, traffic.ib_bytes_per_pass)
    nvlink, ib = (format_bytes(round(size)) for size in sizes)
    return [
        f"Sent per GPU in {rows_words(traffic.scenario, traffic.tokens)}. "
        f"NVLink {cluster.nvlink.bytes_per_s / 1e9:g} GB/s, IB {cluster.ib.bytes_per_s / 1e9:g} GB/s a GPU, "
        "one direction.",
        f"Assumes {ASSUMES}.",
        f"One {step}, averaged over all GPUs: {nvlink} on NVLink, {ib} over IB, "
        f"{format_seconds(traffic.seconds_per_pass)} when hops follow one another.",
    ]


def traffic_text(traffic: ExpectedTraffic) -> str:
    """The whole report in columns."""
    rows = [list(HEADINGS), *traffic_rows(traffic)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([mesh_line(traffic.scenario), "", *lines, "", *traffic_footer(traffic)])
