"""The table of scenario keys: every key that is read is there, and says what the reader does."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import tokentrip
from tracer.model.spec import ModelSpec
from tracer.scenario import read
from tracer.scenario.keys import ScenarioKey, keys_markdown, scenario_keys
from tracer.scenario.scenario import Scenario

KEYS = tuple(scenario_keys())
NOT_WHOLE = {"cluster.placement", "placement.slots", "placement.slots_by_layer", "model.layer_kinds",
             "model.extras", "model.stored", "model.config"}  # fmt: skip
"""Keys whose example is too long to stand whole, and the one that names a file."""
MODEL: dict[str, Any] = {"layers": 8, "hidden": 4096, "heads": 32, "experts": 32, "top_k": 2,
                         "expert_hidden": 2048, "dense_hidden": 14336, "vocab": 128_000}  # fmt: skip


def keys_of(table: str) -> set[str]:
    return {each.key for each in KEYS if each.table == table}


def test_every_key_that_is_read_is_in_the_table_and_no_other() -> None:
    assert keys_of("") == {*read.PLAIN, "picks"}
    assert keys_of("mesh") == {*read.MESH_KEYS, *read.PLAN_KEYS}
    assert keys_of("cluster") == set(read.CLUSTER_KEYS)
    assert keys_of("token") == set(read.TOKEN_KEYS)
    assert keys_of("placement") == set(read.PLACEMENT_KEYS)
    assert keys_of("dtype") == set(read.DTYPE_KEYS)
    assert keys_of("model") == {*ModelSpec(layers=1).to_dict(), "layer_kinds", "extras", "stored",
                                "positions", "preset", "config", *_said_if_set()}  # fmt: skip


def _said_if_set() -> set[str]:
    from tracer.model import spec

    return set(spec._SAID_IF_SET)


@pytest.mark.parametrize("each", [key for key in KEYS if key.path not in NOT_WHOLE], ids=lambda key: key.path)
def test_every_example_is_read(each: ScenarioKey) -> None:
    if each.path == "placement.redundant" or "redundant" in each.example:
        mesh: dict[str, Any] = {"tp": 2, "cp": 2, "dp": 4, "pp": 2, "ep": 16}
    else:
        mesh = {"tp": 2, "cp": 2, "dp": 2, "pp": 2, "ep": 2}
    tables: dict[str, Any] = {"mesh": mesh, "model": dict(MODEL)}
    if each.path in ("model.preset",):
        tables["model"] = {}
    for key, value in tomllib.loads(each.example).items():
        own = next((k for k in KEYS if k.key == key and k.table == each.table), None)
        place = tables.setdefault(each.table, {}) if own is not None and each.table else tables
        place[key] = value
    _complete(each, tables)
    Scenario.from_dict(tables)


def _complete(each: ScenarioKey, tables: dict[str, Any]) -> None:
    """What some examples need beside them."""
    model = tables["model"]
    if each.key in ("shared_tp", "shared_routed", "shared_overlap", "shared_gate", "shared_weights",
                    "shared_hidden"):  # fmt: skip
        model.setdefault("shared_experts", 1)
    if each.key == "shared_routed":
        model["experts"] = 31
    if each.key in ("expert_groups", "top_groups"):
        model |= {"expert_groups": 8, "top_groups": 4, "top_k": 4}
    if each.key in ("kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"):
        model |= {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
        model.setdefault("q_lora_rank", 1536)
    if each.key in ("slot", "batch"):
        tables["phase"] = "decode"
    if each.path == "cluster.nodes":
        tables["mesh"]["dp"] = 4


@pytest.mark.parametrize("each", [key for key in KEYS if key.table == "mesh" and key.default is not None],
                         ids=lambda key: key.path)  # fmt: skip
def test_a_default_that_is_written_changes_nothing(each: ScenarioKey) -> None:
    plain = {"model": MODEL}
    assert Scenario.from_dict({**plain, "mesh": {each.key: each.default}}) == Scenario.from_dict(plain)


def test_the_document_has_a_row_per_key() -> None:
    text = keys_markdown()
    for each in KEYS:
        assert f"| `{each.key}` |" in text, each.path


def test_the_command_lists_a_table_a_key_or_what_is_about_a_word() -> None:
    run = CliRunner().invoke
    assert len(json.loads(run(tokentrip, ["keys", "--json"]).output)["keys"]) == len(KEYS)
    mesh = json.loads(run(tokentrip, ["keys", "mesh", "--json"]).output)["keys"]
    assert {row["key"] for row in mesh} == {f"mesh.{key}" for key in keys_of("mesh")}
    about = run(tokentrip, ["keys", "latency"]).output
    assert "cluster.ib_latency_s  (number, seconds; default 0)" in about
    assert "mesh.tp " not in about
