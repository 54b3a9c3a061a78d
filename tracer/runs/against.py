"""What a run is held against: a scenario by name or file, or a framework's launch line."""

from __future__ import annotations

from pathlib import Path

from tracer.frameworks.opening import from_line
from tracer.frameworks.registry import framework_name
from tracer.runs.groups import of_launch, of_mesh
from tracer.runs.report import Against
from tracer.scenario.files import load_bare_scenario
from tracer.scenario.scenario import BareScenario


def against_scenario(scenario: BareScenario) -> Against:
    """A scenario's trip, and the groups of its mesh."""
    return Against(scenario, of_mesh(scenario.mesh))


def against(text: str, world_size: int) -> Against:
    """A preset, a scenario file, or a line such as ``megatron --tensor-model-parallel-size 2``.

    ``world_size`` is the number of GPUs of a launch line that does not say it.

    Raises:
        ConfigError: when the text is none of them, or what it names breaks a rule.
    """
    words = text.split(maxsplit=1)
    if len(words) == 2 and not Path(text).exists():
        named = framework_name(words[0])
        layout = from_line(text, gpus=world_size if named is not None else None)
        return Against(layout.scenario, of_launch(layout))
    return against_scenario(load_bare_scenario(text))
