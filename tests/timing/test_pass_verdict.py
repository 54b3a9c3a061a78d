"""Comparisons say when two variants are closer than the error of their times; noisy tables are fitted."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.proof.published.deepep import compare_deepep
from tracer.timing.pass_verdict import LINKS_ERROR, PassVerdict, not_told_apart
from tracer.timing.rates import faster, fit_two_lines


def test_a_difference_within_the_error_is_none() -> None:
    close = PassVerdict((1.0, 1.03), (0.05, 0.02))
    assert close.certain is False
    assert "closer than the expected error of 5.0%" in str(close)
    apart = PassVerdict((1.0, 1.3), (0.05, 0.02))
    assert apart.certain is True
    assert "30.0% apart, beyond the expected error" in str(apart)
    unknown = PassVerdict((1.0, 1.3), (None, 0.02))
    assert unknown.certain is None
    assert "not certain" in str(unknown)


def test_a_large_difference_is_said_as_a_factor() -> None:
    assert "A 1 s, B 4 s, 4 times" in str(PassVerdict((1.0, 4.0), (0.1, 0.1)))


def test_orders_and_contracts_say_what_links_do_not_tell_apart() -> None:
    stated = compare_deepep("deepep_low_latency").median_error
    assert pytest.approx(stated, abs=0.005) == LINKS_ERROR
    for asked in (["orders", "six-cuts"], ["traffic", "six-cuts", "--contracts"]):
        assert "times by links alone were wrong by 25 %" in CliRunner().invoke(tokentrip, asked).output
    assert not_told_apart({"a": 1.0, "b": 1.5}).endswith("none is that close to the fastest (a)")
    many = {f"order {place}": 1.0 + place / 100 for place in range(10)}
    assert not_told_apart(many).endswith("order 6 and 3 more")


def test_compare_says_whether_a_pass_is_faster() -> None:
    run = CliRunner()
    same = run.invoke(tokentrip, ["compare", "llama-3.1-405b", "llama-3.1-405b"], catch_exceptions=False)
    assert "0.0% apart" in same.output
    assert "neither is faster" in same.output or "not certain" in same.output
    pair = ["compare", "six-cuts", "six-cuts-pp-inside-dp", "--json"]
    found = json.loads(run.invoke(tokentrip, pair, catch_exceptions=False).output)
    assert len(found["pass"]["seconds"]) == 2


def test_a_noisy_pair_does_not_abort_a_table() -> None:
    sizes = [2.0**power for power in range(10, 26)]
    seconds = [10e-6 + size / 300e9 for size in sizes]
    seconds[0], seconds[1], seconds[2] = 12e-6, 11e-6, 10.5e-6  # falls as the size grows
    pair = fit_two_lines(sizes, seconds)
    assert max(abs(faster(pair, size) / time - 1) for size, time in zip(sizes, seconds, strict=True)) < 0.2


def test_a_table_that_never_grows_is_refused() -> None:
    with pytest.raises(ConfigError, match="must grow with the bytes"):
        fit_two_lines([float(size) for size in range(1, 9)], [float(9 - size) for size in range(1, 9)])
