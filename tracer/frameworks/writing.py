"""The other direction: launch flags of a scenario, where a framework can make its mesh.

What a framework writes is read back as any launch is, and held against the scenario: groups that differ are
refused by axis, choices that differ are said.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.frameworks.notes import Note
from tracer.frameworks.opening import from_flags
from tracer.frameworks.registry import FRAMEWORKS, framework
from tracer.mesh.axes import DENSE_AXES, EXPERT_AXES
from tracer.scenario.scenario import Scenario

if TYPE_CHECKING:
    from tracer.frameworks.layout import Layout
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.scenario import BareScenario

SCHEMA = 1
SAID = (
    *("sp", "contract", "dispatch", "kv_exchange", "landing", "dense_tp", "stage_layers", "dcp"),
    *("dcp_interleave", "chunks", "chunk_order", "chunk_layers", "cp_inner", "weight_shard"),
    *("weight_shard_size", "weight_keep", "shared_tp", "shared_overlap", "embedding"),
)
"""Choices of a plan that are held against what the flags give."""


@dataclass(frozen=True, slots=True)
class LaunchFlags:
    """Flags that start a scenario's mesh on ``gpus`` GPUs, and what they do not say."""

    framework: str
    words: tuple[str, ...]
    gpus: int
    warnings: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "schema": SCHEMA,
            "framework": self.framework,
            "gpus": self.gpus,
            "flags": list(self.words),
            "warnings": [note.to_dict() for note in self.warnings],
        }

    def __str__(self) -> str:
        return shlex.join(self.words)


def launch_flags(scenario: BareScenario, name: str) -> LaunchFlags:
    """The launch flags of a scenario for one framework; reading them gives the same groups.

    Raises:
        ConfigError: for a framework that is not written, and where its groups cannot be the scenario's: the
            axes that differ are named, with their sizes and strides.
    """
    known = framework(name)
    if known.write is None:
        written = ", ".join(each for each in FRAMEWORKS if framework(each).write is not None)
        raise ConfigError("--for", name, "is read here, and not written", f"try {written}")
    mesh = scenario.mesh
    words = known.write(mesh, scenario.plan)
    model = scenario.model if isinstance(scenario, Scenario) else None
    try:
        layout = from_flags(known.name, words, gpus=mesh.world_size, model=model)
    except ConfigError as error:
        rule = f"cannot start this mesh: {error.field}={error.got} {error.rule}"
        raise ConfigError("--for", known.name, rule, "take another framework, or other sizes") from error
    made = layout.scenario.mesh
    differ = [axis for axis in (*DENSE_AXES, *EXPERT_AXES) if _lies(mesh, axis) != _lies(made, axis)]
    if differ:
        told = "; ".join(
            f"{axis} is {_told(mesh, axis)} here and {_told(made, axis)} there" for axis in differ
        )
        rule = f"cannot make these groups: {told}"
        raise ConfigError("--for", known.name, rule, f"the nearest flags are {shlex.join(words)}")
    return LaunchFlags(known.name, tuple(words), mesh.world_size, _left_out(scenario, layout))


def _lies(mesh: Mesh, axis: str) -> tuple[int, int]:
    """Size and stride of an axis: groups are equal exactly when both are."""
    grid = mesh.dense if axis in DENSE_AXES else mesh.expert
    size = grid.size_of(axis)
    return size, grid.stride_of(axis) if size > 1 else 0


def _told(mesh: Mesh, axis: str) -> str:
    size, stride = _lies(mesh, axis)
    return f"{size} ranks, {stride} apart" if size > 1 else "1 rank"


def _left_out(scenario: BareScenario, layout: Layout) -> tuple[Note, ...]:
    """Choices of the plan that the launch would make otherwise."""
    mine, theirs = scenario.plan, layout.scenario.plan
    notes = []
    for name in SAID:
        own, other = getattr(mine, name), getattr(theirs, name)
        if own != other and _matters(scenario, name):
            notes.append(
                Note(
                    "choice_differs",
                    f"mesh.{name} is {own} in the scenario, and {other} in a launch with these flags",
                    f"set mesh.{name} = {str(other)!r} to follow the launch",
                )
            )
    return tuple(notes)


def _matters(scenario: BareScenario, name: str) -> bool:
    """Whether a choice changes anything on this mesh."""
    mesh = scenario.mesh
    if name in ("kv_exchange", "landing", "cp_inner"):
        return mesh.cp > 1
    if name in ("sp", "dense_tp", "embedding"):
        return mesh.tp > 1
    if name in ("weight_shard", "weight_shard_size", "weight_keep"):
        return mesh.dp * mesh.cp > 1
    if name in ("shared_tp", "shared_overlap"):
        return mesh.tp > 1 and isinstance(scenario, Scenario) and scenario.model.shared_experts > 0
    if name in ("contract", "dispatch"):
        return mesh.dispatch_size > 1 and isinstance(scenario, Scenario)
    return True
