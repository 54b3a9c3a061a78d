"""Pages of figures on 1,048,576 GPUs: they answer, or name the part that they leave out and why."""

from __future__ import annotations

from typing import Any

import pytest

from app.query.address import scenario_of
from tracer import ConfigError

MILLION = {"mesh.dp": "131072", "cluster.nodes": "", "picks": ""}


def said(blocks: list[dict[str, Any]]) -> str:
    return " ".join(block.get("text", "") for block in blocks)


def test_roofline_time_and_decode_answer() -> None:
    pytest.importorskip("plotly")
    from app.reports.decode.decode import decode_report
    from app.reports.roofline import roofline_report
    from app.reports.time.time import time_report_blocks

    assert scenario_of(MILLION).mesh.world_size == 1 << 20
    rows = next(b for b in roofline_report(MILLION)["blocks"] if b.get("caption") == "Batches")["rows"]
    assert rows[0][0] == "prefill: 256 tokens"
    assert len(time_report_blocks(MILLION)["blocks"]) > 5
    decode = decode_report(MILLION)["blocks"]
    cells = next(block for block in decode if block.get("caption") == "Prefill and decode")["rows"]
    assert cells[0][1].startswith("131072 replicas")
    assert "4 of them meet" in cells[0][1]


def test_batch_and_traffic_name_what_they_leave_out() -> None:
    pytest.importorskip("plotly")
    pytest.importorskip("numba")
    from app.reports.batch.batch import batch_report
    from app.reports.traffic.traffic import traffic_report

    found = said(batch_report(MILLION)["blocks"])
    assert "has 2 stages of 524,288 ranks; a census counts between the ranks of each stage" in found
    assert "such as dp 4" in found
    counted = batch_report({**MILLION, "mesh.dp": "4", "tokens": "64"})["blocks"]
    assert counted[0]["kind"] == "counts"
    traffic = traffic_report(MILLION)["blocks"]
    assert "Orders are not ranked: world_size=1048576 in each of 24 orders is more than" in said(traffic)
    assert "The MoE contracts" in [block.get("caption") for block in traffic]


def test_the_engine_says_the_same_of_a_census() -> None:
    pytest.importorskip("numba")
    from tracer.batch.census.take import take_census
    from tracer.batch.picks.draws import DrawnPicks

    scenario = scenario_of(MILLION)
    with pytest.raises(ConfigError, match="mesh='1,048,576 ranks' has 2 stages of 524,288 ranks"):
        take_census(scenario, DrawnPicks.of_model(scenario.model, 8))


def test_the_busiest_gpu_may_hold_a_shared_expert() -> None:
    pytest.importorskip("numba")
    from app.reports.batch.batch import batch_report

    blocks = batch_report({"scenario": "deepseek-v3-decode-ep320"})["blocks"]
    assert any("of the first" in block.get("text", "") for block in blocks)
    assert not any(block["kind"] == "alert" for block in blocks)


def test_a_gpu_without_the_rate_keeps_the_control_that_chooses_another() -> None:
    from app.reports.roofline import roofline_report

    page = roofline_report({"scenario": "deepseek-v3-prefill-ep32", "hardware": "a100"})
    assert page["controls"][0]["key"] == "hardware"
    assert "cluster.fp8_flops is not given" in said(page["blocks"])
    there = roofline_report({"scenario": "deepseek-v3-prefill-ep32"})["blocks"]
    assert any(block["kind"] == "chart" for block in there)


def test_the_roofline_has_measured_kernels_under_the_roof_and_names_their_basis() -> None:
    from app.reports.roofline import roofline_report

    blocks = roofline_report({"scenario": "deepseek-v3-prefill-ep32", "hardware": "h200"})["blocks"]
    rows = next(block for block in blocks if block.get("caption") == "Batches")["rows"]
    assert all(float(row[6].replace(",", "")) <= float(row[4].replace(",", "")) for row in rows)
    assert "By measured kernels: measured fit H200 SXM" in said(blocks)
