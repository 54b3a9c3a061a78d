"""A timeline as Chrome trace JSON, which Perfetto and chrome://tracing open.

Complete events (``ph`` X) with ``ts`` and ``dur`` in microseconds; ``M`` events name processes and
threads. Slices on one thread must nest (google/perfetto, docs/getting-started/other-formats.md), so
slices of a row that overlap get threads of their own.
"""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.timing.timeline import Timeline

_MICRO = 1e6


def to_perfetto(*timelines: Timeline) -> str:
    """One process a timeline, one thread a row (more where a row's slices overlap), as JSON text."""
    return json.dumps(trace_of(*timelines), ensure_ascii=False) + "\n"


def trace_of(*timelines: Timeline) -> dict[str, Any]:
    """The same as JSON values."""
    events = [
        event for pid, timeline in enumerate(timelines, start=1) for event in trace_events(timeline, pid)
    ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def trace_events(timeline: Timeline, pid: int) -> list[dict[str, Any]]:
    """Metadata and complete events of one timeline as process ``pid``; times in microseconds."""
    lanes = _lanes(timeline)
    threads = {
        key: tid for tid, key in enumerate(sorted({(timeline.row[i], n) for i, n in lanes.items()}), 1)
    }
    events = [_metadata(pid, 0, "process_name", timeline.title)]
    for (row, lane), tid in threads.items():
        name = timeline.rows[row] + (f" ({lane + 1})" if lane else "")
        events.append(_metadata(pid, tid, "thread_name", name))
        events.append({**_metadata(pid, tid, "thread_sort_index", ""), "args": {"sort_index": tid}})
    for i, lane in lanes.items():
        events.append(
            {
                "name": timeline.label(i),
                "cat": timeline.kinds[timeline.kind[i]],
                "ph": "X",
                "ts": timeline.start[i] * _MICRO,
                "dur": timeline.seconds[i] * _MICRO,
                "pid": pid,
                "tid": threads[timeline.row[i], lane],
            }
        )
    return events


def _metadata(pid: int, tid: int, what: str, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _lanes(timeline: Timeline) -> dict[int, int]:
    """Lane of each slice within its row, slices in order of start: the first lane that is free by then."""
    lanes: dict[int, int] = {}
    free: dict[int, list[tuple[float, int]]] = {}
    idle: dict[int, list[int]] = {}
    for i in sorted(range(len(timeline)), key=lambda each: (timeline.start[each], timeline.row[each])):
        row, start = timeline.row[i], timeline.start[i]
        busy, spare = free.setdefault(row, []), idle.setdefault(row, [])
        while busy and busy[0][0] <= start:
            heapq.heappush(spare, heapq.heappop(busy)[1])
        lane = heapq.heappop(spare) if spare else len(busy)
        heapq.heappush(busy, (start + timeline.seconds[i], lane))
        lanes[i] = lane
    return lanes
