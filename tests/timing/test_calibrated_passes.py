"""Whole passes at measured rates: never below their floor, each time with its basis, tokens per second."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tracer
from app.cli import tokentrip
from app.reports.time.time import time_report_blocks
from tracer.errors import ConfigError
from tracer.mesh.hardware import hardware_preset
from tracer.scenario.token import Phase
from tracer.timing.basis import Rates
from tracer.timing.batch import TimedBatch
from tracer.timing.pass_rows import pass_rows
from tracer.timing.pass_time import PassTime, pass_time
from tracer.timing.report import time_report
from tracer.timing.roofline import layer_time
from tracer.timing.throughput import half_beside_communication, overlapped_seconds, throughput

SLOW = {"deepseek-v3-decode-ep320"}
H100 = hardware_preset("h100")


def timed(name: str, tokens: int | None = None, rates: str = "calibrated") -> PassTime:
    return pass_time(tracer.load_scenario(name), H100, tokens=tokens, rates=rates)


@pytest.mark.parametrize("name", [name for name in tracer.preset_names() if name not in SLOW])
@pytest.mark.parametrize("gpu", ["h100", "gb200-nvl72"])
def test_every_preset_has_a_basis_and_keeps_its_floor(name: str, gpu: str) -> None:
    scenario, hardware = tracer.load_scenario(name), hardware_preset(gpu)
    whole, peak = (pass_time(scenario, hardware, rates=rates) for rates in ("calibrated", "peak"))
    rows = list(pass_rows(whole))
    assert all(row.basis and row.seconds >= row.floor_seconds for row in rows)
    assert any("measured fit" in row.basis for row in rows)
    assert whole.floor_seconds == peak.seconds <= whole.seconds


def test_peak_is_the_roofline_alone() -> None:
    peak = timed("six-cuts", 4096, "peak")
    assert peak.rates is Rates.PEAK
    assert not peak.small.operators
    assert not peak.axes
    assert peak.attention == layer_time([each.operator for each in peak.attention.operators], H100)
    assert {row.basis for row in pass_rows(peak)} == {"peak: the data sheet's rates, a lower bound"}


def test_calibrated_time_grows_with_tokens() -> None:
    seconds = [timed("deepseek-v3-prefill-ep32", count).seconds for count in (512, 4096, 16_384)]
    assert seconds == sorted(seconds)


def test_an_error_is_known_where_all_was_measured_and_else_is_not() -> None:
    dense, sparse = timed("llama-3.1-405b", 4096), timed("deepseek-v3-prefill-ep32", 16_384)
    assert dense.error is not None
    assert dense.interval_seconds is not None
    low, high = dense.interval_seconds
    assert dense.floor_seconds <= low < dense.seconds < high
    assert sparse.error is None  # experts of one GPU after a dispatch lie beyond the measured sizes
    assert sparse.interval_seconds is None


def test_a_transfer_says_so() -> None:
    found = pass_time(tracer.load_scenario("llama-3.1-405b"), hardware_preset("gb200-nvl72"), tokens=4096)
    bases = {row.basis for row in pass_rows(found)}
    assert any(
        basis.startswith("transfer to GB200 NVL72 by data sheet from measured fit B200") for basis in bases
    )


def test_no_error_is_promised_for_another_makers_kernels() -> None:
    found = pass_time(tracer.load_scenario("qwen3-235b"), hardware_preset("mi300x"))
    assert found.error is None
    assert any("whose maker's kernels are others; error unknown" in row.basis for row in pass_rows(found))


def test_a_latent_attention_of_other_sizes_stays_at_peak() -> None:
    scenario = tracer.load_scenario("deepseek-v3-prefill-ep32")
    other = scenario.with_(model=replace(scenario.model, kv_lora_rank=256))
    core = next(row for row in pass_rows(pass_time(other, H100, tokens=4096)) if row.name == "attention core")
    assert core.basis.startswith("peak")
    assert core.seconds == core.floor_seconds


def test_sparse_attention_is_not_timed_as_the_dense_block() -> None:
    tables = tracer.load_scenario("deepseek-v3-prefill-ep32").to_dict()
    sparse = tracer.Scenario.from_dict(tables | {"model": {"preset": "deepseek-v3.2"}})
    rows = {row.name: row for row in pass_rows(pass_time(sparse, H100, tokens=4096))}
    blocks = [row for name, row in rows.items() if name.startswith("attention block")]
    assert [row.name for row in blocks] == [
        "attention block (3 x dsa attention)", "attention block (58 x dsa attention)",
    ]  # fmt: skip
    assert not any(row.basis.startswith("peak") for row in blocks)


def test_a_named_profile_times_what_moves() -> None:
    report = time_report(tracer.load_scenario("six-cuts"), tokens=4096, profile="h800-deepep-normal")
    assert report.whole is not None
    assert all(each.estimate is None for each in report.whole.exchange.values())
    assert not report.whole.axes


def test_another_word_for_rates_is_refused() -> None:
    with pytest.raises(ConfigError, match="rates='peek'"):
        time_report(tracer.load_scenario("six-cuts"), rates="peek")


def test_normal_communication_takes_sms_from_arithmetic_and_low_latency_none() -> None:
    half = pass_time(tracer.load_scenario("deepseek-v3-prefill-ep32"), H100, tokens=16_384, parts=2)
    alone, beside = half.moe_times, half_beside_communication(half, low_latency=False)
    assert alone is not None
    assert beside is not None
    assert alone.experts < beside.experts < alone.experts * 132 / 112  # communication ends before compute
    bound = sum(each.seconds for each in half.experts.operators if each.bound == "compute")
    assert bound == alone.experts
    lost = alone.communication * 20 / 132 / alone.compute
    assert beside.experts == pytest.approx(alone.experts * (1 + lost))
    assert beside.dispatch == alone.dispatch
    assert half_beside_communication(half, low_latency=True) == alone


def test_low_latency_copies_run_on_the_compute_stream() -> None:
    half = pass_time(tracer.load_scenario("deepseek-v3-decode-ep144"), H100, tokens=128, parts=2)
    alone, beside = half.moe_times, half_beside_communication(half, low_latency=True)
    assert alone is not None
    assert beside is not None
    assert beside.total == pytest.approx(alone.total)
    moved = sum(each.seconds for each in half.copies.operators)
    assert beside.compute - alone.compute == pytest.approx(moved)
    assert 0 < beside.communication < alone.communication
    assert not half.copies.operators[0].operator.flops
    assert not pass_time(tracer.load_scenario("deepseek-v3-prefill-ep32"), H100).copies.operators


def test_the_busiest_gpu_of_experts_sets_the_pace(tmp_path: Path) -> None:
    scenario = tracer.load_scenario("deepseek-v3-prefill-ep32")
    even, skewed = (pass_time(scenario, H100, tokens=4096, imbalance=times) for times in (1.0, 2.0))
    assert "loads of experts even" in even.assumption
    assert "2 times the mean" in skewed.assumption
    assert 1.5 < skewed.experts.seconds / even.experts.seconds < 2.2
    for name, each in skewed.exchange.items():
        assert even.exchange[name].seconds < each.seconds < 2.1 * even.exchange[name].seconds
    assert skewed.attention == even.attention
    with pytest.raises(ConfigError, match=r"imbalance=0\.5"):
        pass_time(scenario, H100, imbalance=0.5)
    counts = np.ones((58, 256))
    counts[:, 0] = 256
    file = tmp_path / "counts.npy"
    np.save(file, counts)
    asked = ["time", "deepseek-v3-prefill-ep32", "--hardware", "h100", "--tokens", "4096", "--loads"]
    shown = [CliRunner().invoke(tokentrip, [*asked, each]).output for each in ("power_law_1.2", str(file))]
    assert all("times the mean of the picks" in each for each in shown)


def test_tokens_per_second_are_the_batch_over_its_seconds() -> None:
    whole = timed("deepseek-v3-decode-ep144", 128)
    (found,) = throughput(whole, TimedBatch.decoding(128, 4989))
    assert found.phase is Phase.DECODE
    assert found.token_seconds == whole.seconds + whole.head.seconds
    assert found.tokens_per_s_gpu == pytest.approx(128 / found.token_seconds)
    assert found.tokens_per_s_node == 8 * found.tokens_per_s_gpu


def test_overlap_over_all_layers_gains_what_four_layers_promise() -> None:
    scenario = tracer.load_scenario("deepseek-v3-prefill-ep32")
    whole = pass_time(scenario, H100, tokens=16_384)
    half = pass_time(scenario, H100, tokens=16_384, parts=2, like=whole)
    beside = half_beside_communication(half, low_latency=False)
    assert beside is not None
    together = overlapped_seconds(whole, beside)
    report = time_report(scenario, tokens=16_384, hardware="h100")
    assert together is not None
    assert report.overlap is not None
    assert whole.seconds / together - 1 == pytest.approx(report.overlap.gain, abs=0.06)
    assert report.throughput[1].seconds == together


def test_a_pipeline_serves_its_batches() -> None:
    (found,) = time_report(tracer.load_scenario("six-cuts"), tokens=4096, micro_batches=4).throughput
    assert found.batches == 4
    report = time_report(tracer.load_scenario("six-cuts"), tokens=4096, micro_batches=4)
    assert report.pipeline is not None
    assert found.tokens_per_s_gpu == pytest.approx(4 * 4096 / report.pipeline.makespan / 8)


def test_the_command_prints_tokens_per_second_and_json_has_the_basis() -> None:
    run = CliRunner()
    arguments = ["time", "sglang-decode-ep72", "--hardware", "h100", "--tokens", "256"]
    text = run.invoke(tokentrip, arguments, catch_exceptions=False).output
    assert "tok/s per GPU" in text
    assert "TPOT" in text
    assert "256 requests a replica of" in text
    assert "measured fit H100 SXM" in text
    data = json.loads(run.invoke(tokentrip, [*arguments, "--json"], catch_exceptions=False).output)
    assert data["pass"]["rates"] == "calibrated"
    assert all(each["basis"] for each in data["pass"]["operators"])
    assert data["throughput"][0]["tokens_per_s_gpu"] > 0
    floor = json.loads(run.invoke(tokentrip, [*arguments, "--rates", "peak", "--json"]).output)
    assert floor["pass"]["seconds"] == data["pass"]["floor_seconds"] == floor["pass"]["floor_seconds"]


def test_the_page_has_a_control_for_rates() -> None:
    query = {"scenario": "six-cuts", "tokens": "4096"}
    page, floor = time_report_blocks(query), time_report_blocks({**query, "rates": "peak"})
    assert any(control.get("key") == "rates" for control in page["controls"])
    assert "measured fit" in json.dumps(page["blocks"])
    assert "measured fit" not in json.dumps(floor["blocks"])
