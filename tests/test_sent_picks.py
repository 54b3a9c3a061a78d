"""Picks that are sent: read in memory, measured before they are unpacked, kept nowhere."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tracer import ConfigError, load_scenario
from tracer.batch.picks.files import read_picks
from tracer.batch.picks.npy import MAX_UNPACKED_BYTES
from tracer.batch.picks.source import InMemory

MODEL = load_scenario("six-cuts").model
PICKS = np.argsort(np.random.default_rng(3).random((8, 50, 32)), axis=2)[:, :, :2].astype(np.int16)


def npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def parquet(column: NDArray[Any], **options: Any) -> bytes:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as writer

    file = io.BytesIO()
    writer.write_table(pa.table({"indices": list(column)}), file, **options)
    return file.getvalue()


@pytest.mark.parametrize("name", ["picks.npy", "PICKS.NPY", "picks.npz", "picks.json"])
def test_a_file_in_memory_is_read_as_from_a_folder(name: str) -> None:
    data = {
        ".npy": npy(PICKS),
        ".npz": npz(picks=PICKS),
        ".json": json.dumps({"picks": PICKS.tolist()}).encode(),
    }
    source = read_picks(InMemory(name, data[Path(name.lower()).suffix]), MODEL)
    assert (source.layers, source.tokens, source.top_k) == PICKS.shape
    assert all((source.read(layer, 0, 50) == PICKS[layer]).all() for layer in range(8))


def test_a_parquet_file_in_memory_is_one_layer() -> None:
    source = read_picks(InMemory("layer_00.parquet", parquet(PICKS[0])), MODEL)
    assert (source.layers, source.tokens, source.top_k) == (1, 50, 2)
    assert (source.read(0, 10, 20) == PICKS[0, 10:20]).all()


def header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<i2", "fortran_order": False, "shape": shape})
    return file.getvalue()


def bomb() -> bytes:
    """An archive of a few kB whose member says that it unpacks to half a terabyte."""
    data = bytearray(npz(picks=np.zeros(4096, np.int16)))
    place = data.rindex(b"PK\x01\x02") + 24
    data[place : place + 4] = struct.pack("<I", 0xFFFF_FFF0)
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("picks.npy", header((8, 10**12, 2)) + b"\0" * 64, r"'picks.npy' says it holds \[8, 1000000000000"),
        ("picks.npy", b"no array", "picks='picks.npy' cannot be read"),
        ("picks.npy", npy(np.array([{}])), "picks='picks.npy' holds Python objects"),
        ("picks.npz", bomb(), rf"unpacks to [\d,]+ bytes, more than the {MAX_UNPACKED_BYTES:,} "),
        ("picks.npz", b"PK\x03\x04", "picks='picks.npz' is not an .npz"),
        ("picks.json", b"\xff\xfe", "picks='picks.json' is not UTF-8 text"),
        ("picks.json", b"[" * 100_000, "is not valid JSON"),
        ("picks.json", b"[[[1, 2], [3]]]", "is ragged; give every token the same number of picks"),
        ("picks.json", b'{"choices": [5]}', r"choices=5 must be a list of objects"),
        ("picks.npz", npz(), r"router_logits=\[\] must hold one array a MoE layer"),
        ("picks.parquet", b"PAR1", "picks='picks.parquet' cannot be read"),
        ("picks.exe", b"MZ", "has a suffix no reader knows; give .npy .npz .parquet .json .pt or .pth"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_by_name(name: str, data: bytes, message: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(ConfigError, match=message):
        read_picks(InMemory(name, data), MODEL)


def test_a_short_archive_with_a_false_header_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("picks.npy", header((8, 10**9, 2)))
    with pytest.raises(ConfigError, match=r"picks='picks.npy' says it holds \[8, 1000000000, 2\]"):
        read_picks(InMemory("picks.npz", file.getvalue()), MODEL)


def test_a_short_parquet_file_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.batch.picks.parquet.MAX_UNPACKED_BYTES", 400)
    with pytest.raises(ConfigError, match="holds 100 values, more than 50"):
        read_picks(InMemory("picks.parquet", parquet(PICKS[0])), MODEL)


def test_the_batch_page_counts_a_file_and_forgets_it() -> None:
    pytest.importorskip("dash")
    pytest.importorskip("numba")
    from app.server import create_server
    from tracer.batch.census.take import take_census
    from tracer.batch.picks.source import ArrayPicks

    client = create_server().test_client()
    answer = client.post("/api/batch?tokens=64&picks_file=mine.npy", data=npy(PICKS)).get_json()
    census = take_census(load_scenario("six-cuts"), ArrayPicks(PICKS))
    assert answer["title"].endswith("picks of mine.npy")
    assert loads(answer) == [f"{load:,}" for load in census.load_by_expert]
    drawn = client.get("/api/batch?tokens=64").get_json()
    assert loads(drawn) != loads(answer)
    wrong = PICKS.copy()
    wrong[3, 7, 0] = 99
    answer = client.post("/api/batch?tokens=64&picks_file=mine.npy", data=npy(wrong)).get_json()
    said = next(each["wrong"] for each in answer["controls"] if each["key"] == "picks")
    assert said.startswith("picks[3, 7, 0]=99 must be an expert from 0 to 31")
    assert loads(answer) == loads(drawn)


def test_a_file_without_a_pick_is_refused() -> None:
    pytest.importorskip("numba")
    from app.reports.batch.picks import sent_picks

    with pytest.raises(ConfigError, match=r"picks=\[8, 0, 2\] holds no pick"):
        sent_picks(load_scenario("six-cuts"), InMemory("none.npy", npy(PICKS[:, :0])))


def loads(answer: dict[str, Any]) -> list[str]:
    table = next(block for block in answer["blocks"] if block.get("caption") == "Loads of experts")
    return [row[1] for row in table["rows"]]


def test_a_file_that_is_too_large_is_refused_beside_its_control(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    from app.reports.batch import batch
    from app.reports.batch import picks as batch_picks

    monkeypatch.setattr(batch_picks, "MAX_BYTES", 1000)
    answer = batch.batch_report({"tokens": "64"}, InMemory("big.npy", npy(PICKS)))
    said = next(each["wrong"] for each in answer["controls"] if each["key"] == "picks")
    assert said.startswith("picks='big.npy' is over 1,000 bytes; send fewer tokens")
