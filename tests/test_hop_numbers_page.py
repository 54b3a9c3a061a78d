"""The numbers page: a hop's arrays as the replay has them."""

from __future__ import annotations

import pytest

from app.reports.hop_numbers import hop_numbers_report
from tracer.errors import ConfigError
from tracer.proof.replay import look
from tracer.scenario.files import load_scenario


def tables(hop: int) -> dict[str, list[list[str]]]:
    report = hop_numbers_report({"scenario": "six-cuts", "hop": str(hop)})
    return {block["caption"]: block["rows"] for block in report["blocks"] if block["kind"] == "table"}


def test_attention_shows_partials_that_merge() -> None:
    rows = tables(2)["Partial attentions"]
    assert [row[0] for row in rows[:3]] == [
        "GPU 10, K/V of CP rank 1", "GPU 10, K/V of CP rank 0", "GPU 10, merged",
    ]  # fmt: skip
    seen = look(load_scenario("six-cuts")).attention_of(1)[0]
    assert rows[0][1] == f"{seen.partials[0].top[0]:.3f}"


def test_dispatch_and_combine_show_the_router_and_the_relay() -> None:
    assert [row[0] for row in tables(4)["Router scores and weights"]] == [
        "GPU 11, expert 5",
        "GPU 11, expert 27",
    ]
    combine = tables(5)
    assert [row[0] for row in combine["Sums of the relays"]] == ["GPU 3"]
    assert len(combine["Layouts, hop by hop"]) == 5


def test_a_hop_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="hop=99 must be a hop from 0 to 41"):
        hop_numbers_report({"scenario": "six-cuts", "hop": "99"})
