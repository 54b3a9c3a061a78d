"""What the command line prints as JSON follows the schemas that ship."""

from __future__ import annotations

import json
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from referencing import Registry, Resource

import tracer
from app.cli import tokentrip
from tracer.memory.reports import groups_report, rank_report

SCHEMAS = {
    file.name.removesuffix(".schema.json"): json.loads(file.read_text())
    for file in (resources.files("tracer") / "data" / "schemas").iterdir()
}
REGISTRY: Registry[object] = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
)


def check(name: str, value: object) -> None:
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema, registry=REGISTRY).validate(json.loads(json.dumps(value)))


def printed(*words: str) -> Any:
    done = CliRunner().invoke(tokentrip, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


COMMANDS = [
    ("kv", "kv six-cuts"),
    ("kv", "kv six-cuts-decode --tp 16 --cp 1 --dp 1 --replica 0 --set mesh.dcp=2"),
    ("kv", "kv deepseek-v3-decode-ep144"),
    ("last-trip", "kv six-cuts --to six-cuts-decode"),
    ("last-trip", "kv six-cuts --to six-cuts-decode --whole"),
    ("last-trip", "kv deepseek-v3-prefill-ep32 --to deepseek-v3-decode-ep144 --whole"),
    ("phases", "phases six-cuts"),
    ("phases", "phases llama-3.1-405b"),
    ("phases", "phases deepseek-v3-prefill-ep32 --decode deepseek-v3-decode-ep144"),
    ("generate", "generate six-cuts --steps 2"),
    ("generate", "generate six-cuts --steps 1 --decode six-cuts-decode"),
    ("lockstep", "lockstep six-cuts --loads 1,2,0,4 --dummy 0.1"),
    ("traffic", "traffic six-cuts"),
    ("traffic", "traffic six-cuts-decode"),
    ("traffic", "traffic gpt-oss-120b-dwdp4"),
    ("traffic", "traffic llama-3.1-405b --phase decode"),
    ("orders", "orders six-cuts"),
    ("orders", "orders six-cuts-decode --set mesh.strict=megatron"),
    ("fits", "fits six-cuts"),
    ("keys", "keys mesh"),
    ("advise", "advise qwen3-235b"),
    ("advise", "advise sglang-prefill-ep32"),
    ("causal", "causal hybrid-tp4-ep8"),
    ("census", "census kimi-k2 --tokens 256"),
    ("census", "census hybrid-tp4-ep8 --tokens 300 --by-layer"),
    ("compare", "compare six-cuts six-cuts-decode"),
    ("compare", "compare mixtral-8x7b-ep8 mixtral-8x7b-tp8"),
    ("diff", 'diff "sglang --tp 8" "vllm -tp 8"'),
    ("eplb", "eplb kimi-k2 --tokens 1024"),
    ("flags", "flags mixtral-8x7b-tp8 --for vllm"),
    ("from", "from vllm --json -- -tp 4 -pp 2"),
    ("ledger", "ledger"),
    ("presets", "presets"),
    ("replay", "replay hybrid-tp4-ep8 --tiny"),
    ("time", "time qwen3-235b"),
    ("time", "time sglang-decode-ep72"),
    ("time", "time hybrid-tp4-ep8 --phase decode"),
    ("model", "model deepseek-v3.2 --kv fp8"),
    ("model", "model nemotron-3-nano-30b-a3b"),
    ("rank", "rank six-cuts-decode 11"),
    ("estimate", "time gemm --m 64 --n 4096 --k 4096"),
    ("estimate", "time collective all_reduce --bytes 1MiB --gpus 16 --nodes 2"),
    ("run", f"run {Path(__file__).parent}/data/runs/kineto-ddp2.json.gz"),
]


@pytest.mark.parametrize(("name", "words"), COMMANDS, ids=[words for _, words in COMMANDS])
def test_what_a_command_prints_follows_its_schema(name: str, words: str) -> None:
    report = printed(*shlex.split(words))
    check(name, report)
    more = report | {"surprise": 1}
    with pytest.raises(jsonschema.ValidationError, match=r"'surprise' was unexpected"):
        check(name, more)
    first = next(iter(report))
    with pytest.raises(jsonschema.ValidationError, match=rf"'{first}' is a required property"):
        check(name, {key: value for key, value in report.items() if key != first})


def test_every_schema_is_checked_and_documented() -> None:
    checked = {name for name, _ in COMMANDS} | {"groups", "trip", "trips"}
    reference = (Path(__file__).parents[1] / "docs" / "reference.md").read_text()
    assert set(SCHEMAS) == checked
    for name, schema in SCHEMAS.items():
        assert f"`{name}.schema.json`" in reference
        assert schema["$id"] == f"urn:tokentrip:{name}:1"


@pytest.mark.parametrize("name", tracer.preset_names())
def test_rank_and_groups_of_every_preset(name: str) -> None:
    scenario = tracer.load_scenario(name)
    check("rank", rank_report(scenario, scenario.mesh.world_size - 1))
    check("groups", groups_report(scenario))
    check("groups", groups_report(scenario, "ep"))


def test_a_rank_of_a_huge_mesh_is_answered_in_little_space() -> None:
    scenario = tracer.BareScenario.from_dict({"mesh": {"tp": 8, "dp": 10**9, "ep": 64}})
    report = rank_report(scenario, 12_345)
    check("rank", report)
    assert report["groups"]["dp"] == {"count": 10**9, "first": [1 + 8 * i for i in range(8)]}


def test_the_schema_can_fail() -> None:
    report = rank_report(tracer.load_scenario("six-cuts"), 11) | {"rank": -1}
    with pytest.raises(jsonschema.ValidationError, match=r"-1 is less than the minimum"):
        check("rank", report)
