"""Files of recorded picks: cut, spliced, mistyped, lying about their size, or packed to burst."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.drawn import ODD_NUMBERS, inputs, spliced
from tests.fuzz.judge import accepted, command

pytest.importorskip("numba")

from tracer.batch.census.take import take_census
from tracer.batch.picks.draws import DrawnPicks
from tracer.batch.picks.files import FORMATS, read_picks, read_sources
from tracer.scenario.files import load_scenario

SIX_CUTS = load_scenario("six-cuts")
MODEL = SIX_CUTS.model
GOOD = np.stack([DrawnPicks.of_model(MODEL, 12).read(layer, 0, 12) for layer in range(8)]).astype(np.int16)
DTYPES = [
    "i1",
    "u1",
    "i2",
    ">i2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "b1",
    "M8[s]",
    "U3",
    "S2",
    "V4",
]
SHAPES = [
    (8, 12, 2), (12, 2), (8, 12), (12,), (), (0,), (8, 0, 2), (0, 12, 2), (8, 12, 0), (1, 12, 2), (9, 12, 2),
    (8, 12, 33), (8, 12, 2, 1), (8, 1, 2),
]  # fmt: skip
FILLS = [0, 1, 31, 32, -1, -2, 127]


@pytest.fixture(scope="module", autouse=True)
def compiled(folder: Path) -> None:
    """Compile the kernels before anything is timed."""
    np.save(folder / "good.npy", GOOD)
    taken(folder / "good.npy")


def taken(file: Path, layout: str = "auto", column: str | None = None) -> None:
    picks = read_picks(file, MODEL, layout=layout, column=column)
    take_census(SIX_CUTS, picks, threads=1, check_repeats=True)


def saved(array: Any, packed: bool) -> bytes:
    """The bytes of a .npy, or of a .npz."""
    out = io.BytesIO()
    if packed:
        np.savez_compressed(out, picks=array)
    else:
        np.save(out, array, allow_pickle=True)
    return out.getvalue()


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    """Any type and shape, filled alike, with one odd element."""
    if draw(st.integers(0, 2)) == 0:
        array: Any = GOOD.copy()
    else:
        shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(DTYPES))
        array = np.zeros(shape, dtype)
        if np.issubdtype(array.dtype, np.number):
            array = np.full(shape, draw(st.sampled_from(FILLS))).astype(dtype)
    if array.size and np.issubdtype(array.dtype, np.number):
        values = [
            value for value in (*ODD_NUMBERS, 2**31 - 1, 2**63 - 1, -(2**63)) if _holds(array.dtype, value)
        ]
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(values))
    order = draw(st.sampled_from("CCF"))
    return np.asfortranarray(array) if order == "F" else array


def _holds(dtype: np.dtype[Any], value: Any) -> bool:
    if not np.issubdtype(dtype, np.integer):
        return abs(value) < 6e4
    limits = np.iinfo(dtype)
    return isinstance(value, int) and limits.min <= value <= limits.max


@inputs(0.75)
@given(data=st.data(), array=arrays(), packed=st.booleans(), layout=st.sampled_from(FORMATS))
def test_arrays(folder: Path, data: st.DataObject, array: Any, packed: bool, layout: str) -> None:
    whole = saved(array, packed)
    file = folder / f"any.{'npz' if packed else 'npy'}"
    file.write_bytes(data.draw(spliced(whole)) if data.draw(st.integers(0, 2)) == 0 else whole)
    accepted(lambda: taken(file, layout))
    accepted(lambda: read_sources(file))


LEAVES = st.sampled_from([0, 1, 31, -1, 32, 10**30, *ODD_NUMBERS, None, "x", "AAAA", [], {}])
KEYS = ["picks", "meta_info", "routed_experts", "prompt_routed_experts", "choices", "x"]
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=8,
)
PLAIN = GOOD.tolist()
ANSWERS: list[Any] = [
    PLAIN, {"picks": PLAIN}, {"prompt_routed_experts": GOOD.transpose(1, 0, 2).tolist(), "choices": []},
    {"meta_info": {"routed_experts": "AAAA" * 48}}, [{"meta_info": {"routed_experts": "AAAA" * 48}}],
]  # fmt: skip


@inputs(0.25)
@given(data=st.data(), layout=st.sampled_from(FORMATS))
def test_json(folder: Path, data: st.DataObject, layout: str) -> None:
    whole = json.dumps(data.draw(st.one_of(st.sampled_from(ANSWERS), TREES)))
    text = whole.encode()
    (folder / "any.json").write_bytes(data.draw(spliced(text)) if data.draw(st.booleans()) else text)
    accepted(lambda: taken(folder / "any.json", layout))


def header(shape: str, descr: str = "'<i8'") -> bytes:
    """A .npy that says what it likes of itself, and holds nothing."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


LIES = [
    header("(1000000000000, 8, 2)"), header("(8, 1000000000000, 2)"), header("(8, 12, 1000000000000)"),
    header("(9223372036854775807, 9223372036854775807, 2)"), header("(-1, 12, 2)"), header("(-8, -12, 2)"),
    header("(8, 12, True)"), header("(8, 12, 2.0)"), header("'abc'"), header("(8, 12, 2)", "'|O'"),
    header("(8, 12, 2)", "[('a', '|O')]"), header("(8, 12, 2)", "'<V1000000000'"),
    header("(8, 12, 2)", "__import__('os').system('true')"), header("(" * 300),
    header("(8,)" + "+(1,)" * 999),
    b"\x93NUMPY\x03\x00" + struct.pack("<I", 2**31) + b"{}", b"\x93NUMPY\x09\x09", b"", b"\x93NUMPY",
]  # fmt: skip


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_headers_that_lie(folder: Path, lie: int) -> None:
    (folder / "lie.npy").write_bytes(LIES[lie])
    with zipfile.ZipFile(folder / "lie.npz", "w") as archive:
        archive.writestr("picks.npy", LIES[lie])
    for name in ("lie.npy", "lie.npz"):
        answers = [
            command("census", "six-cuts", "--picks", name, "--format", how) for how in ("auto", "logits")
        ]
        assert {answer.code for answer in answers} == {2}


def bomb(size: int, members: int) -> bytes:
    """An .npz of a few kB whose arrays would unpack to ``members`` x ``size`` bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(members):
            with archive.open(f"arr_{number}.npy", "w", force_zip64=True) as member:
                member.write(header(f"(8, {size // 128}, 2)"))
                for _ in range(size // (1 << 20)):
                    member.write(bytes(1 << 20))
    return out.getvalue()


def test_zip_bombs(folder: Path) -> None:
    for name, data in (("deep.npz", bomb(257 << 20, 1)), ("wide.npz", bomb(16 << 20, 17))):
        (folder / name).write_bytes(data)
        assert len(data) < 2 << 20
        answer = command("census", "six-cuts", "--picks", name)
        assert "unpacks to" in answer.err


def test_a_zip_that_lies_of_its_size(folder: Path) -> None:
    """The directory says 100 bytes; the stream holds 64 MB."""
    inner = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = inner.compress(header("(8, 8388608, 2)"))
    for _ in range(4):
        packed += inner.compress(bytes(16 << 20))
    packed += inner.flush()
    name = b"picks.npy"
    local = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, 0, len(packed), 100, len(name), 0)
    entry = struct.pack(
        "<4sHHHHHHIIIHHHHHII",
        b"PK\x01\x02",
        20,
        20,
        0,
        8,
        0,
        0,
        0,
        len(packed),
        100,
        len(name),
        0,
        0,
        0,
        0,
        0,
        0,
    )
    body = local + name + packed
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) + len(name), len(body), 0)
    (folder / "lie.npz").write_bytes(body + entry + name + end)
    assert command("census", "six-cuts", "--picks", "lie.npz").code == 2


def test_parquet(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns: list[Any] = [
        pa.array([[0, 1], [2, 3]]), pa.array([[0, 1], [2]]), pa.array([[0, 1], None]), pa.array([[0, None]]),
        pa.array([[0.5, 1.0]]), pa.array(["a"]), pa.array([1, 2]), pa.array([[]], pa.list_(pa.int8())),
        pa.array([], pa.list_(pa.int8())), pa.array([[10**12, -7]]), pa.array([[[0, 1]]]),
    ]  # fmt: skip
    for number, column in enumerate(columns):
        file = folder / f"{number}.parquet"
        parquet.write_table(pa.table({"indices": column}), file)
        accepted(lambda file=file: taken(file))
        whole = file.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 12)):
            for changed in (whole[:at], whole[:at] + b"\xff\xfe" + whole[at + 2 :]):
                file.write_bytes(changed)
                accepted(lambda file=file: taken(file))
