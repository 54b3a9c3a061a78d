"""Whole files as people paste them, written for this test after the forms that real ones have.

``expected.json`` says for each what is read: every mesh with its sizes, or the refusal. The sizes were
worked out by hand from the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracer.errors import ConfigError
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.opening import Asked, LaunchedMesh, meshes_of

FILES = Path(__file__).parents[1] / "data" / "launches"
EXPECTED: dict[str, Any] = json.loads((FILES / "expected.json").read_text())
AXES = ("tp", "cp", "dp", "pp", "etp", "ep", "edp")


def as_table(mesh: LaunchedMesh) -> dict[str, Any]:
    """A mesh as ``expected.json`` writes it."""
    reading = mesh.layout.reading
    return {
        "role": mesh.role,
        "commands": mesh.commands,
        "framework": mesh.layout.framework,
        "gpus": mesh.layout.world_size,
        "per_node": mesh.layout.scenario.cluster.gpus_per_node,
        "sizes": {axis: size for axis in AXES if (size := reading.walk(axis).size) > 1},
    }


def test_every_file_is_expected_something() -> None:
    names = {path.name for path in FILES.iterdir()} - {"expected.json"}
    assert names == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_file_is_read_or_refused(name: str) -> None:
    text, expected = (FILES / name).read_text(), EXPECTED[name]
    filename = None if name.endswith(".txt") else name
    if "refused" in expected:
        with pytest.raises(ConfigError, match=r".+") as error:
            meshes_of(read_launch(text, filename=filename), Asked())
        field, got, rule = expected["refused"]
        assert error.value.field == field
        assert str(error.value.got).startswith(str(got))
        assert error.value.rule.startswith(rule)
        assert error.value.fix
        return
    launch = read_launch(text, filename=filename)
    assert [as_table(mesh) for mesh in meshes_of(launch, Asked())] == expected["meshes"]
    assert list(launch.given) == expected["given"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_kind_is_found_without_a_file_name(name: str) -> None:
    """A page's paste box has no file name."""
    text, expected = (FILES / name).read_text(), EXPECTED[name]
    if "refused" not in expected:
        meshes = meshes_of(read_launch(text), Asked())
        assert [as_table(mesh) for mesh in meshes] == expected["meshes"]


GRAPH = """
kind: DynamoGraphDeployment
apiVersion: nvidia.com/v1alpha1
spec:
  services:
    decode:
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "8"}}
      extraPodSpec:
        mainContainer:
          command: [/bin/bash, -c]
          args: ["exec python3 -m dynamo.vllm --model deepseek-ai/DeepSeek-R1 -dp 16"]
    prefill:
      resources: {limits: {gpu: "8"}}
      extraPodSpec:
        mainContainer:
          command: [python3, -m, dynamo.vllm]
          args: [--model, deepseek-ai/DeepSeek-R1, -tp, "8"]
"""


def test_a_main_container_without_an_image_is_a_container() -> None:
    """Dynamo's operator has an image of its own: both pools are there without one."""
    meshes = meshes_of(read_launch(GRAPH, filename="graph.yaml"), Asked())
    assert [(each.role, each.layout.world_size) for each in meshes] == [("decode", 16), ("prefill", 8)]
