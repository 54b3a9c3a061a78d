"""A recorded run's ranks as one SVG string: stages as bands, who stopped, who waits for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from layouts.svg.map import document
from layouts.svg.pen import Pen
from tracer.mesh.axes import Axis

if TYPE_CHECKING:
    from tracer.runs.reading.recording import Group
    from tracer.runs.report import RunReport

MAX_CARDS, MAX_RANKS = 64, 4096
"""Up to as many ranks each is a card with its figures; beyond, a square; beyond the second, none is drawn."""
CARD, CARD_HEIGHT, SQUARE = 92.0, 92.0, 12.0
GAP, PAD, HEAD, LEFT = 10.0, 8.0, 28.0, 8.0
MAX_NOTES = 4
NO_RECORDING = "no recording"


def run_map(report: RunReport, theme: str = "auto") -> str:
    """The ranks of a run by stage; those named stand out, those that wait for them are said to.

    Each rank is a group of class ``run-rank`` with its number in ``data-rank``, so that a page can light it.
    """
    pen = Pen.of(theme)
    world = report.recording.world_size
    cards = world <= MAX_CARDS
    bands = _bands(report)[: MAX_RANKS // max(1, len(_bands(report)[0][1]))]
    named = {each.rank: each for each in report.blame.suspects}
    waiting = set().union(*(report.blame.waiting_for(rank) for rank in list(named)[:8])) - set(named)
    wide, tall = (CARD, CARD_HEIGHT) if cards else (SQUARE, SQUARE)
    gap = GAP if cards else 3.0
    row = max(min(len(members), 8 if cards else 64) for _, members in bands)
    across = max(1, (8 if cards else 64) // row)
    width = row * (wide + gap) - gap + 2 * PAD
    parts: list[str] = []
    y, tallest = 8.0, 0.0
    for number, (title, members) in enumerate(bands):
        if number and number % across == 0:
            y, tallest = y + tallest + GAP, 0.0
        x = LEFT + (number % across) * (width + GAP)
        lines = -(-len(members) // row)
        height = HEAD + lines * (tall + gap) - gap + PAD
        tallest = max(tallest, height)
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="10" {pen.fill("band")}/>'
        )
        parts.append(pen.text(x + PAD, y + 19, title, "soft", 12, weight=600))
        for place, rank in enumerate(members):
            at = (x + PAD + place % row * (wide + gap), y + HEAD + place // row * (tall + gap))
            state = _state(report, rank, set(named), waiting)
            parts += _card(report, rank, at, state, pen) if cards else _square(rank, at, state, pen)
    bottom = y + tallest + 12
    parts += _notes(report, bottom, pen)
    full = LEFT + min(across, len(bands)) * (width + GAP) + 8
    height = bottom + 20 * min(len(named), MAX_NOTES + 1) + 16
    names = ", ".join(map(str, list(named)[:16])) or "nobody"
    label = f"{world:,} ranks of the run; named: {names}; {len(waiting):,} wait for them"
    return document(max(full, 640.0), height, "".join(parts), pen, label)


def _bands(report: RunReport) -> list[tuple[str, list[int]]]:
    """Titles and ranks of the bands: stages where the layout is known, else all ranks together."""
    mesh, world = report.layout.mesh, report.recording.world_size
    if mesh is None or report.layout.sizes["pp"] == 1:
        return [("all ranks", list(range(world)))]
    stages: dict[int, list[int]] = defaultdict(list)
    for rank in range(min(world, mesh.world_size)):
        stages[mesh.group(rank, Axis.PP).index(rank)].append(rank)
    return [(f"Stage {stage}", stages[stage]) for stage in sorted(stages)]


def _state(report: RunReport, rank: int, named: set[int], waiting: set[int]) -> str:
    if rank in named:
        return "named"
    if rank not in report.recording.ranks:
        return "absent"
    return "waits" if rank in waiting else "level"


def _card(report: RunReport, rank: int, at: tuple[float, float], state: str, pen: Pen) -> Iterator[str]:
    x, y = at
    heavy = state == "named"
    ink, soft = ("page", "page") if heavy else ("ink", "soft")
    yield f'<g class="run-rank" data-rank="{rank}">'
    dash = ' stroke-dasharray="4 3"' if state == "absent" else ""
    box = pen.both("ink" if heavy else "box", "ink" if heavy else "edge")
    yield f'<rect x="{x:g}" y="{y:g}" width="{CARD:g}" height="{CARD_HEIGHT:g}" rx="8" {box}{dash}/>'
    yield pen.text(x + 9, y + 22, str(rank), ink, 16, weight=600 if state in ("named", "waits") else 400)
    yield pen.text(x + 9, y + 40, _coordinates(report, rank), soft, 12)
    yield pen.text(x + 9, y + 62, _figure(report, rank), ink, 13, weight=600 if heavy else 400)
    words = _rule_word(report, rank) if state == "named" else NO_RECORDING if state == "absent" else state
    yield pen.text(x + 9, y + 82, words, soft, 12, weight=600 if state in ("named", "waits") else 400)
    yield "</g>"


def _rule_word(report: RunReport, rank: int) -> str:
    rule = next(each.rule for each in report.blame.suspects if each.rank == rank)
    return {4: "differs", 6: NO_RECORDING, 5: "not started"}.get(rule, "stopped")


def _square(rank: int, at: tuple[float, float], state: str, pen: Pen) -> Iterator[str]:
    colour = {"named": "token", "waits": "tint2", "absent": "page"}.get(state, "box")
    shape = f'x="{at[0]:g}" y="{at[1]:g}" width="{SQUARE:g}" height="{SQUARE:g}" rx="2"'
    yield f'<g class="run-rank" data-rank="{rank}"><rect {shape} {pen.both(colour, "edge")}/></g>'


def _coordinates(report: RunReport, rank: int) -> str:
    mesh, sizes = report.layout.mesh, report.layout.sizes
    if mesh is None or rank >= mesh.world_size:
        return ""
    shown = [axis for axis in (Axis.TP, Axis.CP, Axis.DP) if sizes[axis] > 1]
    return "  ".join(f"{axis.upper()} {mesh.group(rank, axis).index(rank)}" for axis in shown[:2])


def closest_group(report: RunReport, rank: int) -> Group | None:
    """The smallest group of several ranks in which a rank's progress is known: TP where there is one."""
    record = report.recording.ranks.get(rank)
    if record is None:
        return None
    known = [
        group for group, each in record.progress.items() if group.size > 1 and each.completed is not None
    ]
    tensor = [group for group in known if report.layout.families.of(group) == "tp"]
    return min(tensor or known, key=lambda group: group.size, default=None)


def _figure(report: RunReport, rank: int) -> str:
    group = closest_group(report, rank)
    if group is None:
        return ""
    done = report.recording.ranks[rank].progress[group].completed
    return "" if done is None else f"{done:,}"


def _notes(report: RunReport, y: float, pen: Pen) -> Iterator[str]:
    for line, each in enumerate(report.blame.suspects[:MAX_NOTES]):
        words = each.why if len(each.why) < 150 else each.why[:147] + "..."
        yield pen.text(LEFT, y + 14 + 20 * line, f"{each.rank}: {words}", "ink", 12)
    if len(report.blame.suspects) > MAX_NOTES:
        more = f"and {len(report.blame.suspects) - MAX_NOTES} more, in the table below"
        yield pen.text(LEFT, y + 14 + 20 * MAX_NOTES, more, "soft", 12)
