"""What a framework makes of its settings, in its own words: grids, groups, plan and placement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracer.axes import DENSE_AXES, EXPERT_AXES
from tracer.frameworks.notes import Note

if TYPE_CHECKING:
    from tracer.expert_placement import Placement
    from tracer.frameworks.flags import Dialect, Flag
    from tracer.frameworks.settings import Request
    from tracer.frameworks.walks import View, Walk


@dataclass(frozen=True, slots=True)
class Reading:
    """One launch as its framework lays it out.

    ``dense`` and ``expert`` say which of the framework's axes make up ours (pp among the expert ones where
    the framework lays it out twice, as Megatron does); ``groups`` are its own groups under its own names.
    ``plan`` holds keys of a scenario's ``mesh`` table that are not sizes (``sp``, ``contract``, ...);
    ``placement`` is None while the number of experts is not known.
    """

    dense: View
    expert: View
    groups: Mapping[str, Walk]
    plan: Mapping[str, object] = field(default_factory=dict)
    placement: Placement | None = None
    notes: tuple[Note, ...] = ()

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.dense.grid.size

    def walk(self, axis: str) -> Walk:
        """The groups of one of our seven axes."""
        return (self.dense if axis in DENSE_AXES else self.expert).walk(axis)

    def mesh_table(self) -> dict[str, object]:
        """The ``mesh`` table of a scenario."""
        sizes = {axis: self.dense.size(axis) for axis in DENSE_AXES}
        placed = tuple(axis for axis in (*EXPERT_AXES, "pp") if axis in self.expert.parts)
        return {
            "order": self.dense.order(DENSE_AXES),
            **sizes,
            **{axis: self.expert.size(axis) for axis in EXPERT_AXES},
            "expert_order": self.expert.order(placed),
            **self.plan,
        }


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework: its flags, how its parser reads them, and what it makes of them.

    ``read`` raises :class:`~tracer.frameworks.notes.Refusal` where the framework would refuse.
    ``file_wins`` is for a framework whose configuration file overrides its flags; usually flags do.
    ``version`` and ``read_on`` say which release the rules and lists were read from, and when.
    ``shapes_nothing`` are its flags that are passed over without a word; ``not_modelled`` those that
    change what a trip shows and are not counted, with what the trip lacks. ``config_decides`` is for a
    framework whose configuration file sets the sizes where the line does not.
    """

    name: str
    title: str
    flags: tuple[Flag, ...]
    dialect: Dialect
    read: Callable[[Request], Reading]
    file_wins: bool = False
    version: str = ""
    read_on: str = ""
    shapes_nothing: frozenset[str] = frozenset()
    not_modelled: Mapping[str, str] = field(default_factory=dict)
    config_decides: bool = True
