"""nccl-tests output becomes link rates, noise and all; what is no such output is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import tracer
from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.timing.own_measurements import nccl_profile
from tracer.timing.report import time_report
from tracer.trip.clock import LinkRates

RATE, LATENCY = 360e9, 14e-6


def output(ranks: int = 8, hosts: int = 1, *, sizes: int = 20, command: str = "all_reduce_perf -b 1K") -> str:
    """What nccl-tests prints for links of ``RATE``, every third small time a little too long."""
    lines = [f"# {command}", "# Using devices"]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid  {700 + rank} on node{rank % hosts} device {rank} [0x1b] NVIDIA H100"
        for rank in range(ranks)
    ]
    lines += ["#       size         count      type   redop    root     time   algbw   busbw #wrong"]
    for power in range(10, 10 + sizes):
        size = 2**power
        seconds = LATENCY + 2 * (ranks - 1) / ranks * size / RATE
        micros = seconds * 1e6 * (1.08 if power < 18 and power % 3 == 0 else 1.0)
        bandwidth = size / micros / 1e3
        lines.append(
            f"{size:12} {size // 4:12}     float     sum      -1 {micros:8.2f} {bandwidth:7.2f} "
            f"{bandwidth:7.2f}      0 {micros:8.2f} {bandwidth:7.2f} {bandwidth:7.2f}      0"
        )
    return "\n".join([*lines, "# Avg bus bandwidth    : 100.0"])


def links() -> LinkRates:
    return LinkRates.of(tracer.load_scenario("six-cuts").cluster)


def test_one_host_gives_nvlink_and_several_give_ib() -> None:
    inside, between = (nccl_profile("mine", output(hosts=count), links()) for count in (1, 2))
    assert inside.rates is not None
    assert between.rates is not None
    assert inside.rates.nvlink.bytes_per_s == pytest.approx(RATE, rel=0.05)
    assert inside.rates.nvlink.latency_s == pytest.approx(LATENCY / 14, rel=0.15)
    assert inside.rates.ib == links().ib
    assert between.rates.ib.bytes_per_s == pytest.approx(RATE, rel=0.05)
    assert between.rates.nvlink == links().nvlink


def test_a_profile_of_ones_own_times_what_moves(tmp_path: Path) -> None:
    scenario = tracer.load_scenario("six-cuts")
    own = time_report(scenario, profile=nccl_profile("mine", output(), links()))
    assert own.times.seconds > time_report(scenario).times.seconds
    file = tmp_path / "rack-7.txt"
    file.write_text(output())
    text = CliRunner().invoke(tokentrip, ["time", "six-cuts", "--profile", str(file)], catch_exceptions=False)
    assert "rack-7 rates" in text.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (output(command="a run"), "does not name its collective"),
        (output(ranks=1), "fewer than two ranks"),
        (output(sizes=4), "has 4 rows"),
    ],
)
def test_what_cannot_be_fitted_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        nccl_profile("mine", text, links())
