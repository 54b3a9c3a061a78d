"""Recorded groups held against those of a layout: the ones that differ, with what was expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES
from tracer.runs.families import WORLD, family_of
from tracer.runs.layout import RecoveredLayout, members_of
from tracer.runs.reading.recording import Group, Recording

if TYPE_CHECKING:
    from tracer.frameworks.layout import Layout
    from tracer.mesh.mesh import Mesh

Expected = Callable[[str, int], "tuple[int, ...] | None"]
"""The members of a rank's group of a family, or None where the layout has no such family."""
_STANDARD = (
    *DENSE_AXES, *EXPERT_AXES, "dp-cp", "tp-pp", "tp-cp", "tp-dp", "tp-dp-cp", "etp-ep", "etp-ep-pp", "embd",
    WORLD,
)  # fmt: skip


_LOOKED_FOR = ("tp", "cp", "pp", "ep")
"""Axes that every framework makes a group for; data parallelism may be sharded, or have none."""


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """A recorded group that the layout does not make; ``expected`` is empty where nothing is like it."""

    group: Group
    family: str | None
    expected: tuple[int, ...]

    def __str__(self) -> str:
        if not self.group.members:
            return f"{self.group.name}: the layout's {self.family} group of rank {self.expected[0]} is " + (
                _shown(self.expected)
            )
        if not self.expected:
            return f"{self.group}: the layout makes no such group"
        return f"{self.group}: the layout's {self.family} group is {_shown(self.expected)}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "group": self.group.description or self.group.name,
            "family": self.family,
            "recorded": list(self.group.members),
            "expected": list(self.expected),
        }


def _shown(members: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, members[:8]))}{', ...' if len(members) > 8 else ''}]"


def of_mesh(mesh: Mesh) -> Expected:
    """The groups of a mesh."""
    return lambda family, rank: members_of(mesh, family, rank)


def of_launch(layout: Layout) -> Expected:
    """The groups of a framework's launch: its own where it names them so, else by the scenario's mesh."""
    own: dict[str, Mapping[int, tuple[int, ...]]] = {}

    def expected(family: str, rank: int) -> tuple[int, ...] | None:
        """A launch's group of a family."""
        if family in layout.reading.groups:
            if family not in own:
                listed = layout.reading.groups[family].listed()
                own[family] = {rank: tuple(group) for group in listed for rank in group}
            return own[family].get(rank, ())
        return members_of(layout.scenario.mesh, family, rank)

    return expected


def differing_groups(
    recording: Recording, layout: RecoveredLayout, expected: Expected, *, unnamed: bool
) -> list[GroupDifference]:
    """Recorded groups that are not those expected, smallest first.

    Groups with a known description are compared with their family, members in order; with ``unnamed``, the
    others with every family, as sets, and an axis that the layout has and no recorded group is a difference.
    """
    found: list[GroupDifference] = []
    for group in sorted(recording.groups, key=lambda each: (each.size, each.members)):
        if not group.members:
            continue
        family = family_of(group.description)
        if family is not None:
            members = expected(family, group.members[0])
            if members is not None and members != group.members and not _taken_from_few(group, recording):
                found.append(GroupDifference(group, family, members))
        elif unnamed and group.size > 1 and layout.families.of(group) is not None:
            guess = layout.families.of(group) or ""
            if not any(_same(expected(each, group.members[0]), group) for each in _STANDARD):
                found.append(GroupDifference(group, guess, expected(guess, group.members[0]) or ()))
    return found + (_lacking(recording, layout, expected) if unnamed else [])


def _lacking(recording: Recording, layout: RecoveredLayout, expected: Expected) -> list[GroupDifference]:
    """Axes over which the expected layout spreads ranks, and no recorded group does."""
    recorded = {frozenset(group.members) for group in recording.groups}
    have = {family for group, family in layout.families.items() if group.size > 1}
    found: list[GroupDifference] = []
    for axis in _LOOKED_FOR if have else ():
        members = expected(axis, min(recording.ranks))
        if axis not in have and members and len(members) > 1 and frozenset(members) not in recorded:
            found.append(GroupDifference(Group(f"no {axis} group is recorded", "", ()), axis, members))
    return found


def _same(members: tuple[int, ...] | None, group: Group) -> bool:
    return members is not None and set(members) == set(group.members)


def _taken_from_few(group: Group, recording: Recording) -> bool:
    """Whether the members are only those that were recorded, of ranks of which some are missing."""
    return not group.listed and bool(recording.missing)
