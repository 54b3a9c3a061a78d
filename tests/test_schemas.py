"""What the command line prints as JSON follows the schemas that ship."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema
import pytest

import tracer
from tracer.reports import groups_report, rank_report


def check(name: str, value: object) -> None:
    schema = json.loads((resources.files("tracer") / "schema" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json.dumps(value)), schema)


@pytest.mark.parametrize("name", tracer.preset_names())
def test_rank_and_groups_of_every_preset(name: str) -> None:
    scenario = tracer.load_scenario(name)
    check("rank", rank_report(scenario, scenario.mesh.world_size - 1))
    check("groups", groups_report(scenario))
    check("groups", groups_report(scenario, "ep"))


def test_a_rank_of_a_huge_mesh_is_answered_in_little_space() -> None:
    scenario = tracer.Scenario.from_dict({"mesh": {"tp": 8, "dp": 10**9, "ep": 64}})
    report = rank_report(scenario, 12_345)
    check("rank", report)
    assert report["groups"]["dp"] == {"count": 10**9, "first": [1 + 8 * i for i in range(8)]}


def test_the_schema_can_fail() -> None:
    report = rank_report(tracer.load_scenario("six-cuts"), 11) | {"rank": -1}
    with pytest.raises(jsonschema.ValidationError, match=r"-1 is less than the minimum"):
        check("rank", report)
