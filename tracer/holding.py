"""Slices of one weight matrix that lie on a GPU: their shape, how many, and how often the mesh has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.parameters import part_format
from tracer.weight_format import WeightFormat, stored_bytes

if TYPE_CHECKING:
    from tracer.scenario import Scenario
    from tracer.weight_matrices import Part


@dataclass(frozen=True, slots=True)
class Holding:
    """``count`` slices of one shape ``[rows, columns]`` on one GPU, for instance one a layer.

    ``held_by`` is how many times the whole mesh holds each of them, and ``why`` says so in words;
    ``padding`` are elements of a slice that are no parameters (the vocabulary is padded to TP).
    """

    part: Part
    name: str
    rows: int
    columns: int
    count: int
    held_by: int
    why: str
    bytes: int
    padding: int = 0

    @property
    def parameters(self) -> int:
        """Parameters of all slices together."""
        return self.count * (self.rows * self.columns - self.padding)


@dataclass(frozen=True, slots=True)
class Copies:
    """How many times the mesh holds a slice, and why."""

    held_by: int
    why: str


def copies(reason: str, *factors: tuple[str, int]) -> Copies:
    """Copies along several axes at once.

    >>> copies("heads over tp 2", ("cp", 2), ("dp", 4)).why
    'heads over tp 2; the same on cp 2 × dp 4'
    """
    held_by, named = 1, []
    for name, number in factors:
        held_by *= number
        if number > 1:
            named.append(f"{name} {number}")
    return Copies(
        held_by, f"{reason}; " + (f"the same on {' × '.join(named)}" if named else "held here alone")
    )


def stage_copies(scenario: Scenario, reason: str, in_tp: int) -> Copies:
    """Copies of a slice that ``in_tp`` ranks of each TP group hold: on every cp and dp of the stage."""
    mesh = scenario.mesh
    return copies(reason, ("tp", in_tp), ("cp", mesh.size_of("cp")), ("dp", mesh.size_of("dp")))


def hold(
    scenario: Scenario,
    part: Part,
    name: str,
    shape: tuple[int, int],
    count: int,
    shared: Copies,
    *,
    padding: int = 0,
    stored_as: Part | None = None,
) -> Holding:
    """A holding, its bytes as the model stores the part (else in the scenario's weights dtype).

    ``stored_as`` is another part whose storage it has. A slice that cuts through a block of a block format
    has scales for the block it cut.
    """
    plain = WeightFormat(scenario.dtype.weights)
    stored = stored_bytes(part_format(scenario.need_model(), stored_as or part, plain), *shape)
    return Holding(part, name, *shape, count, shared.held_by, shared.why, count * stored, padding)
