"""The result: one launch as a scenario, all groups in two vocabularies, experts and warnings.

A layout as text that a person reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import left, right, text_table
from tracer.errors import ConfigError
from tracer.frameworks.notes import Note
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES

if TYPE_CHECKING:
    from tracer.frameworks.axis_groups import AxisGroups
    from tracer.frameworks.settings import Reading
    from tracer.scenario.scenario import BareScenario


OUR_AXES = (*DENSE_AXES, *EXPERT_AXES)
MAX_LISTED_PLACES = 1 << 24


@dataclass(frozen=True, slots=True)
class Layout:
    """A launch of a framework, laid out.

    ``scenario`` is the same mesh in this engine's words; ``model`` the name that the launch gives its model,
    or that of the one that ships under it. Lists are made when they are asked for and
    refused for meshes too large to write down; the layout itself costs the same at any size.
    """

    framework: str
    reading: Reading
    scenario: BareScenario
    warnings: tuple[Note, ...] = ()
    unknown_flags: tuple[str, ...] = ()
    model: str = ""

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.reading.world_size

    @property
    def groups(self) -> dict[str, list[list[int]]]:
        """Every group along each of our seven axes.

        Raises:
            ConfigError: above ``MAX_LISTED_RANKS`` ranks.
        """
        return {axis: self.reading.walk(axis).listed() for axis in OUR_AXES}

    @property
    def framework_groups(self) -> dict[str, list[list[int]]]:
        """Every group of the framework under its own name; members in its own order.

        Raises:
            ConfigError: as :attr:`groups`.
        """
        return {name: walk.listed() for name, walk in self.reading.groups.items()}

    @property
    def expert_ranks(self) -> dict[int, list[int]]:
        """The ranks that hold each expert, or a slice of it, over all stages; empty without experts.

        Raises:
            ConfigError: as :attr:`groups`, and above ``MAX_LISTED_PLACES`` places.
        """
        placement = self.reading.placement
        if placement is None:
            return {}
        rows = self.reading.walk("ep").walked()
        places = len(rows) * sum(placement.slots_on(rank) for rank in range(placement.ep))
        if places > MAX_LISTED_PLACES:
            raise ConfigError(
                "world_size",
                self.world_size,
                f"gives {places:,} places of experts, more than {MAX_LISTED_PLACES:,} can be listed",
                "ask for fewer GPUs or a model with fewer experts",
            )
        columns = [sorted(column) for column in zip(*rows, strict=True)]
        found: dict[int, list[int]] = {}
        for expert in range(placement.experts):
            ep_ranks = dict.fromkeys(placement.ep_ranks_of(expert))
            found[expert] = sorted(rank for ep_rank in ep_ranks for rank in columns[ep_rank])
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON values.

        Raises:
            ConfigError: as :attr:`groups` and :attr:`expert_ranks`.
        """
        return {
            "schema": 1,
            "world_size": self.world_size,
            "groups": self.groups,
            "framework_groups": self.framework_groups,
            "expert_ranks": {str(expert): ranks for expert, ranks in self.expert_ranks.items()},
            "warnings": [note.to_dict() for note in self.warnings],
            "scenario": self.scenario.to_dict(),
        }

    def __str__(self) -> str:
        return layout_text(self)


MAX_MEMBERS = 8
_COLUMNS = (left("group", 14), right("groups", 8, gap=0), right("size", 8, gap=0), left("rank 0's group"))


def layout_text(layout: Layout) -> str:
    """Sizes, the first group under every name, where experts sit, and the warnings."""
    reading = layout.reading
    mesh = layout.scenario.mesh
    lines = [
        f"{layout.framework}: {layout.world_size} GPUs",
        f"  dense   {_sizes(mesh.dense.names, mesh.dense.sizes)}  (fastest first)",
        f"  experts {_sizes(mesh.expert.names, mesh.expert.sizes)}  (over each stage's ranks)",
        "",
        *text_table(_COLUMNS, [_row(axis, reading.walk(axis)) for axis in (*DENSE_AXES, *EXPERT_AXES)]),
    ]
    lines += ["", f"  {layout.framework}'s own names"]
    own = [_row(name, walk) for name, walk in reading.groups.items()]
    lines += text_table(_COLUMNS, own, headings=False)
    placement = reading.placement
    if placement is not None:
        shown = ", ".join(map(str, placement.experts_of(0)[:MAX_MEMBERS]))
        more = "" if placement.slots_on(0) <= MAX_MEMBERS else ", ..."
        lines += [
            "",
            f"  {placement.experts} experts over {placement.ep} EP ranks: EP rank 0 holds {shown}{more}",
        ]
    for note in layout.warnings:
        lines += ["", f"! {note.code}: {note.message}", f"  {note.fix}"]
    return "\n".join(lines)


def _sizes(names: tuple[str, ...], sizes: tuple[int, ...]) -> str:
    return " ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))


def _row(name: str, walk: AxisGroups) -> tuple[object, ...]:
    first = walk.first(MAX_MEMBERS)
    if walk.ends:
        whole = walk.grid.group(0, walk.axes)
        first = sorted({whole[end] for end in walk.ends})
    size = len(first) if walk.ends else walk.size
    dots = ", ..." if size > MAX_MEMBERS else ""
    return name, walk.grid.size // walk.size, size, ", ".join(map(str, first)) + dots
