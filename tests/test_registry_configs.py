"""Every real config.json that aiconfigurator-core ships, where that package is installed.

It is no dependency: ``pip install --no-deps aiconfigurator-core==0.12.0`` and run this file.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from model_configs import stored_data

from tracer.errors import ConfigError
from tracer.model.configs import read_config_file
from tracer.model.parameters import count_parameters

PACKAGE = "aiconfigurator_core"
LEAST_READ = 89


def folder() -> Path:
    """Where the configs lie; the test is skipped where the package is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        pytest.skip(f"{PACKAGE} is not installed: its configs are read in an extra run")
    return Path(spec.origin).parent / "model_configs"


def test_they_are_read_and_their_totals_are_those_of_the_model_classes() -> None:
    totals: dict[str, int] = stored_data("registry_totals")["totals"]
    files = [path for path in sorted(folder().glob("*_config.json")) if "hf_quant" not in path.name]
    refused, wrong = [], []
    for path in files:
        try:
            total = count_parameters(read_config_file(path).spec).total
        except ConfigError as error:
            refused.append(f"{path.name}: {error}")
            continue
        if path.name in totals and total != totals[path.name]:
            wrong.append((path.name, total, totals[path.name]))
    assert not wrong
    assert len(files) - len(refused) >= LEAST_READ, refused
