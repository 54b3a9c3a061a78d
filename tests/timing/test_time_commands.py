"""``tokentrip time`` and ``tokentrip compare``, and what they are made of."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import tracer
from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.mesh.hardware import hardware_preset
from tracer.proof.published.weights_text import weights_text
from tracer.timing.pass_time import pass_time
from tracer.timing.report import time_report
from tracer.timing.schedules.chunked_prompt import chunked_prompt
from tracer.trip.compare import compare_scenarios


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
    text = run("time", "deepseek-v3-prefill-ep32", "--set", "cluster.hardware=a100")
    assert "cluster.fp8_flops is not given and is needed to time attention projections" in text
    assert "state it (--set cluster.fp8_flops=..." in text
    assert "not timed" in text
    assert "one pass of" in run("time", "deepseek-v3-prefill-ep32")


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


def test_times_from_the_user_are_overlapped():
    data = json.loads(run("time", "six-cuts", "--json", "--moe-times", "400,200,100,300,200"))
    assert data["overlap"]["sequential_seconds"] == pytest.approx(4 * 1200e-6)
    with pytest.raises(ConfigError, match="--moe-times='1,2' must be five times in µs"):
        run("time", "six-cuts", "--moe-times", "1,2")
    with pytest.raises(
        ConfigError, match=r"overlap\.dispatch=0\.0 must be a finite number of seconds above 0"
    ):
        run("time", "six-cuts", "--moe-times", "1,0,1,1,1")


def test_halves_do_the_work_of_the_whole():
    """Two parts of one prompt compute as much as it does, and read the weights twice."""
    scenario, h100 = tracer.load_scenario("six-cuts"), hardware_preset("h100")
    whole, half = (pass_time(scenario, h100, tokens=4096, parts=parts) for parts in (1, 2))
    for one, two in zip(whole.attention.operators, half.attention.operators, strict=True):
        assert two.operator.flops * 2 == one.operator.flops
        assert two.operator.weight_bytes == one.operator.weight_bytes


SLOW = {"deepseek-v3-decode-ep320"}  # replicas over 320 ranks: its expected copies alone take half a minute


@pytest.mark.parametrize("name", [name for name in tracer.preset_names() if name not in SLOW])
def test_overlap_of_every_preset_keeps_its_bound(name: str):
    report = time_report(tracer.load_scenario(name), hardware="b200")
    assert report.whole is not None
    if report.overlap is not None:
        assert report.overlap.gain <= report.overlap.bound + 1e-9


def test_a_prompt_in_chunks_fills_a_pipeline():
    scenario, h100 = tracer.load_scenario("llama-3.1-405b"), hardware_preset("h100")
    coarse, fine = (chunked_prompt(scenario, h100, chunk) for chunk in (65_536, 8192))
    assert fine.bubble < coarse.bubble
    assert all(later > before for before, later in pairwise(fine.seconds[0]))
    with pytest.raises(ConfigError, match=r"pipeline\.chunk=0 must be a whole number"):
        chunked_prompt(scenario, h100, 0)


def test_the_command_serves_a_prompt_in_chunks():
    text = run("time", "llama-3.1-405b", "--hardware", "h100", "--chunk", "65536")
    assert "chunks of one prompt, 65,536 tokens each, in" in text
    with pytest.raises(ConfigError, match=r"pipeline\.chunk=1 gives .* chunks, more than the 1,024"):
        run("time", "llama-3.1-405b", "--hardware", "h100", "--chunk", "1")
    with pytest.raises(ConfigError, match="chunk=64 divides a prompt, and decode has none"):
        run("time", "six-cuts-decode", "--chunk", "64")


def test_decode_goes_through_its_own_pipeline():
    report = time_report(tracer.load_scenario("six-cuts-decode"), micro_batches=1)
    assert report.pipeline is None
    assert report.decode is not None
    assert report.decode.bubble > 0.5
    assert "decode pipeline: 1 groups of requests over 2 stages" in str(report)


def test_tokens_against_weights_prints_its_tables():
    text = weights_text()
    assert "400 Gb/s IB" in text
    assert "published for a nearby setting: 8 %" in text
    assert "8,314 (919) ms" in text


def test_scaled_traffic_is_that_of_the_other_tokens():
    scenario, h100 = tracer.load_scenario("six-cuts"), hardware_preset("h100")
    whole = pass_time(scenario, h100, tokens=4096)
    fresh, scaled = (pass_time(scenario, h100, tokens=4096, parts=2, like=like) for like in (None, whole))
    assert scaled.seconds == pytest.approx(fresh.seconds)


def test_decode_attention_moves_queries_and_partials_of_every_request():
    """One token's query and partial of a layer, times 64 requests, over the replica's four GPUs."""
    scenario = tracer.load_scenario("six-cuts-decode")
    found = pass_time(scenario, hardware_preset("h100"), tokens=64)
    lines = [each for each in found.traffic.lines if each.axis == "cp"]
    moved = [
        transfer.bytes
        for hop in tracer.take_trip(scenario).hops
        if hop.layer == 1 and hop.kind in ("query_send", "partials_return")
        for transfer in hop.transfers
    ]
    assert sum(line.bytes for line in lines) == sum(moved) * 64 / 4
    attention = found.attention.seconds + found.axis_seconds("tp", "attention")
    assert found.attention_seconds - attention == pytest.approx(sum(line.seconds for line in lines))
