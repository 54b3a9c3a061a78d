"""Where two launches part: the same groups, axis by axis, or the first rank whose groups differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.frameworks.layout import OUR_AXES

if TYPE_CHECKING:
    from tracer.frameworks.layout import Layout


@dataclass(frozen=True, slots=True)
class Parting:
    """One of our axes on which two layouts differ, and the groups of the first rank that differs."""

    axis: str
    rank: int
    first: tuple[int, ...]
    second: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """Two launches compared; ``experts`` names the first expert that sits on different ranks."""

    names: tuple[str, str]
    world_sizes: tuple[int, int]
    partings: tuple[Parting, ...]
    expert: tuple[int, tuple[int, ...], tuple[int, ...]] | None

    @property
    def same(self) -> bool:
        """Whether all groups, and the experts where both are known, are the same."""
        return self.world_sizes[0] == self.world_sizes[1] and not self.partings and self.expert is None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "schema": 1,
            "same": self.same,
            "frameworks": list(self.names),
            "world_sizes": list(self.world_sizes),
            "partings": [
                {"axis": part.axis, "rank": part.rank, "groups": [list(part.first), list(part.second)]}
                for part in self.partings
            ],
            "expert": None
            if self.expert is None
            else {"expert": self.expert[0], "ranks": [list(self.expert[1]), list(self.expert[2])]},
        }

    def __str__(self) -> str:
        first, second = self.names
        if self.world_sizes[0] != self.world_sizes[1]:
            return f"different: {first} starts {self.world_sizes[0]} GPUs, {second} {self.world_sizes[1]}"
        if self.same:
            return f"same groups on all axes ({', '.join(OUR_AXES)}), {self.world_sizes[0]} GPUs"
        lines = [f"different on {', '.join(part.axis for part in self.partings) or 'expert placement'}"]
        for part in self.partings:
            groups = f"{first} {_shown(part.first)}, {second} {_shown(part.second)}"
            lines.append(f"  {part.axis}, rank {part.rank}: {groups}")
        if self.expert is not None:
            expert, ours, theirs = self.expert
            lines.append(f"  expert {expert}: {first} {_shown(ours)}, {second} {_shown(theirs)}")
        return "\n".join(lines)


def diff(layout_a: Layout, layout_b: Layout) -> GroupComparison:
    """Compare the groups of two layouts along our seven axes, as sets, and their experts.

    Raises:
        ConfigError: for meshes too large to list.
    """
    names = (layout_a.framework, layout_b.framework)
    sizes = (layout_a.world_size, layout_b.world_size)
    if sizes[0] != sizes[1]:
        return GroupComparison(names, sizes, (), None)
    partings = [_parting(axis, layout_a, layout_b) for axis in OUR_AXES]
    return GroupComparison(
        names, sizes, tuple(part for part in partings if part), _expert(layout_a, layout_b)
    )


def _parting(axis: str, layout_a: Layout, layout_b: Layout) -> Parting | None:
    first, second = (_group_of_each(layout.reading.walk(axis).walked()) for layout in (layout_a, layout_b))
    for rank in range(len(first)):
        if first[rank] != second[rank]:
            return Parting(axis, rank, first[rank], second[rank])
    return None


def _group_of_each(groups: list[list[int]]) -> list[tuple[int, ...]]:
    """The ascending group of every rank, by rank."""
    found: dict[int, tuple[int, ...]] = {}
    for group in groups:
        members = tuple(sorted(group))
        found.update(dict.fromkeys(members, members))
    return [found[rank] for rank in range(len(found))]


def _expert(layout_a: Layout, layout_b: Layout) -> tuple[int, tuple[int, ...], tuple[int, ...]] | None:
    first, second = layout_a.expert_ranks, layout_b.expert_ranks
    if not first or not second:
        return None
    for expert in sorted(first.keys() | second.keys()):
        if first.get(expert) != second.get(expert):
            return expert, tuple(first.get(expert, ())), tuple(second.get(expert, ()))
    return None


def _shown(group: tuple[int, ...]) -> str:
    dots = ", ..." if len(group) > 8 else ""
    return f"[{', '.join(map(str, group[:8]))}{dots}]"
