"""Every model that ships, on a mesh that its heads allow: attention, routers and layers of all kinds."""

from __future__ import annotations

import pytest
from replay_cases import deployment

from tracer.model.configs.presets import model_preset_names
from tracer.proof.replay import replay


@pytest.mark.parametrize("name", model_preset_names())
def test_model(name: str) -> None:
    scenario = deployment(name, {"tp": 2, "cp": 2, "pp": 2, "ep": 4}, token={"prompt": 16})
    report = replay(scenario)
    assert report.ok, report
    assert report.max_abs_error <= 1e-9
