"""Rows that TP gathers before a split matmul may have a dtype of their own."""

from __future__ import annotations

from typing import Any

import pytest

from tracer import ConfigError, Scenario, take_trip
from tracer.traffic.traffic import comm_volume

TABLES: dict[str, Any] = {
    "model": {
        "layers": 2,
        "hidden": 64,
        "heads": 8,
        "kv_heads": 8,
        "head_dim": 8,
        "vocab": 96,
        "dense_hidden": 32,
    },
    "mesh": {"tp": 4},
}


def scenario(**dtype: str) -> Scenario:
    """Two dense layers over four TP ranks."""
    return Scenario.from_dict({**TABLES, "dtype": dtype})


def test_fp8_halves_the_gathers_and_nothing_else() -> None:
    """A gather reaches 3 peers with 64 bytes each, not 128; partial rows stay in BF16."""
    for found, gathered in ((scenario(), 3 * 128), (scenario(tp_gather="fp8"), 3 * 64)):
        sizes = {(str(hop.kind), hop.bytes) for hop in take_trip(found).hops if hop.axis == "tp"}
        assert {size for kind, size in sizes if kind == "all_gather"} == {gathered}
        assert {size for kind, size in sizes if kind == "reduce_scatter"} == {3 * 128}


def test_the_closed_form_is_the_sum_of_the_trips() -> None:
    found = scenario(tp_gather="fp8")
    sums = {"attention": 0, "ffn": 0}
    for position in range(found.token.prompt):
        for hop in take_trip(found.with_token(position=position)).hops:
            if hop.part in sums and hop.axis == "tp":
                sums[str(hop.part)] += hop.bytes
    for line in comm_volume(found).lines:
        assert line.bytes * line.times * 4 == pytest.approx(sums[line.part])


def test_saved_with_the_scenario() -> None:
    found = scenario(tp_gather="fp8")
    assert Scenario.from_toml(found.to_toml()) == found
    assert found.to_dict()["dtype"]["tp_gather"] == "fp8"
    assert scenario().to_dict()["dtype"]["tp_gather"] is None
    with pytest.raises(ConfigError, match=r"dtype\.tp_gather='int8' must be bf16, fp16, fp32 or fp8"):
        scenario(tp_gather="int8")
