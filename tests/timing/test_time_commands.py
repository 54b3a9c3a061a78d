"""``tokentrip time`` and ``tokentrip compare``, and what they are made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tracer
from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.hardware import hardware_preset
from tracer.timing.compare import compare_scenarios
from tracer.timing.pass_time import pass_time
from tracer.timing.report import time_report


def run(*arguments: str) -> str:
    done = CliRunner().invoke(tokentrip, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_time_says_every_part():
    text = run("time", "six-cuts", "--tokens", "4096")
    for part in (
        "one token's trip",
        "one pass of 4,096",
        "what binds",
        "two-batch overlap",
        "pipeline: 2 stages",
    ):
        assert part in text
    assert "contract ep: one NVLink island fails" in text


def test_time_as_json_and_with_what_was_published():
    data = json.loads(run("time", "six-cuts", "--json", "--published"))
    assert data["schema"] == 1
    assert data["pipeline"]["bubble_closed_form"] == pytest.approx(1 / 9)
    titles = [table["title"] for table in data["published"]]
    assert any("DeepEP" in title for title in titles)
    assert any("NCCL" in title for title in titles)
    assert any("DWDP" in title for title in titles)


def test_time_without_flops_says_what_is_missing():
    text = run("time", "deepseek-v3-prefill-ep32")
    assert "no source states the FLOPs of H800 SXM" in text
    assert "not timed" in text


def test_a_fitted_profile_changes_the_links():
    peak = time_report(tracer.load_scenario("six-cuts")).times.seconds
    fitted = time_report(tracer.load_scenario("six-cuts"), profile="h800-deepep-normal").times.seconds
    assert fitted > peak


def test_the_trace_is_written(tmp_path: Path):
    target = tmp_path / "t.perfetto.json"
    run("time", "six-cuts", "--trace", str(target))
    events = json.loads(target.read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1, 2, 3}


def test_wrong_names_are_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="profile='h100-ncl' is not a profile that ships"):
        time_report(tracer.load_scenario("six-cuts"), profile="h100-ncl")
    with pytest.raises(ConfigError, match=r"cluster\.hardware='h10' is not hardware that ships"):
        time_report(tracer.load_scenario("six-cuts"), hardware="h10")
    with pytest.raises(ConfigError, match="tokens=0 must be a whole number of at least 1"):
        time_report(tracer.load_scenario("six-cuts"), tokens=0)


@pytest.mark.parametrize("contract", ["ep", "ag_rs", "dwdp", "tp"])
@pytest.mark.parametrize("sp", ["megatron", "off", "before_dispatch"])
def test_every_contract_and_layout_can_be_timed(contract: str, sp: str):
    data = tracer.load_scenario("six-cuts").to_dict()
    data["mesh"].update(contract=contract, sp=sp, edp=None)
    if contract == "tp":
        data["mesh"].update(ep=1, etp=2)
    report = time_report(tracer.Scenario.from_dict(data), tokens=1024)
    assert report.whole is not None
    assert report.whole.seconds > 0
    assert str(report)
    json.dumps(report.to_dict())


def test_the_work_of_a_pass_is_all_of_the_models():
    """FLOPs a GPU x GPUs of a stage over replicas: those of one replica's tokens, pairs and all."""
    six = tracer.load_scenario("six-cuts")
    found = pass_time(six, hardware_preset("h100"), tokens=1024)
    experts = found.experts.operators[0].operator
    assert experts.flops * 16 == 2 * 3 * 4096 * 2048 * (4 * 1024 * 2)
    attention = sum(
        each.operator.flops for each in found.attention.operators if "core" not in each.operator.name
    )
    assert attention * 4 == 2 * 1024 * (4096 * 4096 * 2 + 2 * 1024 * 4096)


def test_more_tokens_take_longer():
    six, h100 = tracer.load_scenario("six-cuts"), hardware_preset("h100")
    times = [pass_time(six, h100, tokens=count).seconds for count in (64, 512, 4096)]
    assert times == sorted(times)


def test_compare_shows_what_a_swap_costs():
    text = run("compare", "six-cuts", "six-cuts-pp-inside-dp")
    assert "node crossings" in text
    assert "15            26" in text
    assert "14 → 26" in text
    assert "13 differ" in text


def test_compare_a_scenario_with_itself_finds_nothing():
    six = tracer.load_scenario("six-cuts")
    found = compare_scenarios(six, six)
    assert all(pair.same for pair in found.pairs)
    assert "0 differ" in str(found)


def test_compare_pairs_hops_that_only_one_side_has():
    data = json.loads(run("compare", "six-cuts", "six-cuts", "--set", "mesh.sp=off", "--json"))
    kinds = {(hop["kind"], hop["a"] is None, hop["b"] is None) for hop in data["hops"]}
    assert ("all_gather", False, True) in kinds
    assert ("all_reduce", True, False) in kinds
    assert ("dispatch", False, False) in kinds
    for side, name in ((0, "a"), (1, "b")):
        moved = sum(hop[name]["bytes"] for hop in data["hops"] if hop[name])
        assert moved == data["totals"]["bytes"][side]
        assert sum(axis["bytes"][side] for axis in data["axes"].values()) == data["totals"]["bytes"][side]
