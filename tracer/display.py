"""How results show themselves: units, tables of plain text, and what ``print`` and a notebook call.

A result does not import what writes it. A class that has a writer in another file inherits :class:`Shown` and
names the functions; they are imported when they are called. The engine draws nothing: a package that draws
registers a function under the entry-point group ``tokentrip.renderers``, named after what it draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from math import fsum, inf, isfinite
from typing import Any, ClassVar, NamedTuple

PICTURES = "tokentrip.renderers"
Rows = Iterable[Sequence[object]]


def number_runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as runs, each by its first and last.

    >>> number_runs([1, 2, 3, 7, 9, 10])
    [(1, 3), (7, 7), (9, 10)]
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def format_bytes(size: float) -> str:
    """Bytes with a decimal unit, rounded to whole bytes first.

    >>> format_bytes(8192), format_bytes(1_245_184)
    ('8,192 B', '1.25 MB')
    """
    whole = round(size)
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**4)):
        if whole >= scale:
            return f"{whole / (1000 if unit == 'kB' else scale):.3g} {unit}"
    return f"{whole:,} B"


def format_count(number: int) -> str:
    """A count in thousands, millions, billions or trillions, three digits or more.

    >>> format_count(671_026_404_352), format_count(1_006_592), format_count(512)
    ('671 B', '1.01 M', '512')
    """
    for size, letter in ((10**12, " T"), (10**9, " B"), (10**6, " M"), (10**3, " k")):
        if number >= size:
            value = number / size
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}{letter}"
    return str(number)


def format_seconds(seconds: float) -> str:
    """Seconds in the unit that leaves one to three digits before the point.

    >>> format_seconds(0.0), format_seconds(1.64e-7), format_seconds(0.0123), format_seconds(75.0)
    ('0', '164 ns', '12.3 ms', '75 s')
    """
    if seconds == 0:
        return "0"
    if seconds == float("inf"):
        return "for ever"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        # Three digits round 0.9995 up to 1.00, so that much already takes the larger unit.
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


def runs_of(numbers: Iterable[int]) -> list[range]:
    """Ascending numbers as runs of neighbours.

    >>> runs_of([0, 1, 2, 5])
    [range(0, 3), range(5, 6)]
    """
    runs: list[range] = []
    for number in numbers:
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def short_range(numbers: Iterable[int]) -> str:
    """Ascending numbers, each run as its ends.

    >>> short_range((0, 1, 2, 3)), short_range((0, 2, 3)), short_range(())
    ('0-3', '0, 2-3', '')
    """
    runs = ((run.start, run.stop - 1) for run in runs_of(numbers))
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


class Column(NamedTuple):
    """A column of a plain-text table.

    ``width`` is its letters, which longer cells exceed; None takes those of the longest cell. ``gap`` blanks
    stand to its left.
    """

    heading: str
    width: int | None = None
    gap: int = 2
    right: bool = False

    def pad(self, cell: str, width: int) -> str:
        """A cell in ``width`` letters, with the gap before it."""
        return " " * self.gap + (cell.rjust(width) if self.right else cell.ljust(width))


def left(heading: str = "", width: int | None = None, *, gap: int = 2) -> Column:
    """A column of words, which start at the left."""
    return Column(heading, width, gap)


def right(heading: str = "", width: int | None = None, *, gap: int = 2) -> Column:
    """A column of numbers, which end at the right."""
    return Column(heading, width, gap, right=True)


def text_table(
    columns: Sequence[Column], rows: Rows, *, headings: bool = True, line_width: int | None = None
) -> list[str]:
    """The lines of a table: the headings, then the rows; no line ends in blanks.

    ``line_width`` are the letters of a terminal's line: the last column then wraps under itself.

    >>> text_table([left("hop", gap=0), right("GPUs", 6)], [("embed", 1), ("dispatch", 12)])
    ['hop         GPUs', 'embed          1', 'dispatch      12']
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if headings:
        cells.insert(0, [column.heading for column in columns])
    widths = [
        max((len(row[place]) for row in cells), default=0) if column.width is None else column.width
        for place, column in enumerate(columns)
    ]
    lines: list[str] = []
    for row in cells:
        padded = [column.pad(cell, width) for column, cell, width in zip(columns, row, widths, strict=True)]
        if line_width is None:
            lines.append("".join(padded).rstrip())
        else:
            lines += _wrapped("".join(padded[:-1]) + " " * columns[-1].gap, row[-1], line_width)
    return lines


def _wrapped(before: str, last: str, line_width: int) -> list[str]:
    """A row whose last cell goes on under itself; a terminal too narrow for that wraps lines on its own."""
    room = line_width - len(before)
    import textwrap

    parts = textwrap.wrap(last, room) if room > 0 else [last]
    first, *others = parts or [""]
    return [(before + first).rstrip(), *(" " * len(before) + part for part in others)]


def html_table(header: Sequence[str], rows: Rows) -> str:
    """A plain HTML table; every cell is escaped."""
    from html import escape

    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def mime_bundle(kind: str, result: object, header: Sequence[str], rows: Rows) -> dict[str, str]:
    """MIME types to content: plain text, an HTML table, and an SVG picture where ``kind`` has a renderer."""
    bundle = {"text/plain": str(result), "text/html": html_table(header, rows)}
    picture = _picture(kind, result)
    if picture is not None:
        bundle["image/svg+xml"] = picture
        bundle["text/html"] = picture + bundle["text/html"]
    return bundle


def _picture(kind: str, result: object) -> str | None:
    """What the registered renderer of a kind draws, or None without one."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=PICTURES, name=kind):
        return str(entry.load()(result))
    return None


class Writers(NamedTuple):
    """The functions that write a class of results, each as ``"module:function"``.

    ``text`` gives what ``print`` shows and ``values`` the JSON values; ``table`` gives a notebook's header
    and rows, and ``picture`` is the name under which a package registers what draws it.
    """

    text: str
    values: str
    table: str | None = None
    picture: str = ""

    def named(self) -> tuple[str, ...]:
        """The functions that are named."""
        return tuple(name for name in (self.text, self.values, self.table) if name is not None)


def writer(name: str) -> Callable[..., Any]:
    """The function that ``"module:function"`` names.

    Raises:
        ImportError: when there is no such module.
        AttributeError: when the module has no such function.
    """
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


class Shown:
    """A result that names its writers in ``WRITERS``; ``print``, ``to_dict`` and notebooks call them.

    The writers import the result, and the result imports none of them: no circle, also not a hidden one.
    """

    __slots__ = ()
    WRITERS: ClassVar[Writers]

    def __str__(self) -> str:
        return str(writer(self.WRITERS.text)(self))

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        values: dict[str, Any] = writer(self.WRITERS.values)(self)
        return values

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook shows: the text, a table, and a picture where one is registered."""
        if self.WRITERS.table is None:
            return {"text/plain": str(self)}
        header, rows = writer(self.WRITERS.table)(self)
        return mime_bundle(self.WRITERS.picture, self, header, rows)
