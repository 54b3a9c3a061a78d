"""Settings of one launch: every value by the framework's own name for it, and which were given.

What a framework makes of its settings, in its own words: grids, groups, plan and placement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.notes import Note
from tracer.frameworks.other_flags import OtherFlags
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES
from tracer.mesh.hardware import hardware_preset

if TYPE_CHECKING:
    from tracer.frameworks.axis_groups import AxisGroups, View
    from tracer.frameworks.flags import Dialect, Flag
    from tracer.frameworks.found_model import FoundModel
    from tracer.mesh.mesh import Mesh
    from tracer.model.spec import ModelSpec
    from tracer.scenario.placement import Placement
    from tracer.scenario.plan import Plan


@dataclass(frozen=True, slots=True)
class Settings:
    """Values by ``dest``: those given, else the flags' defaults."""

    flags: Mapping[str, Flag]
    given: Mapping[str, object]

    def get(self, dest: str) -> object:
        """The value of a setting, or its default."""
        value = self.given.get(dest)
        return self.flags[dest].default if value is None else value

    def has(self, dest: str) -> bool:
        """Whether a setting was given."""
        return self.given.get(dest) is not None

    def size(self, dest: str) -> int:
        """A whole number that has a default."""
        value = self.get(dest)
        if not isinstance(value, int):
            raise ConfigError(self.flags[dest].name, value, "must be a whole number", "give it one")
        return value

    def maybe(self, dest: str) -> int | None:
        """A whole number, or None where it was not given and has no default."""
        value = self.get(dest)
        return value if isinstance(value, int) else None

    def on(self, dest: str) -> bool:
        """Whether a switch is on."""
        return self.get(dest) is True

    def text(self, dest: str) -> str:
        """A word; empty where it was not given and has no default."""
        value = self.get(dest)
        return value if isinstance(value, str) else ""

    def whole_list(self, dest: str) -> tuple[int, ...]:
        """A list of whole numbers; empty where it was not given."""
        value = self.get(dest)
        return tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else ()

    def lists(self, dest: str) -> tuple[tuple[str, ...], ...]:
        """Lists of words; empty where they were not given."""
        value = self.get(dest)
        return value if isinstance(value, tuple) else ()

    def table(self, dest: str) -> Mapping[str, object]:
        """A JSON object; empty where it was not given."""
        value = self.get(dest)
        return value if isinstance(value, dict) else {}

    def inner(self, dest: str, key: str, low: int = 0) -> int | None:
        """A whole number inside a JSON object, or None.

        Raises:
            ConfigError: naming ``flag.key``.
        """
        from tracer.frameworks.flags import Flag, convert

        value = convert(Flag(key, (f"{self.flags[dest].name}.{key}",), low=low), self.table(dest).get(key))
        return value if isinstance(value, int) else None

    def name(self, dest: str) -> str:
        """The flag that sets ``dest``, as messages write it."""
        return self.flags[dest].name if dest in self.flags else f"--{dest}"

    def changed(self, dest: str, value: object) -> Settings:
        """The same settings with one changed."""
        return replace(self, given={**self.given, dest: value})


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a framework: its settings, and the machine and model they run on.

    ``gpus`` is None where neither the caller nor the launch line says how many there are. ``env`` holds
    the environment assignments of the launch line, never the process's own environment. ``hardware`` names
    the GPUs, where the caller does; ``cluster`` are keys of the scenario's cluster that the caller states.
    """

    settings: Settings
    gpus: int | None
    gpus_per_node: int = 8
    version: str | None = None
    model: ModelSpec | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    hardware: str | None = None
    cluster: Mapping[str, object] = field(default_factory=dict)

    @property
    def nodes_per_domain(self) -> int:
        """Nodes that one NVLink domain spans: 1, or the nodes of a rack whose GPUs NVLink joins (NVL72)."""
        if self.hardware is None:
            return 1
        return max(1, hardware_preset(self.hardware).gpus_per_nvlink_domain // self.gpus_per_node)

    def need_gpus(self, title: str) -> int:
        """The number of GPUs.

        Raises:
            ConfigError: when nothing says it.
        """
        if self.gpus is None:
            raise ConfigError(
                "gpus",
                None,
                f"is needed: {title} takes what its flags leave over as data parallelism",
                "add --gpus N, or give the whole launch line (torchrun --nnodes N --nproc-per-node M ...)",
            )
        return self.gpus

    @property
    def experts(self) -> int | None:
        """Routed experts of the model, when it is known and has any."""
        return self.model.experts if self.model is not None else None

    def changed(self, dest: str, value: object) -> Request:
        """The same question with one setting changed; ``"gpus"`` is the number of GPUs."""
        if dest == "gpus":
            return replace(self, gpus=value if isinstance(value, int) else None)
        return replace(self, settings=self.settings.changed(dest, value))


@dataclass(frozen=True, slots=True)
class Reading:
    """One launch as its framework lays it out.

    ``dense`` and ``expert`` say which of the framework's axes make up ours (pp among the expert ones where
    the framework lays it out twice, as Megatron does); ``groups`` are its own groups under its own names.
    ``plan`` holds keys of a scenario's ``mesh`` table that are not sizes (``sp``, ``contract``, ...);
    ``placement`` is None while the number of experts is not known; ``layer_placements`` are those of layers,
    counted from 1, that have one of their own.
    """

    dense: View
    expert: View
    groups: Mapping[str, AxisGroups]
    plan: Mapping[str, object] = field(default_factory=dict)
    placement: Placement | None = None
    notes: tuple[Note, ...] = ()
    layer_placements: tuple[tuple[int, Placement], ...] = ()

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.dense.grid.size

    def walk(self, axis: str) -> AxisGroups:
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
    ``others`` lists its other flags, with the release that they were read from. ``config_decides`` is for
    a framework whose configuration file sets the sizes where the line does not. ``write`` is the other
    direction: the flags that make a mesh, as near as the framework can say it. ``names_model`` is for a
    command that takes the model's name as a bare word; ``sizes_model`` makes a model of size flags.
    """

    name: str
    title: str
    flags: tuple[Flag, ...]
    dialect: Dialect
    read: Callable[[Request], Reading]
    file_wins: bool = False
    others: OtherFlags = field(default_factory=OtherFlags)
    config_decides: bool = True
    write: Callable[[Mesh, Plan], list[str]] | None = None
    names_model: bool = False
    sizes_model: Callable[[Settings], FoundModel] | None = None
