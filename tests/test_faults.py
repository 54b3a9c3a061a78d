"""Full disks, interrupts and broken places: the old file stands, and what is partial says so."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.judge import Answer, command
from tracer.scenario.files import load_scenario

OLD = "what was there before"
WRITERS: dict[str, Callable[[Path], Answer]] = {
    "export": lambda place: command("export", "six-cuts", "--to", str(place / "out.svg")),
    "save": lambda place: command(
        "from", "vllm", "--gpus", "8", "--save", str(place / "out.toml"), "--", "-tp", "8"
    ),
    "trace": lambda place: command("time", "six-cuts", "--trace", str(place / "out.json")),
    "fill": lambda place: command("export", "--fill", str(place / "out.md")),
}
DOCUMENT = "<!-- tokentrip: log six-cuts -->\n<!-- /tokentrip -->\n"


@contextmanager
def disk_with_room_for(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes: the write fails as on a full disk, half done."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    old = DOCUMENT if name == "fill" else OLD
    files = [tmp_path / f"out.{ending}" for ending in ("svg", "toml", "json", "md")]
    for file in files:
        file.write_text(old)
    with disk_with_room_for(100):
        answer = WRITERS[name](tmp_path)
    assert answer.code == 2
    assert "cannot be written" in answer.err
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert {file.read_text() for file in files} == {old}


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_no_step_of_a_write_leaves_anything_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "out.svg"
    target.write_text(OLD)
    with monkeypatch.context() as patched:
        patched.setattr(os, step, full)
        answer = command("export", "six-cuts", "--to", str(target))
    assert (answer.code, target.read_text(), list(tmp_path.iterdir())) == (2, OLD, [target])
    assert "No space left on device" in answer.err


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.exports.files import write_whole

    def stop(*_: object) -> None:
        raise KeyboardInterrupt("the reader gave up")

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt, match="gave up"):
        write_whole(tmp_path / "out.svg", "new")
    assert list(tmp_path.iterdir()) == []


class Slow:
    """Picks whose every block takes a moment; the third block is where the reader gives up."""

    def __init__(self, source: Any) -> None:
        self.source, self.read_blocks = source, 0
        self.layers, self.tokens, self.top_k = source.layers, source.tokens, source.top_k

    def read(self, layer: int, start: int, stop: int) -> Any:
        self.read_blocks += 1
        if self.read_blocks == 3:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.05)
        return self.source.read(layer, start, stop)


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """Ctrl+C as a terminal's program has it: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupts")
def test_an_interrupted_census_says_that_it_is_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    from tracer.batch.census.take import take_census
    from tracer.batch.picks.draws import DrawnPicks

    scenario = load_scenario("six-cuts")
    drawn = DrawnPicks.of_model(scenario.model, 64)
    whole = take_census(scenario, drawn)
    part = take_census(scenario, Slow(drawn), threads=1, partial=True)
    assert part.notes[0].startswith("PARTIAL: it was interrupted, and ")
    assert part.notes[0].endswith("of 8 blocks of picks were counted")
    assert 0 < part.load_by_expert.sum() < whole.load_by_expert.sum()
    assert "PARTIAL" in str(part)
    assert any("PARTIAL" in note for note in part.to_dict()["notes"])
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        take_census(scenario, Slow(drawn), threads=1)
    monkeypatch.setattr("app.commands.batch.census._picks", lambda *_: Slow(drawn))
    answer = command("census", "six-cuts", "--tokens", "64", "--threads", "1", "--json")
    assert answer.code == 130
    assert "PARTIAL" in json.loads(answer.out)["notes"][0]


def test_a_document_names_no_place_of_its_own_for_pictures(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / "a.svg"
    place.parent.mkdir()
    (tmp_path / "out.md").write_text(
        f"<!-- tokentrip: picture six-cuts file={place} -->\n<!-- /tokentrip -->\n"
    )
    answer = command("export", "--fill", str(tmp_path / "out.md"))
    assert answer.code == 2
    assert "must name an .svg file beside the document" in answer.err
    assert not place.exists()
