"""The calculator: shipped fits against measured rows, and what must hold of any answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import tokentrip
from app.commands.cost.calculator import CALCULATORS, bytes_typed
from tracer.errors import ConfigError
from tracer.mesh.hardware import hardware_preset
from tracer.proof.published.measurements import published
from tracer.scenario.files import load_scenario
from tracer.timing import estimate
from tracer.timing.calibration.attention import causal_pairs
from tracer.timing.calibration.experts import expected_busiest_gpu
from tracer.timing.calibration.fit import Correction, Fit, OpWork, calibration
from tracer.timing.calibration.systems import between, nearness
from tracer.timing.estimate import Estimate

SAMPLE = json.loads((Path(__file__).parent.parent / "data" / "measured_times.json").read_text("utf-8"))
CALIBRATIONS = Path(estimate.__file__).parent.parent / "data" / "calibrations"
SIZES = st.integers(1, 1 << 22)
GPUS = st.sampled_from(("h100", "h200", "b200", "a100", "gb200-nvl72"))


def estimated(row: dict[str, Any]) -> Estimate:
    found: Estimate = getattr(estimate, row["call"])(row["system"], **row["arguments"])
    return found


def error_of(row: dict[str, Any]) -> float:
    return abs(estimated(row).seconds / float(row["seconds"]) - 1)


@pytest.mark.parametrize("kind", sorted(SAMPLE["rows"]))
def test_shipped_fits_agree_with_measured_rows(kind: str) -> None:
    """In-sample: the fits have seen these rows; what they had not seen is in the calibration files."""
    errors = [error_of(row) for row in SAMPLE["rows"][kind]]
    assert len(errors) >= 6
    assert median(errors) < 0.15
    assert all("measured fit" in estimated(row).basis for row in SAMPLE["rows"][kind])


def test_the_sample_says_whose_it_is() -> None:
    assert SAMPLE["source"]["licence"] == "Apache-2.0"
    assert SAMPLE["source"]["repository"] == "ai-dynamo/aiconfigurator"


KINDS = (
    "custom_all_reduce",
    "decode_attention",
    "deepep",
    "dsa_decode",
    "dsa_prefill",
    "gemm",
    "linear_attention",
    "mla_decode",
    "mla_prefill",
    "moe",
    "nccl",
    "prefill_attention",
    "quantize",
)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_on_unseen_rows_are_stored_and_within_reach(kind: str) -> None:
    fits = [fit for fit in calibration(kind).fits.values() if fit.error is not None]
    assert fits
    assert median(fit.error for fit in fits if fit.error is not None) <= 0.10
    assert set(calibration(kind).transfers) == {"near", "far"}


def test_the_page_shows_the_errors_that_are_stored() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "time-a-call.md").read_text("utf-8")
    shown = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert set(shown) == set(KINDS)
    for kind, cells in shown.items():
        stored = json.loads((CALIBRATIONS / f"{kind}.json").read_text("utf-8"))
        reach = [stored["transfer"][each]["error"] for each in ("near", "far")]
        errors = [*stored["left_out"]["rows"], *stored["left_out"]["shapes"], *reach]
        assert cells == " | ".join(f"{100 * error:.1f} %" for error in errors)


def test_calibrations_are_kilobytes() -> None:
    assert {path.stem for path in CALIBRATIONS.glob("*.json")} == set(KINDS)
    assert sum(path.stat().st_size for path in CALIBRATIONS.glob("*.json")) < 120_000


@given(GPUS, st.sampled_from(("all_reduce", "all_gather", "reduce_scatter", "all_to_all")), SIZES, SIZES)
@settings(max_examples=draws(40))
def test_collectives_grow_and_stay_above_the_link(gpu: str, kind: str, one: int, other: int) -> None:
    small, large = (estimate.collective(gpu, kind, 8, size) for size in sorted((one, other)))
    assert small.seconds <= large.seconds * (1 + 1e-9)
    assert large.seconds >= large.floor_seconds > 0
    assert small.seconds > 1e-6, "nothing is launched in less than a microsecond"


@given(GPUS, st.tuples(SIZES, SIZES), st.integers(1, 1 << 15), st.integers(1, 1 << 15))
@settings(max_examples=draws(15))
def test_gemms_grow_with_every_size(gpu: str, rows: tuple[int, int], n: int, k: int) -> None:
    small, large = (estimate.gemm(gpu, m, n, k, "bfloat16") for m in sorted(rows))
    assert small.seconds <= large.seconds * (1 + 1e-9)
    assert estimate.gemm(gpu, rows[0], n, k, "bfloat16").seconds <= (
        estimate.gemm(gpu, rows[0], 2 * n, k, "bfloat16").seconds * (1 + 1e-9)
    )
    peak = hardware_preset(gpu)
    floor = 2 * max(rows) * n * k / (peak.bf16_flops or 1.0)
    assert large.seconds >= floor


@given(
    st.sampled_from(("prefill", "decode")),
    st.tuples(st.integers(1, 128), st.integers(1, 128)),
    st.integers(1, 1 << 15),
    st.sampled_from(((8, 1), (8, 8), (64, 8), (64, 1))),
    st.sampled_from((0, 128, 1024)),
)
@settings(max_examples=draws(20))
def test_attention_grows_with_the_batch(
    phase: str, batches: tuple[int, int], length: int, heads: tuple[int, int], window: int
) -> None:
    small, large = (
        estimate.attention("h100", phase, batch, length, *heads, 128, window) for batch in sorted(batches)
    )
    assert small.seconds <= large.seconds * (1 + 1e-9)
    assert large.seconds >= large.floor_seconds
    assert isfinite(large.seconds)


def test_skewed_routing_is_slower_than_balanced() -> None:
    times = [
        estimate.moe("h100", 16384, 7168, 2048, 256, 8, 128, "fp8_block", name).seconds
        for name in ("balanced", "power_law_1.01", "power_law_1.2")
    ]
    assert times == sorted(times)
    assert times[2] > 3 * times[0]


def test_busiest_gpu_holds_everything_without_ep() -> None:
    alone = expected_busiest_gpu(1000, 8, 64, 1, "power_law_1.2")
    assert alone.rows == pytest.approx(8000, rel=0.01)
    assert expected_busiest_gpu(1000, 8, 64, 8, "balanced").rows == 1000
    assert expected_busiest_gpu(1000, 8, 64, 8, "power_law_1.2").rows > 1000


def test_a_measured_gpu_is_known_by_its_sheet_and_another_is_a_transfer() -> None:
    own = replace(hardware_preset("h100"), name="ours")
    assert estimate.gemm(own, 128, 4096, 4096, "fp8").basis.startswith("measured fit H100 SXM")
    faster = replace(own, hbm_bytes_per_s=2 * (own.hbm_bytes_per_s or 0.0))
    moved = estimate.gemm(faster, 1, 16384, 16384, "bfloat16")
    assert moved.basis.startswith("transfer to ours by data sheet from measured fit")
    assert moved.seconds < estimate.gemm(own, 1, 16384, 16384, "bfloat16").seconds
    assert nearness(hardware_preset("gb200-nvl72"))[0][1] == "b200"


def test_what_lies_outside_the_measured_says_so_and_promises_no_error() -> None:
    found = estimate.gemm("h100", 1 << 20, 4096, 4096, "bfloat16")
    assert found.error is None
    assert "beyond the measured sizes" in found.basis
    assert found.interval_seconds is None


def test_between_nodes_the_rails_are_at_peak_and_said_to_be() -> None:
    inside = estimate.collective("h100", "all_reduce", 8, 1 << 30)
    across = estimate.collective("h100", "all_reduce", 16, 1 << 30, nodes=2)
    assert across.seconds > inside.seconds
    assert across.basis.startswith("peak: rails")
    assert across.error is None
    rails = 2 * (1 << 30) * 0.5 / 8 / 50e9
    assert across.seconds >= rails


def test_one_domain_of_many_nodes_is_nvlink() -> None:
    found = estimate.collective("gb200-nvl72", "all_gather", 8, 1 << 20, nodes=2)
    assert found.basis.startswith("transfer to GB200 NVL72")


def test_nodes_of_one_nvlink_domain_need_no_rails() -> None:
    rails = estimate.dispatch("h100", "low_latency", 2, 8, 128, 7168, 8, 256, "fp8")
    joined = estimate.dispatch("gb200-nvl72", "low_latency", 4, 4, 128, 7168, 8, 256, "fp8")
    assert joined.seconds < rails.seconds
    assert joined.floor_seconds < 128 * 8 * 7408 / 900e9 * 1.01


def test_a_published_table_of_a_gpu_that_no_fit_has_seen() -> None:
    """DeepEP's own low-latency figures on H800, by transfer: neither table nor GPU is among the fitted."""
    table = published("deepep_low_latency")
    errors = []
    for row in table["rows"]:
        setting = (row["ep"] // table["gpus_per_node"], table["gpus_per_node"], table["tokens"])
        model = (table["hidden"], table["top_k"], table["experts"])
        out = estimate.dispatch("h800", "low_latency", *setting, *model, "fp8")
        back = estimate.combine("h800", "low_latency", *setting, *model, "bfloat16")
        errors += [
            abs(out.seconds * 1e6 / row["dispatch_us"] - 1),
            abs(back.seconds * 1e6 / row["combine_us"] - 1),
        ]
        assert "transfer to H800" in out.basis
    assert median(errors) < 0.10
    assert max(errors) < 0.35


def test_integers_of_arrays_count() -> None:
    found = estimate.gemm("h100", np.int64(64), np.int32(4096), 4096.0, "fp8")  # type: ignore[arg-type]
    assert found == estimate.gemm("h100", 64, 4096, 4096, "fp8")


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("collective", ("h100", "ring", 8, 1024), "collective.kind='ring' must be one of"),
        ("collective", ("h100", "all_reduce", 16, 1024), "collective.gpus=16"),
        ("collective", ("h100", "all_reduce", 8, 1024, 3), "collective.nodes=3"),
        ("collective", ("h100", "all_reduce", 1, 1024), "collective.gpus=1"),
        ("collective", ("h100", "all_reduce", 8, 0), "collective.nbytes=0"),
        ("collective", ("h1", "all_reduce", 8, 8), "cluster.hardware='h1'"),
        ("gemm", ("h100", 0, 8, 8, "fp8"), "gemm.m=0"),
        ("gemm", ("h100", 8, 8, 8, "int8"), "gemm.dtype='int8'"),
        ("gemm", ("h100", 8, 8, 8, "nvfp4"), "cluster.fp4_flops"),
        ("gemm", ("h100", 1 << 50, 8, 8, "fp8"), "gemm.m="),
        ("attention", ("h100", "train", 1, 8, 8, 8, 64), "attention.phase='train'"),
        ("attention", ("h100", "decode", 1, 8, 8, 3, 64), "attention.kv_heads=3"),
        ("mla", ("h100", "decode", 1, 8, 129, "bfloat16"), "mla.heads=129"),
        ("dsa", ("h100", "decode", 1, 8, 8, "bfloat16", "bfloat16", "x"), "dsa.model='x'"),
        ("linear_attention", ("h100", "decode", 1, 1, 8, "causal_conv1d_fn"), "linear_attention.kernel"),
        ("moe", ("h100", 8, 64, 64, 8, 2, 3, "fp8", "balanced"), "moe.ep=3"),
        ("moe", ("h100", 8, 64, 64, 8, 9, 1, "fp8", "balanced"), "moe.top_k=9"),
        ("moe", ("h100", 8, 64, 64, 8, 2, 1, "fp8", "power_law_nan"), "moe.distribution"),
        ("moe", ("h100", 8, 64, 64, 8, 2, 1, "fp8", "zipf"), "moe.distribution='zipf'"),
        ("dispatch", ("h100", "fast", 1, 8, 8, 7168, 8, 256, "fp8"), "dispatch.mode='fast'"),
        ("combine", ("h100", "normal", 3, 8, 8, 7168, 8, 256, "bfloat16"), "combine.experts=256"),
        ("quantize", ("h100", True, 8), "quantize.m=True"),
    ],
)
def test_wrong_values_are_named(call: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        getattr(estimate, call)(*arguments)


def test_a_fit_by_hand() -> None:
    table = Correction((("x", (0.0, 2.0)), ("y", (0.0, 1.0))), (0.0, 0.0, 100.0, 0.0))
    assert table.at({"x": 1.0, "y": 0.0}) == pytest.approx(0.5)
    assert table.at({"x": 9.0, "y": 0.5}) == pytest.approx(0.5)
    work = OpWork("v", (3.0, 4.0), {"x": 0.0, "y": 0.0}, 1.0)
    assert Fit((1.0, 1.0), 2.0).seconds(work) == pytest.approx(5.0)
    assert Fit((1.0, 1.0), 2.0).seconds(replace(work, floor_seconds=9.0)) == 9.0


def test_pairs_by_counting() -> None:
    for new, window, past in ((5, 0, 3), (5, 2, 0), (5, 4, 3), (3, 2, 9)):
        counted = sum(min(window or 10**9, past + token + 1) for token in range(new))
        assert causal_pairs(new, window, past) == counted


def invoked(*arguments: str) -> str:
    done = CliRunner().invoke(tokentrip, ["time", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("word", sorted(CALCULATORS))
def test_every_calculator_runs_its_own_example(word: str) -> None:
    text = invoked(word, "--help")
    line = next(line for line in text.splitlines() if line.strip().startswith("tokentrip time"))
    found = json.loads(invoked(*line.split()[2:], "--json"))
    assert found["seconds"] >= found["floor_seconds"] > 0
    assert "measured fit" in found["basis"]
    assert "basis" in invoked(*line.split()[2:])


def test_a_scenario_is_still_timed_and_one_named_gemm_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "one token's trip" in invoked("six-cuts")
    (tmp_path / "gemm.toml").write_text(load_scenario("six-cuts").to_toml(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "one token's trip" in invoked("./gemm.toml")


@pytest.mark.parametrize("text", ["1.5B", "x", "", "-3", "4XB", "nan", "1e400"])
def test_wrong_bytes_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="whole number of bytes"):
        bytes_typed(text)


def test_estimates_need_the_standard_library_alone() -> None:
    script = (
        "import sys; from tracer.timing import estimate; estimate.gemm('h100', 64, 4096, 4096, 'fp8');"
        "print([m for m in ('numpy', 'networkx', 'click', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_transfer_follows_the_data_sheet_by_the_stored_power() -> None:
    """Of a GPU like H100 with links twice as fast, a large collective takes 2^-follows of the time."""
    measured = hardware_preset("h100")
    rate = measured.nvlink_bytes_per_s
    assert rate is not None
    faster = replace(measured, name="faster links", nvlink_bytes_per_s=2 * rate)
    power = calibration("nccl").follows
    assert 0 < power < 1
    sizes = (8, 1 << 29)
    gained = (
        estimate.collective(measured, "all_gather", *sizes).seconds
        / estimate.collective(faster, "all_gather", *sizes).seconds
    )
    assert gained == pytest.approx(2**power, rel=0.02)
    assert between(measured, faster, 0.0).nvlink_bytes_per_s == rate
    assert between(measured, faster, 1.0) is faster


def test_counted_loads_take_the_place_of_a_distribution() -> None:
    sizes = ("h100", 8192, 7168, 2048, 256, 8, 32, "fp8_block", "balanced")
    even, counted = estimate.moe(*sizes), estimate.moe(*sizes, loads=[3.0] * 256)
    assert counted.seconds == pytest.approx(even.seconds, rel=1e-2)
    hot = [40.0 if slot < 8 else 3.0 for slot in range(256)]
    assert estimate.moe(*sizes, loads=hot).seconds > 2 * even.seconds
    for wrong in ([1.0] * 255, [0.0] * 256, [-1.0] * 256):
        with pytest.raises(ConfigError, match=r"moe\.loads"):
            estimate.moe(*sizes, loads=wrong)


def test_experts_without_a_gate_are_known_by_their_sizes() -> None:
    sizes = ("h100", 4096, 8192, 1280, 512, 22, 8, "fp8", "balanced")
    assert estimate.moe(*sizes) == estimate.moe(*sizes, kernel="nongated")
    assert estimate.moe(*sizes) != estimate.moe(*sizes, kernel="gated")
