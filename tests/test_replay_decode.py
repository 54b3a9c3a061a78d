"""Prefill and decode on virtual GPUs: logits, tokens, transfers and K/V owners against one device's."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from click.testing import CliRunner

import tracer
from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.proof.replay import replay_generation
from tracer.scenario.scenario import Scenario

Table = dict[str, Any]

GQA: Table = {
    "layers": 3,
    "hidden": 64,
    "heads": 16,
    "kv_heads": 4,
    "head_dim": 4,
    "vocab": 97,
    "dense_hidden": 16,
}
MOE: Table = {**GQA, "experts": 8, "top_k": 2, "expert_hidden": 8, "dense_layers": 1, "shared_experts": 1}
MLA: Table = {
    **MOE, "kv_heads": None, "head_dim": None, "kv_lora_rank": 8, "q_lora_rank": 12, "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 4, "v_head_dim": 6,
}  # fmt: skip


def scenario(model: Table, mesh: Table, **token: Any) -> Scenario:
    return Scenario.from_dict(
        {"phase": "decode", "model": model, "mesh": mesh, "token": {"prompt": 13, **token}}
    )


CASES: dict[str, Scenario] = {
    "six-cuts": tracer.load_scenario("six-cuts").with_token(prompt=16, position=9),
    "pass-KV": scenario(MOE, {"tp": 2, "cp": 2, "ep": 4, "decode_attention": "pass_kv"}),
    "pass-KV, all-gather, cp 4": scenario(
        MOE, {"cp": 4, "ep": 4, "decode_attention": "pass_kv", "kv_exchange": "all_gather"}, first_cp=2
    ),
    "pass-Q, cp 4, MLA": scenario(MLA, {"tp": 2, "cp": 4, "ep": 8}, first_cp=3, slot=1),
    "pass-KV, MLA": scenario(MLA, {"tp": 2, "cp": 2, "ep": 4, "decode_attention": "pass_kv"}),
    "replicated K/V heads": scenario({**MOE, "kv_heads": 2}, {"tp": 4, "cp": 2, "ep": 8}),
    "DCP 2 of GQA": scenario({**MOE, "kv_heads": 2}, {"tp": 4, "dcp": 2, "ep": 4}),
    "DCP 4 of MLA": scenario(MLA, {"tp": 4, "dcp": 4, "dp": 2, "ep": 8}),
    "DCP 2 and copies left": scenario({**MOE, "kv_heads": 1}, {"tp": 4, "dcp": 2}),
    "DCP with cp, blocks of 3": scenario(
        {**MOE, "kv_heads": 2}, {"tp": 4, "cp": 2, "dcp": 2, "dcp_interleave": 3}
    ),
    "no SP": scenario(MOE, {"tp": 2, "cp": 2, "ep": 4, "sp": "off"}),
    "split before dispatch": scenario(MOE, {"tp": 2, "cp": 2, "ep": 4, "sp": "before_dispatch"}),
    "relays in decode": scenario(MOE, {"tp": 2, "dp": 8, "ep": 8, "dispatch": "high_throughput"}),
    "sums": scenario(MOE, {"tp": 2, "cp": 2, "contract": "tp"}),
    "all rows": scenario(MOE, {"tp": 2, "cp": 2, "ep": 4, "contract": "ag_rs"}),
    "pulled weights": scenario(MOE, {"dp": 2, "ep": 2, "contract": "dwdp"}),
    "slots and padding": scenario(MOE, {"tp": 4, "ep": 4}, batch=6, slot=5),
    "three stages": scenario(GQA, {"tp": 2, "cp": 2, "pp": 3, "embedding": "vocab_parallel"}),
    "context smaller than cp": scenario(GQA, {"cp": 4}, prompt=1),
    "one GPU": scenario(MOE, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_decode_equals_one_device(name: str) -> None:
    case = CASES[name]
    report = replay_generation(case, 4, tiny=name == "six-cuts")
    assert report.ok, str(report)
    assert report.max_abs_error < 1e-11
    assert all(len(words) == 5 for words in report.tokens.values())
    assert len(report.tokens) == case.mesh.dp


@pytest.mark.parametrize("model", [MOE, MLA], ids=["GQA", "MLA"])
def test_pass_kv_moves_the_context_that_the_log_speaks_of(model: Table) -> None:
    case = scenario(model, {"tp": 2, "cp": 2, "ep": 4, "decode_attention": "pass_kv"})
    report = replay_generation(case, 2, tiny=False)
    per_position = 3 * 2 * (12 if model is MLA else 2 * 2 * 4) * 2
    assert report.context_bytes == (13 + 14) * per_position


POOLS = {
    "equal tp": ({"tp": 2, "cp": 2, "dp": 2, "ep": 8}, {"tp": 2, "dp": 2, "ep": 4}),
    "tp grows": ({"tp": 2, "cp": 2, "pp": 3}, {"tp": 8, "ep": 8}),
    "tp shrinks": ({"tp": 4, "pp": 3}, {"tp": 1, "dp": 3, "cp": 2, "ep": 6}),
    "to DCP": ({"tp": 2, "cp": 2}, {"tp": 8, "dcp": 2, "ep": 4}),
    "copies to copies": ({"tp": 8}, {"tp": 16, "pp": 1, "dcp": 4}),
}


@pytest.mark.parametrize("model", [MOE, MLA], ids=["GQA", "MLA"])
@pytest.mark.parametrize("name", POOLS)
def test_a_decode_pool_goes_on_where_prefill_ended(name: str, model: Table) -> None:
    first, second = (copy.deepcopy(mesh) for mesh in POOLS[name])
    experts = {"placement": {"remainder": "first"}}
    base = {"model": model, "token": {"prompt": 13}, **experts}
    prefill = Scenario.from_dict({**base, "mesh": first})
    decode = Scenario.from_dict({**base, "mesh": second, "phase": "decode"})
    report = replay_generation(prefill, 3, decode, tiny=False)
    assert report.ok, str(report)
    tp, dcp = second.get("tp", 1), second.get("dcp", 1)
    copies = tp // dcp if model is MLA else max(1, tp // 4) // dcp if tp > 4 else 1
    requests = min(first.get("dp", 1), second.get("dp", 1))
    elements = 12 if model is MLA else 4 * 2 * 4
    assert report.transfer_bytes == requests * 13 * 3 * elements * copies * 2


@pytest.mark.parametrize("fault", ["merge_unweighted", "rope_local"])
def test_a_known_mistake_shows(fault: str) -> None:
    report = replay_generation(CASES["pass-Q, cp 4, MLA"], 1, tiny=False, fault=fault)
    assert not report.ok
    assert "is off by" in str(report)


def test_a_claim_that_names_the_wrong_owners_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """K/V of odd positions is kept by the other half of a DCP group than is claimed."""
    from tracer.proof.replay.layer import kv_store

    monkeypatch.setattr(kv_store, "kv_dcp", lambda scenario, position: 0)
    report = replay_generation(scenario({**MOE, "kv_heads": 2}, {"tp": 4, "dcp": 2, "ep": 4}), 1, tiny=False)
    assert report.equal
    assert not report.owners_equal
    assert "differs from its claim on K/V of position 1" in str(report)


def test_steps_are_limited() -> None:
    with pytest.raises(ConfigError, match=r"steps=65 is more than the 64 that replay takes"):
        replay_generation(tracer.load_scenario("six-cuts"), 65)


def test_the_command_replays_a_generation() -> None:
    command = ["replay", "six-cuts", "--tiny", "--phase", "decode", "--prompt", "8", "--json"]
    result = CliRunner().invoke(tokentrip, command)
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["ok"]
    assert len(report["tokens"]["2"]) == 3
