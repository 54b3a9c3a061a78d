"""The closed loop of a context and a generation stage by hand and by its laws, and the published table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.time.time import time_report_blocks
from tracer.errors import ConfigError
from tracer.proof.published.dwdp import breakdown_batch, context_iteration
from tracer.proof.published.serving import (
    MODES,
    PASSES,
    STATED,
    ServingPoint,
    compare_serving,
    context_passes,
    predicted,
    serving_points,
    tps_gpu_gain,
)
from tracer.timing.weights.serving import ContextStage, serve

SECONDS = st.floats(0.01, 10.0)


def test_a_loop_by_hand() -> None:
    idle = serve(ContextStage(10, [2.0, 3.0]), 1, 97.0)
    assert (idle.ttft_seconds, idle.requests_per_s, idle.context_bound) == (3.0, 0.01, False)
    busy = serve(ContextStage(1, [2.0, 3.0]), 100, 30.0)
    assert (busy.requests_per_s, busy.context_bound, busy.prompts) == (2 / 3, True, 2.0)
    assert busy.ttft_seconds == pytest.approx(100 / (2 / 3) - 30)


def test_passes_take_what_came_in_during_the_one_before() -> None:
    found = serve(ContextStage(1, [1.0, 1.5, 2.0, 2.5]), 20, 10.0)
    seconds = 1.0 + (found.prompts - 1) * 0.5
    assert found.ttft_seconds == pytest.approx(1.5 * seconds)
    assert found.prompts == pytest.approx(found.requests_per_s * seconds)
    assert 1 < found.prompts < 4


@given(
    st.integers(1, 64),
    st.lists(SECONDS, min_size=1, max_size=4).map(sorted),
    st.integers(1, 4096),
    st.floats(0.1, 100.0),
)
def test_littles_law_and_the_capacity_hold(
    ranks: int, passes: list[float], requests: int, generation: float
) -> None:
    stage = ContextStage(ranks, passes)
    found = serve(stage, requests, generation)
    assert found.requests_per_s * (found.ttft_seconds + generation) == pytest.approx(requests)
    assert found.requests_per_s <= stage.capacity * (1 + 1e-9)
    assert found.ttft_seconds >= passes[0] or found.context_bound
    assert serve(ContextStage(ranks + 1, passes), requests, generation).requests_per_s >= (
        found.requests_per_s * (1 - 1e-6)
    )


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"context.ranks=0 must be a whole number"):
        ContextStage(0, [1.0])
    with pytest.raises(ConfigError, match=r"context.pass_seconds=\(\) must not be empty"):
        ContextStage(1, ())
    with pytest.raises(ConfigError, match=r"context.pass_seconds.2"):
        ContextStage(1, [1.0, -1.0])
    with pytest.raises(ConfigError, match=r"requests=0 must be a whole number"):
        serve(ContextStage(1, [1.0]), 0, 1.0)


@pytest.mark.parametrize(
    ("what", "passes", "median", "worst"),
    [
        ("tps_gpu", "peak", 0.11, 0.28),
        ("tps_gpu", "measured", 0.07, 0.25),
        ("tps_gpu", STATED, 0.06, 0.12),
        ("ttft", "peak", 0.84, 0.95),
        ("ttft", "measured", 0.69, 0.90),
    ],
)
def test_errors_stay_within_what_is_stated(what: str, passes: str, median: float, worst: float) -> None:
    found = compare_serving(what, passes)
    assert len(found.rows) == (5 if what == "tps_gpu" else 10)
    assert found.median_error <= median
    assert found.worst_error <= worst
    assert "not stated, so assumed" in found.assumptions


def test_passes_are_the_engines_and_as_measured_those_of_the_breakdown() -> None:
    for mode, measured in (("DEP", 1.31985), ("DWDP", 1.13158)):
        peak, long = (context_passes(mode, passes) for passes in PASSES)
        whole = context_iteration(breakdown_batch())[mode]["iteration"]
        assert [b / a for a, b in zip(peak, long, strict=True)] == pytest.approx([measured / whole] * 4)
        assert list(peak) == sorted(peak)
    assert context_passes("DWDP", "peak")[0] > context_passes("DEP", "peak")[0]


def test_a_point_counts_every_gpu() -> None:
    point = ServingPoint("20-30", 1.1, 2538, 8314, 1.15, 8, 256, 20, 16)
    assert serving_points()[0] == point
    assert (point.requests, point.user_rate("DEP")) == (2048, 25.0)
    assert point.user_rate("DWDP") == pytest.approx(28.75)
    rates = [predicted(point, mode, "measured").requests_per_s for mode in MODES]
    assert tps_gpu_gain(point, "measured") == pytest.approx(rates[1] / 24 / (rates[0] / 28))
    stated = 2048 / (8.314 + 1024 / 28.75) / 24 / (2048 / (2.538 + 1024 / 25) / 28)
    assert tps_gpu_gain(point, STATED) == pytest.approx(stated)


def test_the_page_shows_ours_beside_theirs() -> None:
    blocks = time_report_blocks({"scenario": "six-cuts"})["blocks"]
    tables = {block["caption"]: block["rows"] for block in blocks if block["kind"] == "table"}
    first = compare_serving("ttft", "measured").rows[0]
    assert tables["Time to first token"][0][1:4] == [
        "2,538 ms",
        f"{first.predicted:,.0f} ms",
        f"{first.error:+.0%}",
    ]
    assert len(tables["Errors of each reading"]) == 5
