"""Whole passes beside what was published: errors as stated bounds, signs of the overlap's gain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.proof.published.comparison import PublishedComparison
from tracer.proof.published.deepep import SETS, compare_deepep, compare_deepep_calibrated
from tracer.proof.published.nccl import KINDS, compare_nccl, compare_nccl_calibrated
from tracer.proof.published.passes import (
    compare_overlap,
    compare_overview,
    compare_published_passes,
    same_sign,
)
from tracer.timing.basis import Rates


def test_deepseeks_profile_is_within_fifteen_per_cent() -> None:
    prefill, decode = compare_published_passes().rows[:2]
    assert abs(prefill.error) < 0.15
    assert abs(decode.error) < 0.15


def test_sglang_is_within_a_quarter_and_peak_is_far_off() -> None:
    assert compare_published_passes().worst_error < 0.25
    assert compare_published_passes().median_error < 0.12
    assert compare_published_passes(Rates.PEAK).median_error > 1.0


def test_production_averages_lie_below() -> None:
    assert all(row.error > 0 for row in compare_overview().rows)


def test_the_overlap_gains_and_loses_where_it_was_measured_to() -> None:
    assert same_sign(compare_overlap())
    assert [row.published > 1 for row in compare_overlap().rows] == [True, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_calibrated_collectives_are_closer_than_peak(kind: str) -> None:
    assert compare_nccl_calibrated(kind).median_error < 0.12 < compare_nccl(kind).median_error


@pytest.mark.parametrize("name", SETS)
def test_calibrated_dispatch_is_stated_as_it_is(name: str) -> None:
    found: PublishedComparison = compare_deepep_calibrated(name)
    assert len(found.rows) == len(compare_deepep(name).rows)
    assert found.median_error < 0.35


def test_the_documentation_states_these_errors() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "time-a-pass.md").read_text("utf-8")
    for compared in (compare_published_passes(), compare_overlap(), compare_overview()):
        for row in compared.rows:
            digits = 3 if row.unit == "ratio" else 0
            cells = f"{row.published:,.{digits}f} | {row.predicted:,.{digits}f} | {row.error:+.1%}"
            assert f"| {row.name} | {cells} |" in page
    links = [compare_deepep_calibrated(name) for name in SETS] + [compare_nccl_calibrated(k) for k in KINDS]
    for each in links:
        assert f"| {each.title} | {each.median_error:.1%} | {each.worst_error:.1%} |" in page
