"""Predictions beside measurements: errors as stated bounds, fits done again, arithmetic checked."""

from __future__ import annotations

import pytest

import tracer
from tracer.errors import ConfigError
from tracer.mesh.cluster import Link
from tracer.model.weight_format import WeightFormat
from tracer.proof.published.all import all_comparisons, summary
from tracer.proof.published.comparison import PublishedComparison, Row
from tracer.proof.published.deepep import compare_deepep, exchanges, fit_exchange_rates
from tracer.proof.published.dwdp import (
    compare_breakdown,
    compare_speedup,
    compare_synchronization,
    compare_window,
    copy_rate,
    sglang_prefill,
    source_group,
)
from tracer.proof.published.measurements import nccl_table, published
from tracer.proof.published.nccl import GROUPS, KINDS, compare_nccl, fit_collective
from tracer.proof.published.serving import serving_points
from tracer.timing.dispatch_time import exchange_time, moe_exchange
from tracer.timing.rates import PEAK, fit_link, fit_two_lines, profile, profile_names, rates_of, relative_fit
from tracer.trip.clock import LinkRates

NORMAL, LOW = "h800-deepep-normal", "h800-deepep-low-latency"


@pytest.mark.parametrize(
    ("comparison", "median", "worst"),
    [
        (compare_deepep("deepep_normal"), 0.23, 0.39),
        (compare_deepep("deepep_normal", NORMAL), 0.03, 0.07),
        (compare_deepep("deepep_low_latency"), 0.26, 0.57),
        (compare_deepep("deepep_low_latency", LOW), 0.03, 0.08),
        (compare_deepep("deepep_v2", NORMAL), 0.05, 0.08),
        (compare_nccl("all_reduce", "h100-nccl"), 0.06, 0.20),
        (compare_nccl("all_gather", "h100-nccl"), 0.07, 0.25),
        (compare_window(), 0.06, 0.17),
        (compare_window(plain=False), 0.03, 0.04),
        (compare_window(output_weights=WeightFormat.NVFP4), 0.16, 0.27),
        (compare_speedup("picks"), 0.03, 0.05),
        (compare_speedup("distinct"), 0.12, 0.18),
    ],
    ids=lambda value: value.title if isinstance(value, PublishedComparison) else str(value),
)
def test_errors_stay_within_what_is_stated(comparison: PublishedComparison, median: float, worst: float):
    assert comparison.median_error <= median
    assert comparison.worst_error <= worst


def test_the_rows_cover_the_sizes_that_were_asked_for():
    assert {row.name.split()[0] for row in compare_deepep("deepep_normal").rows} == {
        "EP8", "EP16", "EP32", "EP64"
    }  # fmt: skip
    assert {row.name.split()[0] for row in compare_deepep("deepep_low_latency").rows} == {
        "EP8", "EP16", "EP32", "EP64", "EP128", "EP256"
    }  # fmt: skip


def test_a_plain_roofline_comes_within_a_quarter_at_each_length():
    assert all(abs(row.error) < 0.25 for row in compare_window().rows)


def test_the_gain_crosses_one_between_8k_and_16k_and_is_not_monotonic():
    short, eight, sixteen, thirty_two = (row.predicted for row in compare_speedup().rows)
    assert short < eight < 1 < thirty_two < sixteen


def test_peak_links_are_a_floor():
    for name in ("deepep_normal", "deepep_low_latency", "deepep_v2"):
        assert all(row.error < 0 for row in compare_deepep(name).rows)
    for kind in KINDS:
        assert all(row.error < 0 for row in compare_nccl(kind).rows)


@pytest.mark.parametrize(("name", "profile_name"), [("deepep_normal", NORMAL), ("deepep_low_latency", LOW)])
def test_fitting_again_gives_the_stored_rates(name: str, profile_name: str):
    stored, again = profile(profile_name).rates, fit_exchange_rates(name)
    assert stored is not None
    for tier in ("nvlink", "ib"):
        assert again.link(tier).bytes_per_s == pytest.approx(stored.link(tier).bytes_per_s, rel=1e-6)
        assert again.link(tier).latency_s == pytest.approx(stored.link(tier).latency_s, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", GROUPS)
def test_fitting_a_collective_again_gives_the_stored_lines(kind: str, ranks: int):
    stored, again = profile("h100-nccl").collective(kind, ranks), fit_collective(kind, ranks)
    for ours, theirs in zip(again.lines, stored.lines, strict=True):
        assert ours.bytes_per_s == pytest.approx(theirs.bytes_per_s, rel=1e-6)
        assert ours.latency_s == pytest.approx(theirs.latency_s, rel=1e-6, abs=1e-12)


def test_published_bandwidth_means_these_microseconds():
    """Worked out by hand from the benchmark's accounting: own node counted, one copy a distinct node."""
    found = {each.name: each.seconds * 1e6 for each in exchanges("deepep_normal")}
    assert found["EP16 dispatch"] == pytest.approx(1403, abs=1)
    assert found["EP32 dispatch"] == pytest.approx(1887, abs=1)
    assert found["EP64 dispatch"] == pytest.approx(2154, abs=1)


def test_ep16_is_bound_by_nvlink_and_ep32_by_ib():
    rates = rates_of(NORMAL, LinkRates(Link(1.0), Link(1.0)))
    bound = {}
    for each in exchanges("deepep_normal"):
        time = exchange_time(
            each.copies.nvlink * each.rows * each.row_bytes,
            each.copies.ib * each.rows * each.row_bytes,
            rates,
        )
        bound[each.name] = time.binding
    assert (bound["EP16 dispatch"], bound["EP32 dispatch"], bound["EP64 combine"]) == ("nvlink", "ib", "ib")


def test_overlapped_tiers_take_the_longer_and_added_ones_both():
    rates = LinkRates(Link(100.0, 1.0), Link(10.0, 2.0))
    both = exchange_time(100, 100, rates)
    assert (both.seconds, both.binding) == (12.0, "ib")
    assert exchange_time(100, 100, rates, overlapped=False).seconds == 14.0
    assert exchange_time(0, 0, rates).seconds == 0


def test_dispatch_of_a_scenario_agrees_with_its_expected_traffic():
    from tracer.scenario.step import with_tokens
    from tracer.traffic.traffic import comm_volume

    six = with_tokens(tracer.load_scenario("six-cuts"), 4096)
    traffic = comm_volume(six)
    line, parts = traffic.axis("ep"), moe_exchange(traffic, LinkRates.of(six.cluster))
    assert line is not None
    assert sum(each.ib_bytes for each in parts.values()) == pytest.approx(line.ib_bytes)
    assert sum(each.seconds for each in parts.values()) == pytest.approx(line.seconds)


def test_the_breakdown_is_milliseconds():
    assert published("dwdp")["breakdown"]["unit"] == "ms"
    assert 600e9 < copy_rate() < 900e9
    rows = {row.name: row for row in compare_breakdown().rows}
    assert abs(rows["DEP attention"].error) < 0.02
    assert rows["DEP grouped GEMM"].error < 0


def test_the_remote_experts_of_the_source_are_276_gb_a_pass():
    group = source_group()
    assert group.spec.moe_layers * group.remote_bytes == pytest.approx(276e9, rel=0.01)


def test_synchronization_is_shown_untuned():
    assert all(16.5 < row.predicted < 20 for row in compare_synchronization().rows)
    assert [row.published for row in compare_synchronization().rows] == [12, 10]


def test_serving_keeps_throughput_and_first_token_together():
    assert all(point.dwdp_ttft_ms > point.dep_ttft_ms for point in serving_points())
    assert serving_points()[-1].tps_gpu < 1
    assert "prefill only" in sglang_prefill()["setting"]


def test_a_comparison_prints_each_error_and_the_median_and_worst():
    table = PublishedComparison(
        "t", "s", "set", "assumed", (Row("a", 2.0, 1.0, "µs"), Row("b", 1.0, 1.1, "µs"))
    )
    assert (table.median_error, table.worst_error) == (pytest.approx(0.3), 0.5)
    assert "-50.0%" in str(table)
    assert "median 30.0%, worst 50.0%" in str(table)
    assert len(summary(all_comparisons()).splitlines()) == 1 + len(all_comparisons())
    assert table.to_dict()["rows"][0]["error"] == -0.5


def test_fits_find_what_the_data_was_made_from():
    link = fit_link([0, 1e3, 1e6], [1e-6 + size / 1e9 for size in (0, 1e3, 1e6)])
    assert (link.latency_s, link.bytes_per_s) == (pytest.approx(1e-6), pytest.approx(1e9))
    sizes = [float(2**n) for n in range(4, 20)]
    made = [min(1 + size / 10, 50 + size / 100) for size in sizes]
    small, large = fit_two_lines(sizes, made)
    assert (small.latency_s, large.latency_s) == (pytest.approx(1), pytest.approx(50))


def test_a_negative_coefficient_becomes_zero():
    latency, slope = relative_fit([[1, 1], [1, 2]], [1, 3])
    assert latency == 0
    assert slope > 0


def test_names_that_do_not_ship_are_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'h100-nccl'"):
        profile("h100-ncl")
    with pytest.raises(ConfigError, match=r"published='depep_normal' .* did you mean 'deepep_normal'"):
        published("depep_normal")
    with pytest.raises(ConfigError, match=r"all_reduce/16.* was not measured"):
        nccl_table("all_reduce", 16)
    with pytest.raises(ConfigError, match="was not fitted in h100-nccl"):
        profile("h100-nccl").collective("all_reduce", 16)
    with pytest.raises(ConfigError, match="has times of whole collectives and no link rates"):
        rates_of("h100-nccl", LinkRates(Link(1.0), Link(1.0)))


def test_peak_is_the_clusters_own_rates():
    own = LinkRates(Link(1.0), Link(2.0))
    assert rates_of(PEAK, own) is own
    assert PEAK not in profile_names()
    assert all(profile(name).method and profile(name).source for name in profile_names())


def test_bad_input_to_a_fit_is_refused():
    with pytest.raises(ConfigError, match=r"fit\.seconds=0 must be a finite number of seconds above 0"):
        fit_link([1, 2], [0, 1])
    with pytest.raises(ConfigError, match="at least 6"):
        fit_two_lines([1, 2], [1, 2])
    with pytest.raises(ConfigError, match="must grow with the bytes"):
        fit_link([1, 2], [2, 1])
