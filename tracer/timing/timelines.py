"""The timelines of a time report, for Gantt charts and trace viewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.timing import timeline

if TYPE_CHECKING:
    from tracer.timing.report import TimeReport
    from tracer.timing.timeline import Timeline


def timelines_of(report: TimeReport) -> list[Timeline]:
    """The trip, and where they are there the two-batch overlap and the pipeline of the phase."""
    lines = [timeline.of_trip(report.trip, report.times)]
    if report.overlap is not None:
        lines.append(timeline.of_streams(report.overlap.placed, "two-batch overlap"))
    if report.pipeline is not None:
        lines.append(timeline.of_pipeline(report.pipeline))
    if report.decode is not None:
        lines.append(timeline.of_decode(report.decode))
    return lines
