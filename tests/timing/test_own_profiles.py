"""DeepEP's test output and profiler traces become link rates too; a profile can be saved and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tracer
from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.runs.links import run_profile
from tracer.runs.reading.files import read_run
from tracer.timing.own_exchange import deepep_profile
from tracer.timing.rates import profile, profile_names, read_profile
from tracer.trip.clock import LinkRates

INSIDE = """
[tuning] SMs 24, NVL chunk 4: 131.00 GB/s (NVL), t: 560.10 us
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 8, 150.00 GB/s (NVL), t: 366.52 us
[tuning] Best dispatch (BF16): SMs 24, NVL chunk 8, 152.00 GB/s (NVL), t: 720.10 us
[tuning] Best combine: SMs 24, NVL chunk 4: 158.00 GB/s (NVL), t: 738.18 us
"""
BETWEEN = """
nodes = 4
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 20, RDMA chunk 28: 850 us, 58.00 GB/s (RDMA), 98.20 GB/s (NVL)
[tuning] Best combine: SMs 24, NVL chunk 1, RDMA chunk 20: 36 + 3600 us, 56.00 GB/s (RDMA), 97.10 GB/s (NVL)
"""
LATENCY, RATE = 4e-6, 300e9


def low_latency(ranks: int) -> str:
    return "\n".join(
        f"[rank {rank}] Dispatch bandwidth: 96.00 GB/s, avg_t=77.31 us | "
        "Combine bandwidth: 128.00 GB/s, avg_t=114.20 us"
        for rank in range(ranks)
    )


def links() -> LinkRates:
    return LinkRates.of(tracer.load_scenario("six-cuts").cluster)


def test_deepep_output_gives_the_tier_that_it_used() -> None:
    inside, between = deepep_profile("a", INSIDE, links()), deepep_profile("b", BETWEEN, links())
    assert inside.rates is not None
    assert between.rates is not None
    assert inside.rates.nvlink.bytes_per_s == 152e9
    assert inside.rates.ib == links().ib
    assert between.rates.ib.bytes_per_s == pytest.approx(57e9 * 3 / 4)  # without the copies of the own node
    assert between.rates.nvlink == links().nvlink


def test_low_latency_goes_by_its_ranks() -> None:
    inside, between = (deepep_profile("low", low_latency(ranks), links()).rates for ranks in (8, 16))
    assert inside is not None
    assert between is not None
    assert inside.nvlink.bytes_per_s == pytest.approx(112e9 * 7 / 8)
    assert between.ib.bytes_per_s == pytest.approx(112e9 / 2)


def test_rdma_needs_the_number_of_nodes() -> None:
    with pytest.raises(ConfigError, match="does not say of how many nodes"):
        deepep_profile("b", BETWEEN.replace("nodes = 4", ""), links())
    with pytest.raises(ConfigError, match="no results of DeepEP"):
        deepep_profile("b", "nothing here", links())


def kernel(kind: str, elements: int, ranks: list[int], seconds: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "kernel",
        "name": f"ncclDevKernel_{kind}",
        "ts": 1e3 * elements,
        "dur": seconds * 1e6,
        "args": {
            "Collective name": kind,
            "Process Group Name": str(ranks[-1]),
            "Process Group Ranks": str(ranks),
            "Group size": len(ranks),
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "dtype": "BFloat16",
        },
    }


def trace(path: Path, *, growing: bool = True, ranks: tuple[int, ...] = tuple(range(8))) -> Path:
    """All-reduces over links of RATE and LATENCY; each size once as it should be and once with a wait."""
    events = []
    for elements in (1 << 16, 1 << 20, 1 << 24) if growing else (1 << 16,):
        seconds = 14 * LATENCY + 1.75 * 2 * elements / RATE
        events += [kernel("allreduce", elements, list(ranks), seconds * wait) for wait in (1.0, 1.6)]
    stored = {"distributedInfo": {"rank": ranks[0], "world_size": 32}, "traceEvents": events}
    path.write_text(json.dumps(stored))
    return path


def test_a_trace_is_fitted_by_its_shortest_kernels(tmp_path: Path) -> None:
    cluster = tracer.load_scenario("six-cuts").cluster
    found = run_profile("mine", read_run([trace(tmp_path / "t.json")]), cluster).rates
    assert found is not None
    assert found.nvlink.bytes_per_s == pytest.approx(RATE, rel=1e-2)
    assert found.nvlink.latency_s == pytest.approx(LATENCY, rel=1e-2)
    assert found.ib == links().ib
    over = run_profile("mine", read_run([trace(tmp_path / "t.json", ranks=(0, 8, 16, 24))]), cluster).rates
    assert over is not None
    assert over.nvlink == links().nvlink
    assert over.ib.bytes_per_s != links().ib.bytes_per_s
    with pytest.raises(ConfigError, match="two sizes of a tier"):
        run_profile("mine", read_run([trace(tmp_path / "t.json", growing=False)]), cluster)


def test_profiles_add_up_and_are_saved(tmp_path: Path) -> None:
    files = [tmp_path / "near.txt", tmp_path / "far.txt", trace(tmp_path / "run.json")]
    for file, text in zip(files, (INSIDE, BETWEEN), strict=False):
        file.write_text(text)
    saved = tmp_path / "rack.json"
    both = ["time", "six-cuts", "--profile", str(files[0]), "--profile", str(files[1])]
    first = CliRunner().invoke(tokentrip, [*both, "--save-profile", str(saved)], catch_exceptions=False)
    again = CliRunner().invoke(
        tokentrip, ["time", "six-cuts", "--profile", str(saved)], catch_exceptions=False
    )
    assert "near+far rates" in first.output
    assert first.output == again.output
    run = CliRunner().invoke(
        tokentrip, ["time", "six-cuts", "--profile", str(files[2])], catch_exceptions=False
    )
    assert "run rates" in run.output


def test_a_profile_of_every_name_comes_back_from_json() -> None:
    for name in profile_names():
        shipped = profile(name)
        assert read_profile(json.dumps(shipped.to_dict()), name) == shipped


@pytest.mark.parametrize("text", ["{", "[]", '{"name": 1}', '{"name": "a", "nvlink": 3}'])
def test_what_is_no_saved_profile_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no saved profile"):
        read_profile(text, "rack.json")


def test_saving_needs_a_measurement(tmp_path: Path) -> None:
    asked = ["time", "six-cuts", "--save-profile", str(tmp_path / "a.json")]
    found = CliRunner().invoke(tokentrip, asked)
    assert isinstance(found.exception, ConfigError)
    assert "no measurement" in str(found.exception)
