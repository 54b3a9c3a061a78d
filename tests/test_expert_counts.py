"""Expert counts: read from what engines write, laid on GPUs, never taken for picks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from app.commands.batch.census import census_command
from app.commands.batch.eplb import eplb_command
from app.server import create_server
from tracer import ConfigError, Placement, load_scenario, take_trip
from tracer.batch.counts.files import read_counts
from tracer.batch.counts.load_census import load_census, rebalanced_counts
from tracer.batch.picks.files import read_picks

DATA = Path(__file__).parent / "data" / "torch"
SIX = load_scenario("six-cuts")
DEEP = load_scenario("deepseek-v3-prefill-ep32")
COUNTS = np.random.default_rng(5).integers(0, 5000, (8, 32))


def saved(folder: Path, name: str, value: NDArray[Any]) -> Path:
    path = folder / name
    if path.suffix == ".npy":
        np.save(path, value)
    elif path.suffix == ".npz":
        np.savez(path, logical_count=value)
    elif path.suffix == ".csv":
        rows = [",".join(f"expert {e}" for e in range(value.shape[1]))]
        path.write_text("\n".join(rows + [",".join(map(str, row)) for row in value.tolist()]))
    else:
        path.write_text(json.dumps({"logical_count": value.tolist()}))
    return path


@pytest.mark.parametrize("name", ["c.npy", "c.npz", "c.json", "c.csv"])
def test_containers_hold_the_same_counts(tmp_path: Path, name: str) -> None:
    found = read_counts(saved(tmp_path, name, COUNTS), SIX)
    assert (found.counts == COUNTS).all()
    assert (found.layers, found.notes) == (tuple(range(1, 9)), ())


def test_a_window_is_summed_and_that_is_said(tmp_path: Path) -> None:
    found = read_counts(saved(tmp_path, "w.npy", np.stack([COUNTS, 2 * COUNTS])), SIX)
    assert (found.counts == 3 * COUNTS).all()
    assert found.notes == ("summed over the 2 steps of the recorded window",)


def test_sglang_stat_and_per_pass_files() -> None:
    found = read_counts(DATA / "logical_count.pt", SIX)
    assert found.picks == int((np.arange(768) * 7919 % 613).sum())
    passes = read_counts(DATA / "per_pass.pt", SIX)
    slots = (np.arange(8 * 48) * 31 % 97).reshape(8, 48)
    both = 2 * slots + 1
    wanted = both[:, :32].astype(float)
    wanted[:, :16] += both[:, 32:]
    assert (passes.counts == wanted).all()
    assert "summed over each expert's replicas" in passes.notes[-1]


def safetensors(tensors: dict[str, NDArray[np.int64]]) -> bytes:
    header, body = {}, b""
    for name, array in tensors.items():
        span = [len(body), len(body) + array.nbytes]
        header[name] = {"dtype": "I64", "shape": list(array.shape), "data_offsets": span}
        body += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def test_the_folder_that_tensorrt_llm_writes(tmp_path: Path) -> None:
    (tmp_path / "meta_info.json").write_text('{"num_experts": 32, "num_experts_per_token": 2}')
    for rank in range(2):
        tables = {f"{it}_{layer}": COUNTS[layer] * (rank + 1) + it for it in (50, 51) for layer in range(8)}
        (tmp_path / f"rank{rank}.safetensors").write_bytes(safetensors(tables))
    (tmp_path / "rank0_raw.safetensors").write_bytes(b"not read")
    found = read_counts(tmp_path, SIX)
    assert (found.counts == 6 * COUNTS + 202).all()
    (tmp_path / "rank1.safetensors").write_bytes(safetensors({"50_0": COUNTS[0], "51_9": COUNTS[1]}))
    with pytest.raises(ConfigError, match="lacks some layer of an iteration"):
        read_counts(tmp_path, SIX)


def test_rows_of_dense_layers_are_passed_over(tmp_path: Path) -> None:
    counts = np.random.default_rng(1).integers(1, 9, (61, 256))
    counts[:3] = -1
    found = read_counts(saved(tmp_path, "c.npy", counts), DEEP)
    assert (found.counts == counts[3:]).all()
    assert found.layers[0] == 4
    with pytest.raises(ConfigError, match="60 rows' must be one for each of the model's 58 MoE layers"):
        read_counts(saved(tmp_path, "c.npy", counts[:60]), DEEP)


def test_loads_are_those_of_plain_loops() -> None:
    slots = [*range(32), *range(16)]
    scenario = SIX.with_(placement=Placement.table(slots, 16, 32))
    found = load_census(scenario, read_counts(DATA / "logical_count.pt", scenario))
    counts = (np.arange(768) * 7919 % 613).reshape(3, 8, 32).sum(0)
    for layer in range(8):
        for gpu in range(16):
            own = [counts[layer, e] / slots.count(e) for e in slots[3 * gpu : 3 * gpu + 3]]
            assert found.gpu_load[layer, gpu] == pytest.approx(sum(own))
    assert "copies, bytes and savings need picks" in str(found)


def test_balancing_by_counts_evens_loads_out() -> None:
    counts = read_counts(DATA / "logical_count.pt", SIX)
    found = rebalanced_counts(SIX, counts, slots=48)
    assert found.after.imbalance.max() < found.before.imbalance.mean()
    assert found.after.gpu_load.sum() == pytest.approx(counts.picks)
    assert found.after.gpu_load == pytest.approx(found.replication.gpu_load)


@pytest.mark.parametrize("shape", [(8, 32), (5, 8, 32)])
def test_counts_are_never_read_as_picks(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = saved(tmp_path, "c.npy", np.arange(np.prod(shape)).reshape(shape) % 32)
    with pytest.raises(
        ConfigError, match="a number for each of 32 experts: those are counts, and a token picks 2"
    ):
        read_picks(path, SIX.model)
    with pytest.raises(ConfigError, match="give counts as --counts FILE"):
        read_picks(DATA / "logical_count.pt", SIX.model)
    with pytest.raises(ConfigError, match="give counts as --counts FILE"):
        read_picks(saved(tmp_path, "c.json", COUNTS), SIX.model)


def test_picks_are_never_read_as_counts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has 2 numbers, the picks of a token;.*--picks FILE"):
        read_counts(saved(tmp_path, "p.npy", COUNTS[:, :2]), SIX)
    with pytest.raises(
        ConfigError, match="48 numbers a layer' must be one for each of the model's 32 experts"
    ):
        read_counts(saved(tmp_path, "p.npy", np.ones((8, 48), int)), SIX)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((8, 32)), "say nothing of any expert"),
        (np.full((8, 32), -1), "cannot be a count"),
        (np.full((8, 32), np.nan), "NaN or infinity"),
        (np.ones(32), "must be numbers \\[layers, experts\\]"),
        (np.ones((0, 32)), "hold nothing"),
    ],
)
def test_what_is_no_table_of_counts_is_refused(tmp_path: Path, value: NDArray[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_counts(saved(tmp_path, "c.npy", value), SIX)


def test_the_commands_take_counts() -> None:
    path = str(DATA / "logical_count.pt")
    census = CliRunner().invoke(census_command, ["six-cuts", "--counts", path, "--by-layer"])
    assert census.exit_code == 0, census.output
    assert f"{(np.arange(768) * 7919 % 613).sum():,} picks in 8 MoE layers, 32 experts" in census.output
    assert census.output.count("busiest EP rank") == 8
    eplb = CliRunner().invoke(eplb_command, ["six-cuts", "--counts", path, "--json"])
    report = json.loads(eplb.output)
    assert report["after"]["gpu_imbalance"] < report["before"]["gpu_imbalance"]
    assert len(report["placement"]["slots"]) == 48
    refused = CliRunner().invoke(census_command, ["six-cuts", "--counts", path, "--tokens", "9"])
    assert isinstance(refused.exception, ConfigError)
    assert "has no effect with --counts" in str(refused.exception)


def test_an_expert_twice_on_one_gpu_is_said() -> None:
    slots = [0, 0, 1, *range(2, 31), 31, *range(1, 16)]
    twice = SIX.with_(placement=Placement.table(slots, 16, 32))
    words = "slot tables put an expert twice on one GPU, which spreads no load: expert 0 on EP rank 0"
    assert words in str(take_trip(twice))
    assert words in " ".join(load_census(twice, read_counts(DATA / "logical_count.pt", twice)).notes)
    assert "twice" not in str(take_trip(SIX))


def test_the_batch_page_takes_counts() -> None:
    data = (DATA / "logical_count.pt").read_bytes()
    client = create_server().test_client()
    asked = {"scenario": "six-cuts", "slots": "48", "picks_file": "recorded.pt"}
    report = client.post("/api/batch", query_string=asked, data=data).get_json()
    assert report["title"].endswith("counts of recorded.pt")
    tables = {block["caption"]: block["rows"] for block in report["blocks"] if block["kind"] == "table"}
    before, after = tables["EPLB before and after"]
    assert float(after[1]) < float(before[1])
    assert "copies, bytes and savings need picks" in json.dumps(report)
    wrong = client.post(
        "/api/batch", query_string=asked | {"picks_file": "x.csv"}, data=b"1,2\n3,4"
    ).get_json()
    assert "must be one for each of the model's 32 experts" in json.dumps(wrong)
