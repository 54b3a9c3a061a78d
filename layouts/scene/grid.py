"""The map as a grid that explains itself: a row is a node, a column is a rail, a band is a stage.

An NVLink domain wider than ``MAX_COLUMNS`` wraps into several lines. A mesh of more than ``DRAW_ALL_LINES``
lines draws the touched ones only, and what lies between folds to a thin line with words: the cost
follows what the token touched, never the size of the mesh.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from layouts.scene.labels import expert_label, stage_layers_text
from layouts.scene.scene import Band, Fold, GpuBox, Line, Rail
from tracer.mesh.axes import Axis

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

MAX_COLUMNS = 18
DRAW_ALL_LINES = 8
MAX_LINES = 512

BOX_WIDTH, BOX_HEIGHT, GAP = 76.0, 64.0, 10.0
TALL_BOX_HEIGHT = 88.0  # room for the numbers of several tokens
LINE_GAP = 44.0
LEFT, RIGHT = 66.0, 12.0
RAIL_HEADER = 26.0
BAND_HEAD, BAND_FOOT, BAND_GAP = 48.0, 32.0, 14.0
FOLD_HEIGHT, FOLD_PAD = 24.0, 32.0
TINTS = 4
OWN_TINT = 2


@dataclass(frozen=True, slots=True)
class Slots:
    """Where a place of an NVLink domain goes: line (counted over all of them) and column."""

    columns: int
    lines_per_nvlink_domain: int
    nvlink_domains: int

    @classmethod
    def of(cls, scenario: Scenario) -> Slots:
        """Columns of the grid: the NVLink domain's size, or a divisor of it that fits."""
        cluster = scenario.cluster
        size = min(cluster.gpus_per_nvlink_domain, scenario.mesh.world_size)
        if cluster.placement is not None:
            size = cluster.gpus_per_nvlink_domain
        columns = size
        if size > MAX_COLUMNS:
            columns = next((n for n in range(MAX_COLUMNS, 7, -1) if size % n == 0), 16)
        return cls(columns, -(-size // columns), cluster.nvlink_domains)

    @property
    def lines(self) -> int:
        """Lines of the whole cluster."""
        return self.nvlink_domains * self.lines_per_nvlink_domain

    def line_of(self, scenario: Scenario, rank: int) -> int:
        """Line of a rank."""
        cluster = scenario.cluster
        place = cluster.index_in_nvlink_domain(rank) // self.columns
        return cluster.nvlink_domain_of(rank) * self.lines_per_nvlink_domain + place

    def ranks_on(self, scenario: Scenario, line: int) -> list[int | None]:
        """Ranks of a line by column; None where no rank sits."""
        nvlink_domain, place = divmod(line, self.lines_per_nvlink_domain)
        first = place * self.columns
        size = scenario.cluster.gpus_per_nvlink_domain
        indexes = range(first, min(first + self.columns, size))
        return [scenario.cluster.rank_at(nvlink_domain, index) for index in indexes]


@dataclass(frozen=True, slots=True)
class Grid:
    """Placed lines, folds, bands and rails, and the size of the whole."""

    width: float
    height: float
    lines: tuple[Line, ...]
    folds: tuple[Fold, ...]
    bands: tuple[Band, ...]
    rails: tuple[Rail, ...]
    line_of_rank: dict[int, int]


Segment = tuple[int, int, int]


def tint_of(scenario: Scenario, rank: int) -> int:
    """The colour of a GPU's replica: each of a few has its own, of many only the token's stands out.

    Colours that come again and again would say that replicas belong together, which they do not.
    """
    mesh = scenario.mesh
    replica = mesh.dense.coordinate(rank, Axis.DP)
    if mesh.dp == 1:
        return TINTS
    if mesh.dp <= TINTS:
        return replica
    return OWN_TINT if replica == scenario.replica else TINTS


def build_grid(
    scenario: Scenario, ranks: Iterable[int], *, all_lines: bool = False, box_height: float = BOX_HEIGHT
) -> Grid:
    """Place what ``ranks`` touch; ``all_lines`` draws every line, up to ``MAX_LINES``."""
    slots = Slots.of(scenario)
    drawn = _drawn_lines(scenario, slots, ranks, all_lines)
    walker = _Walker(scenario, slots, box_height)
    previous = -1
    for line in drawn:
        walker.fold(previous + 1, line)
        walker.line(line)
        previous = line
    walker.fold(previous + 1, slots.lines)
    return walker.finish()


def _drawn_lines(scenario: Scenario, slots: Slots, ranks: Iterable[int], all_lines: bool) -> list[int]:
    if slots.lines <= DRAW_ALL_LINES or (all_lines and slots.lines <= MAX_LINES):
        return list(range(slots.lines))
    home = slots.line_of(scenario, scenario.home)
    touched = sorted({slots.line_of(scenario, rank) for rank in ranks}, key=lambda line: (line != home, line))
    return sorted(touched[:MAX_LINES])


class _Walker:
    """Walks down the picture, opening a band when the stages of a line differ from those above."""

    def __init__(self, scenario: Scenario, slots: Slots, box_height: float) -> None:
        self.scenario, self.slots, self.box_height = scenario, slots, box_height
        self.y = RAIL_HEADER
        self.open: list[Segment] = []
        self.top = 0.0
        self.pending: list[tuple[int, int]] = []
        self.lines: list[Line] = []
        self.folds: list[Fold] = []
        self.bands: list[Band] = []
        self.line_of_rank: dict[int, int] = {}

    @property
    def right(self) -> float:
        """Right edge of the last column."""
        return LEFT + self.slots.columns * (BOX_WIDTH + GAP) - GAP

    def fold(self, first: int, end: int) -> None:
        """Note lines ``first .. end-1``, which are not drawn."""
        if first < end:
            self.pending.append((first, end))

    def line(self, line: int) -> None:
        """Place a line, in the open band when its stages are the same."""
        ranks = self.slots.ranks_on(self.scenario, line)
        segments = self._segments(ranks)
        if segments == self.open:
            self.y -= BAND_FOOT
            self.y += self._place_folds(FOLD_PAD, FOLD_PAD) or LINE_GAP
        else:
            self._close_band()
            self.y += self._place_folds(0.0, BAND_GAP)
            self.open, self.top = segments, self.y
            self.y += BAND_HEAD
        self._place_line(line, ranks)
        self.y += self.box_height + BAND_FOOT

    def _segments(self, ranks: list[int | None]) -> list[Segment]:
        """Runs of one stage along a line: (stage, first column, last column)."""
        stages = [(column, self.scenario.mesh.stage_of(r)) for column, r in enumerate(ranks) if r is not None]
        runs = []
        for stage, members in groupby(stages, key=lambda pair: pair[1]):
            columns = [column for column, _ in members]
            runs.append((stage, columns[0], columns[-1]))
        return runs

    def _place_line(self, line: int, ranks: list[int | None]) -> None:
        boxes = []
        for column, rank in enumerate(ranks):
            if rank is not None:
                self.line_of_rank[rank] = len(self.lines)
                boxes.append(self._box(rank, column))
        self.lines.append(Line(self._label(line), self.y, self.box_height, tuple(boxes)))

    def _label(self, line: int) -> str:
        nvlink_domain, place = divmod(line, self.slots.lines_per_nvlink_domain)
        if place:
            return ""
        return f"{self.scenario.cluster.domain_word} {nvlink_domain:,}"

    def _box(self, rank: int, column: int) -> GpuBox:
        mesh = self.scenario.mesh
        return GpuBox(
            rank,
            LEFT + column * (BOX_WIDTH + GAP),
            self.y,
            BOX_WIDTH,
            self.box_height,
            mesh.stage_of(rank),
            mesh.dense.coordinate(rank, Axis.DP),
            tint_of(self.scenario, rank),
            expert_label(self.scenario, rank),
        )

    def _close_band(self) -> None:
        step = BOX_WIDTH + GAP
        many = self.scenario.mesh.stages > 1
        for stage, first, last in self.open:
            whole = len(self.open) == 1
            x = 0.0 if whole else LEFT + first * step - GAP / 2
            end = self.right + RIGHT if whole else LEFT + last * step + BOX_WIDTH + GAP / 2
            label = f"Stage {stage}" if many else ""
            layers = stage_layers_text(self.scenario, stage) if many or whole else ""
            self.bands.append(Band(stage, label, layers, x, self.top, end - x, self.y - self.top))
        if self.open:
            self.y += BAND_GAP
        self.open = []

    def _place_folds(self, above: float, below: float) -> float:
        """Place the pending fold, and say how much room it took."""
        if not self.pending:
            return 0.0
        first, end = self.pending[0][0], self.pending[-1][1]
        self.pending = []
        y = self.y + above
        self.folds.append(Fold(self._fold_text(first, end), LEFT, y, self.right - LEFT, FOLD_HEIGHT))
        return above + FOLD_HEIGHT + below

    def _fold_text(self, first: int, end: int) -> str:
        word, lines = self.scenario.cluster.domain_word, end - first
        if first % self.slots.lines_per_nvlink_domain or lines % self.slots.lines_per_nvlink_domain:
            count, word = lines * self.slots.columns, "GPU"
        else:
            count = lines // self.slots.lines_per_nvlink_domain
        return f"{count:,} {word}{'' if count == 1 else 's'} not touched"

    def finish(self) -> Grid:
        """The grid, once every line is placed."""
        self._close_band()
        self.y += self._place_folds(0.0, 0.0)
        return Grid(
            self.right + RIGHT,
            self.y,
            tuple(self.lines),
            tuple(self.folds),
            tuple(self.bands),
            self._rails(),
            self.line_of_rank,
        )

    def _rails(self) -> tuple[Rail, ...]:
        if not self.lines:
            return ()
        bottom = self.lines[-1].y + self.box_height / 2
        word = "rail" if self.slots.lines_per_nvlink_domain == 1 else ""
        return tuple(
            Rail(
                f"{word} {column}" if word else "",
                LEFT + column * (BOX_WIDTH + GAP) + BOX_WIDTH / 2,
                RAIL_HEADER,
                bottom,
            )
            for column in range(self.slots.columns)
        )
