"""The page Run: what it shows is the engine's, what is sent is bounded, and nothing of it stays."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from app.reports.run import files
from app.reports.run.files import sent_files
from app.web.api import answer
from tests.runs.made import DATA, FAULTED
from tracer.errors import ConfigError
from tracer.runs.report import examine_files
from tracer.runs.shipped import SHIPPED

Sent = list[tuple[str, bytes]]


def body_of(sent: Sent) -> bytes:
    head = json.dumps({"files": [[name, len(data)] for name, data in sent]}).encode()
    return head + b"\n" + b"".join(data for _, data in sent)


def dumps_of(name: str) -> Sent:
    return [(f"{name}/{path.name}", path.read_bytes()) for path in sorted((DATA / name).iterdir())]


def page(query: str = "", sent: Sent | None = None) -> dict[str, Any]:
    body = None if sent is None else body_of(sent)
    found: dict[str, Any] = json.loads(answer("/api/run", query, body).body)
    return found


def blocks(payload: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in payload["blocks"] if block["kind"] == kind]


def table(payload: dict[str, Any], caption: str) -> list[list[str]]:
    (found,) = (block for block in blocks(payload, "table") if block["caption"] == caption)
    rows: list[list[str]] = found["rows"]
    return rows


@pytest.mark.parametrize("name", FAULTED)
def test_the_page_of_sent_dumps_says_what_the_engine_says(name: str) -> None:
    payload = page(sent=dumps_of(name))
    report = examine_files([DATA / name])
    assert payload["blocks"][0]["text"].endswith(", ".join(map(str, FAULTED[name])))
    rows = table(payload, "Evidence, rank by rank")
    assert [row[:3] for row in rows] == [[str(s.rank), s.why, str(s.waiting)] for s in report.blame.suspects]
    (played,) = blocks(payload, "run")
    assert len(played["ops"]) == sum(len(record.ops) for record in report.recording.ranks.values())
    assert played["ops"] == sorted(played["ops"], key=lambda op: op[0])
    assert played["map"].count('class="run-rank"') == report.recording.world_size
    texts = {each["ending"]: each["text"] for each in payload["texts"]}
    assert json.loads(texts["-differences.json"])["suspects"] == report.to_dict()["suspects"]
    assert "## Late" in texts["-differences.md"] and "[mesh]" in texts["-scenario.toml"]


def test_the_recording_that_ships_is_the_one_of_the_tests() -> None:
    (name,) = SHIPPED
    path = Path(files.__file__).parents[3] / "tracer" / "data" / "runs" / f"{name}.zip"
    with zipfile.ZipFile(path) as packed:
        told = {each: packed.read(each) for each in packed.namelist()}
    assert told == {path.name: path.read_bytes() for path in (DATA / name).iterdir()}
    shown = page(f"recording={name}")
    sent = page(sent=dumps_of(name))
    assert shown["blocks"] == sent["blocks"] and shown["texts"] == sent["texts"]
    assert "megatron-a/" not in json.dumps(shown) and gettempdir() + "/tokentrip" not in json.dumps(shown)


def test_filters_keep_a_rank_and_a_family_of_groups() -> None:
    whole = page("recording=megatron-a")
    one = page("recording=megatron-a&run_rank=12&run_group=ep")
    (played,) = blocks(one, "run")
    assert {op[1] for op in played["ops"]} == {12}
    assert played["groups"] == [[12, 13, 14, 15]]
    assert len(table(one, "Groups and their members")) == 4 < len(table(whole, "Groups and their members"))
    assert page("recording=megatron-a&run_rank=99")["error"]["field"] == "run_rank"
    assert page("recording=nothing")["error"]["field"] == "recording"


def test_a_run_is_held_to_a_launch_line() -> None:
    line = "megatron --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4"
    payload = page(f"recording=megatron-a&held={line.replace(' ', '+')}")
    captions = [block["caption"] for block in blocks(payload, "table")]
    assert any(caption.endswith("groups differ") for caption in captions)
    assert page("recording=megatron-a&held=nothing")["error"]


def test_packed_files_are_read_and_broken_ones_are_named() -> None:
    packed = [(name, gzip.compress(data)) for name, data in dumps_of("megatron-a")]
    assert page(sent=packed)["blocks"] == page(sent=dumps_of("megatron-a"))["blocks"]
    broken = [*packed[:-1], (packed[-1][0], packed[-1][1][:40])]
    warnings = [row[1] for row in table(page(sent=broken), "Warnings")]
    assert any(text.startswith(Path(packed[-1][0]).name) for text in warnings)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no list\n",
        b'{"files": []}\n',
        b'{"files": [["a", 5]]}\nabc',
        b'{"files": [["a", -3], ["b", 6]]}\nabc',
        b'{"files": [["a"]]}\nabc',
        b"[" * 100_000 + b"\n",
        b'{"files": [["../../../etc/x", 3]]}\nabc',
        b"a" * 200,
    ],
)
def test_a_body_that_the_page_does_not_send_is_refused(body: bytes) -> None:
    assert "error" in json.loads(answer("/api/run", "", body).body)


def test_what_is_too_large_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="over 16,777,216 bytes"), sent_files(b"\n" * (files.MAX_BYTES + 1)):
        pass
    monkeypatch.setattr(files, "MAX_UNPACKED", 1 << 20)
    bomb = gzip.compress(bytes(1 << 22))
    with pytest.raises(ConfigError, match="over 1,048,576 bytes"), sent_files(body_of([("dump_0", bomb)])):
        pass


def test_files_are_gone_with_the_answer() -> None:
    with sent_files(body_of(dumps_of("gloo-late"))) as paths:
        assert all(path.is_file() for path in paths)
    assert not any(path.exists() for path in paths)


def test_names_cannot_leave_the_folder() -> None:
    with sent_files(body_of([("../../up_1", b"x"), ("a\\..\\b", b"y"), ("..", b"z"), ("", b"w")])) as paths:
        top = paths[0].parents[1]
        assert all(path.resolve().is_relative_to(top.resolve()) and path.is_file() for path in paths)
