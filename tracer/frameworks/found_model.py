"""What a launch says of its model: sizes, the formats of values, and what is not read of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tracer.frameworks.notes import Note
from tracer.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class FoundModel:
    """The model of a launch, None where it gives none or one that is not known here.

    ``named`` is the name that the launch gives, ``preset`` the model that ships under it. ``dtype`` are keys
    of a scenario's table of that name.
    """

    spec: ModelSpec | None = None
    named: str = ""
    preset: str = ""
    dtype: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
