"""Members of groups that no recording lists, where a rank that would tell them gave none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from tracer.runs.reading.recording import Group

Members = tuple[int, ...]


def completed_members(
    seen: Mapping[Group, Members], world_size: int, recorded: Container[int]
) -> dict[Group, Members]:
    """Each group with those that recorded it, and the missing ranks that its siblings' spacing calls for.

    Siblings have the same description; a group of fewer ranks than most of them is completed where ranks
    without a recording, and only one choice of them, make it as they are.
    """
    spacings: dict[str, Counter[Members]] = {}
    for group, members in seen.items():
        spacings.setdefault(group.description, Counter())[_spacing(members)] += 1
    missing = [rank for rank in range(world_size) if rank not in recorded]
    return {
        group: _completed(members, spacings[group.description], missing) for group, members in seen.items()
    }


def _spacing(members: Members) -> Members:
    """Distances of the members from the first."""
    return tuple(rank - members[0] for rank in members)


def _completed(members: Members, spacings: Counter[Members], missing: list[int]) -> Members:
    usual, count = spacings.most_common(1)[0]
    if len(usual) <= len(members) or count < 2:
        return members
    found = set()
    for first in {members[0] - offset for offset in usual}:
        whole = tuple(first + offset for offset in usual)
        if set(members) <= set(whole) and set(whole) - set(members) <= set(missing):
            found.add(whole)
    return found.pop() if len(found) == 1 else members
