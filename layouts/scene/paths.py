"""The path of a transfer over the map: arcs along a row, straight down a rail, round boxes between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.scene.grid import BOX_WIDTH, GAP, Grid
from layouts.scene.scene import GpuBox
from tracer.mesh.cluster import Tier

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster

NUDGE = 10.0
ARC_LOW, ARC_HIGH = 10.0, 28.0
TURN = 12.0


def on_rail(cluster: Cluster, source: int, destination: int, tier: str) -> bool:
    """False for an InfiniBand transfer that changes column."""
    return tier != Tier.IB or cluster.index_in_nvlink_domain(source) == cluster.index_in_nvlink_domain(
        destination
    )


@dataclass(frozen=True, slots=True)
class LinkRouter:
    """Draws the path between two ranks of a grid; ``home_line`` decides on which side arcs run."""

    grid: Grid
    boxes: dict[int, GpuBox]
    home_line: int

    @classmethod
    def of(cls, grid: Grid, home: int) -> LinkRouter:
        """A router over a grid's boxes."""
        boxes = {box.rank: box for line in grid.lines for box in line.gpus}
        return cls(grid, boxes, grid.line_of_rank.get(home, 0))

    def path(self, source: int, destination: int) -> str:
        """SVG path data; empty when an end is not drawn."""
        a, b = self.boxes.get(source), self.boxes.get(destination)
        if a is None or b is None:
            return ""
        row_a, row_b = self.grid.line_of_rank[source], self.grid.line_of_rank[destination]
        if row_a == row_b:
            return self._arc(a, b, above=row_a < self.home_line)
        if abs(row_a - row_b) == 1:
            return _neighbours(a, b)
        return _round_boxes(a, b) if a.x == b.x else _swing(a, b)

    def _arc(self, a: GpuBox, b: GpuBox, *, above: bool) -> str:
        """Along a row, over or under the boxes between."""
        sign = 1 if b.x > a.x else -1
        x0, x1 = _middle(a) + sign * NUDGE, _middle(b) - sign * NUDGE
        columns = max(len(line.gpus) for line in self.grid.lines)
        share = abs(b.x - a.x) / (columns * (BOX_WIDTH + GAP))
        height = ARC_LOW + (ARC_HIGH - ARC_LOW) * min(1.0, share)
        y = a.y if above else a.y + a.height
        bend = y - height * 4 / 3 if above else y + height * 4 / 3
        return f"M{_n(x0)} {_n(y)}C{_n(x0)} {_n(bend)} {_n(x1)} {_n(bend)} {_n(x1)} {_n(y)}"


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _middle(box: GpuBox) -> float:
    return box.x + BOX_WIDTH / 2


def _ends(a: GpuBox, b: GpuBox) -> tuple[float, float]:
    """Where a path leaves the upper or lower edge of one box and reaches the other."""
    down = b.y > a.y
    return (a.y + a.height if down else a.y), (b.y if down else b.y + b.height)


def _neighbours(a: GpuBox, b: GpuBox) -> str:
    """Between lines next to each other: straight down the rail, or an S to another column."""
    y0, y1 = _ends(a, b)
    x0, x1 = _middle(a), _middle(b)
    if x0 == x1:
        return f"M{_n(x0)} {_n(y0)}L{_n(x1)} {_n(y1)}"
    half = (y0 + y1) / 2
    return f"M{_n(x0)} {_n(y0)}C{_n(x0)} {_n(half)} {_n(x1)} {_n(half)} {_n(x1)} {_n(y1)}"


def _round_boxes(a: GpuBox, b: GpuBox) -> str:
    """Down a rail past lines between: out beside the boxes, along the gap, and back."""
    y0, y1 = _ends(a, b)
    sign = 1 if y1 > y0 else -1
    x, gap = _middle(a), a.x + BOX_WIDTH + GAP / 2
    leave, arrive = y0 + sign * 2 * TURN, y1 - sign * 2 * TURN
    return (
        f"M{_n(x)} {_n(y0)}C{_n(x)} {_n(leave)} {_n(gap)} {_n(y0)} {_n(gap)} {_n(leave)}"
        f"L{_n(gap)} {_n(arrive)}C{_n(gap)} {_n(y1)} {_n(x)} {_n(arrive)} {_n(x)} {_n(y1)}"
    )


def _swing(a: GpuBox, b: GpuBox) -> str:
    """To a far line in another column: along the gap beside the source's column, then across."""
    y0, y1 = _ends(a, b)
    sign = 1 if y1 > y0 else -1
    x0, x1 = _middle(a), _middle(b)
    gap = a.x + BOX_WIDTH + GAP / 2 if x1 > x0 else a.x - GAP / 2
    leave, turn = y0 + sign * 2 * TURN, y1 - sign * 4 * TURN
    return (
        f"M{_n(x0)} {_n(y0)}C{_n(x0)} {_n(leave)} {_n(gap)} {_n(y0)} {_n(gap)} {_n(leave)}"
        f"L{_n(gap)} {_n(turn)}C{_n(gap)} {_n(y1 - sign * TURN)} {_n(x1)} {_n(turn)} {_n(x1)} {_n(y1)}"
    )
