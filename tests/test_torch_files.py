"""Files of ``torch.save`` are read without PyTorch, and nothing that they name is called."""

from __future__ import annotations

import contextlib
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer import ConfigError
from tracer.batch.picks.source import InMemory
from tracer.batch.picks.torch_file import load_torch

DATA = Path(__file__).parent / "data" / "torch"


def rewritten(name: str, **parts: bytes | None) -> InMemory:
    """A file with some parts of its archive changed; None leaves one out."""
    out = io.BytesIO()
    with zipfile.ZipFile(DATA / name) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.namelist():
            part = member.partition("/")[2]
            data = parts.get(part, old.read(member))
            if data is not None:
                new.writestr(member, data)
    return InMemory(name, out.getvalue())


def described(name: str) -> bytes:
    with zipfile.ZipFile(DATA / name) as archive:
        return next(archive.read(member) for member in archive.namelist() if member.endswith("data.pkl"))


def test_tensors_have_their_shapes_values_and_strides() -> None:
    turned, part, small, empty, scalar, ordered = load_torch(DATA / "views.pt")
    assert (turned == np.arange(24).reshape(4, 6).T).all()
    assert part.tolist() == [5, 6, 7, 8]
    assert (small.tolist(), str(small.dtype)) == ([1.5, -2.0], "float32")
    assert (empty.shape, scalar.item()) == ((0, 3), 7)
    assert ordered["a"].tolist() == [True, True]
    assert not turned.flags.writeable


def test_plain_values_beside_tensors_stay() -> None:
    found = load_torch(DATA / "logical_count.pt")
    assert (found["rank"], found["average_utilization_rate_over_window"]) == (0, None)
    assert (found["logical_count"].shape, str(found["logical_count"].dtype)) == ((3, 8, 32), "int32")
    assert (found["logical_count"] == (np.arange(768) * 7919 % 613).reshape(3, 8, 32)).all()


def test_what_names_more_than_a_tensor_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"names torch\._utils\._rebuild_parameter, and only plain tensors"):
        load_torch(DATA / "parameter.pt")


def test_the_old_format_is_refused_plainly() -> None:
    with pytest.raises(ConfigError, match=r"PyTorch's format before 1\.6, which is no zip"):
        load_torch(DATA / "old.pt")


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        import os

        return (os.system, ("exit 3",))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_call_is_refused_and_not_made(protocol: int) -> None:
    sent = rewritten("views.pt", **{"data.pkl": pickle.dumps([Evil()], protocol)})
    with pytest.raises(ConfigError, match=r"names (posix|nt)\.system|instruction"):
        load_torch(sent)


def test_a_tensor_larger_than_its_storage_is_refused() -> None:
    data = described("routed_experts.pt")
    grown = data.replace(b"K\x0bK\x08K\x02", b"K\xffK\x08K\x02", 1)
    assert grown != data
    with pytest.raises(ConfigError, match=r"tensor \[255, 8, 2\] is larger than the 176 elements stored"):
        load_torch(rewritten("routed_experts.pt", **{"data.pkl": grown}))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"data/0": None}, "its storage '0' is missing"),
        ({"data/0": b"\0" * 8}, "its storage '0' is cut short"),
        ({"data/0": b"\0" * 7}, "is cut short"),
        ({"data.pkl": None}, "holds no data.pkl"),
        ({"data.pkl": b"\x80\x02]"}, "its end is missing"),
        ({"data.pkl": b"\x80\x02)Q."}, "outside object that is no storage"),
        ({"data.pkl": b"\x80\x02ccollections\nOrderedDict\n]R."}, "calls what is no tensor"),
    ],
)
def test_a_broken_archive_is_refused(parts: dict[str, bytes | None], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_torch(rewritten("routed_experts.pt", **parts))


def test_an_archive_that_unpacks_to_too_much_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", described("views.pt"))
        archive.writestr("a/data/0", b"\0" * (1 << 28))
    with pytest.raises(ConfigError, match=r"268,4.* bytes in 2 parts"):
        load_torch(InMemory("big.pt", out.getvalue()))


@given(st.binary(max_size=60), st.integers(0, 1500))
def test_no_bytes_crash_the_reader(junk: bytes, place: int) -> None:
    data = described("views.pt")
    place %= len(data)
    sent = rewritten("views.pt", **{"data.pkl": data[:place] + junk + data[place + len(junk) :]})
    with contextlib.suppress(ConfigError):
        load_torch(sent)
