"""What a result shows in a notebook: text and a table; a picture from an entry point, if one is there.

The engine draws nothing. A package that can draw registers a function under the entry-point group
``tokentrip.renderers``, named after what it draws; it is looked up when a notebook asks.

Seconds as a person reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import fsum, inf, isfinite


def format_bytes(size: int) -> str:
    """Bytes with a decimal unit.

    >>> format_bytes(8192), format_bytes(1_245_184)
    ('8,192 B', '1.25 MB')
    """
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**4)):
        if size >= scale:
            return f"{size / (1000 if unit == 'kB' else scale):.3g} {unit}"
    return f"{size:,} B"


GROUP = "tokentrip.renderers"


def mime_bundle(
    kind: str, result: object, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> dict[str, str]:
    """MIME types to content: plain text, an HTML table, and an SVG picture where ``kind`` has a renderer."""
    bundle = {"text/plain": str(result), "text/html": html_table(header, rows)}
    picture = _picture(kind, result)
    if picture is not None:
        bundle["image/svg+xml"] = picture
        bundle["text/html"] = picture + bundle["text/html"]
    return bundle


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain HTML table; every cell is escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _picture(kind: str, result: object) -> str | None:
    """What the registered renderer of a kind draws, or None without one."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=kind):
        return str(entry.load()(result))
    return None


_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def format_seconds(seconds: float) -> str:
    """Seconds in the unit that leaves one to three digits before the point.

    >>> format_seconds(0.0), format_seconds(1.64e-7), format_seconds(0.0123), format_seconds(75.0)
    ('0', '164 ns', '12.3 ms', '75 s')
    """
    if seconds == 0:
        return "0"
    if seconds == float("inf"):
        return "for ever"
    for unit, scale in _UNITS:
        if abs(seconds) >= scale * 0.9995:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def exact_sum(values: Iterable[float]) -> float:
    """Numbers of 0 or more added exactly and rounded once, so that every Python gives the same digits.

    ``sum`` of floats rounds otherwise from Python 3.12 on than before. Infinite where no float is as large.

    >>> exact_sum([0.1] * 10), exact_sum([1e308, 1e308])
    (1.0, inf)
    """
    try:
        return fsum(values)
    except OverflowError:
        return inf


def running_sums(values: Iterable[float]) -> Iterator[float]:
    """The :func:`exact_sum` of all values so far, after each.

    What rounding loses of each addition is kept beside the sum (Shewchuk, Adaptive Precision
    Floating-Point Arithmetic, 1997).

    >>> list(running_sums([0.1, 0.2, 0.3]))
    [0.1, 0.30000000000000004, 0.6]
    """
    kept: list[float] = []
    for value in values:
        lost = []
        for part in kept:
            total = value + part
            # Exact whichever of the two is larger (Knuth's two-sum); an infinite sum loses nothing.
            back = total - value
            error = (value - (total - back)) + (part - back) if isfinite(total) else 0.0
            if error:
                lost.append(error)
            value = total
        kept = [*lost, value]
        yield exact_sum(kept)
