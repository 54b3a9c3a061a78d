"""The server itself: headers, errors without internals, limits, and nothing of a reader's run as HTML."""

from __future__ import annotations

import html
import json
import re
import socket
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from click.testing import CliRunner

pytest.importorskip("dash")

from flask.testing import FlaskClient

from app.cli import tokentrip
from app.exports.formats import FORMATS
from app.query.address import flatten
from app.reports.flags import MAX_BYTES
from app.server import create_server
from app.web.api import BUILDERS
from app.web.flask_api import MAX_BODY_BYTES
from tests.fuzz.judge import bounded_memory, judged
from tests.test_bounds import BASE, SIZES
from tracer.scenario.read import parse_text

ROOT = Path(__file__).parents[1]
SCRIPT = "<script>alert(1)</script>"
INSIDES = re.compile(r"Traceback|File \"|\.py\b|site-packages|werkzeug|flask", re.IGNORECASE)


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    return create_server().test_client()


def test_every_answer_has_the_headers(client: FlaskClient) -> None:
    for path in ("/", "/mesh", "/api/trip", "/api/nothing", "/export/a.svg", "/healthz"):
        headers = client.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["X-Frame-Options"] == "DENY", path
        assert headers["Referrer-Policy"] == "same-origin", path


def test_scripts_come_from_here_or_are_named_by_hash(client: FlaskClient) -> None:
    policy = dict(
        part.split(" ", 1) for part in client.get("/").headers["Content-Security-Policy"].split("; ")
    )
    assert all(source == "'self'" or source.startswith("'sha256-") for source in policy["script-src"].split())
    assert (policy["default-src"], policy["object-src"], policy["frame-ancestors"]) == (
        "'self'",
        "'none'",
        "'none'",
    )


@pytest.mark.parametrize("kind", ["js", "css"])
def test_scripts_and_styles_are_one_file_each_that_may_be_kept(client: FlaskClient, kind: str) -> None:
    address = re.search(rf"/tokentrip-[0-9a-f]{{16}}\.{kind}", client.get("/").text)
    assert address
    answer = client.get(address.group())
    assert answer.cache_control.immutable
    sources = [path.relative_to(ROOT / "app") for path in (ROOT / "app" / "assets").rglob(f"*.{kind}")]
    assert sources
    if kind == "js":
        assert all(f"// {source.as_posix()}\n" in answer.text for source in sources)
    else:
        assert all((ROOT / "app" / source).read_text(encoding="utf-8") in answer.text for source in sources)
    assert re.search(r"/assets/", client.get("/").text) is None


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/", "tokentrip: follow one token through a GPU mesh"),
        ("/batch", "Batch · tokentrip"),
        ("/nothing", "No such page · tokentrip"),
    ],
)
def test_a_page_has_its_title_from_the_start(client: FlaskClient, path: str, title: str) -> None:
    assert f"<title>{title}</title>" in client.get(path).text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/nothing", 404),
        ("GET", "/api/../../etc/passwd", 404),
        ("GET", "/vendor/../__init__.py", 404),
        ("GET", "/vendor/nothing.js", 404),
        ("POST", "/api/trip", 405),
        ("GET", "/api/upload", 404),
        ("DELETE", "/export/a.svg", 405),
    ],
)
def test_what_is_not_there_says_so_and_no_more(
    client: FlaskClient, method: str, path: str, status: int
) -> None:
    answer = client.open(path, method=method)
    if path.startswith("/vendor/"):
        assert b"def register_vendor" not in answer.data
        return
    assert answer.status_code == status
    assert answer.json is not None
    assert answer.json["error"]["text"].startswith(str(status))
    assert not INSIDES.search(answer.text)


def test_a_fault_of_ours_shows_no_insides(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret of /somewhere/app.py")

    monkeypatch.setattr("app.reports.gpu_card.gpu_card", broken)
    answer = client.get("/api/gpu?rank=1")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert not INSIDES.search(answer.text)


def test_bodies_and_files_are_limited(client: FlaskClient) -> None:
    large = b"x" * (MAX_BYTES + 1)
    refused = client.post("/api/upload?name=a.toml", data=large).json
    assert refused is not None
    assert refused["error"]["rule"] == f"is over {MAX_BYTES:,} bytes"
    for path in ("/api/upload?name=a.toml", "/_dash-update-component"):
        answer = client.post(path, data=b"x" * (MAX_BODY_BYTES + 1), content_type="application/json")
        assert answer.status_code in (200, 400, 413), path
        assert not INSIDES.search(answer.text), path


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'{"output": "x"}', b"[" * 5000])
def test_a_broken_body_is_refused_without_insides(client: FlaskClient, body: bytes) -> None:
    answer = client.post("/_dash-update-component", data=body, content_type="application/json")
    assert answer.status_code >= 400
    assert not INSIDES.search(answer.text)


@pytest.mark.parametrize("name", ["a.toml", "a.json", "../../a.toml", SCRIPT + ".json", "a.npy", ""])
@pytest.mark.parametrize("data", [b"\x80\x04K\x01.", b"PK\x03\x04", b"\x93NUMPY", b"{}" * 9, b"[1]", b"\x00"])
def test_files_of_another_type_are_refused(client: FlaskClient, name: str, data: bytes) -> None:
    answer = client.post(f"/api/upload?name={quote(name)}", data=data)
    assert answer.mimetype == "application/json"
    assert answer.json is not None
    assert answer.json["error"]["field"]


@pytest.mark.parametrize("ending", [ending for ending in FORMATS if ending not in (".png", ".gif")])
def test_names_stay_text_in_every_export(client: FlaskClient, ending: str) -> None:
    query = urlencode({"name": SCRIPT, "source": SCRIPT, "model.name": SCRIPT, "scenario": "six-cuts"})
    answer = client.get(f"/export/{quote(SCRIPT.replace('/', ''))}{ending}?{query}")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"].startswith("attachment; ")
    if ending not in (".json", ".perfetto.json", ".csv", ".mmd", ".seq.mmd", ".dot"):
        assert SCRIPT not in answer.text
    if ending in (".svg", ".html"):
        assert html.escape(SCRIPT) in answer.text or "\\u003cscript" in answer.text


@pytest.mark.parametrize("name", ['a".svg', "a\r\nX-Other: 1.svg", "１.svg", "a;b.svg", "a\x00.svg"])
def test_no_name_of_a_file_breaks_its_header(client: FlaskClient, name: str) -> None:
    answer = client.get(f"/export/{quote(name)}")
    assert "X-Other" not in answer.headers
    assert answer.status_code in (200, 400, 404)
    for key, value in answer.headers:
        f"{key}{value}".encode("latin-1")


def test_answers_with_names_are_json_and_pages_hold_none(client: FlaskClient) -> None:
    query = urlencode({"name": SCRIPT, "model.name": SCRIPT, "hop": SCRIPT, "chapter": SCRIPT, "a": SCRIPT})
    for name in sorted(set(BUILDERS) - {"batch", "numbers"}):
        assert client.get(f"/api/{name}?{query}").mimetype == "application/json", name
    assert SCRIPT not in client.get(f"/?{query}").text


def test_loopback_unless_said(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, object] = {}

    class Recorder:
        def __init__(self, jobs: Path, embed: bool, base_path: str | None) -> None:
            assert jobs.is_dir()

        def run(self, **options: object) -> None:
            told.update(options)

    monkeypatch.setattr("app.server.create_app", Recorder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    answer = CliRunner().invoke(tokentrip, ["app", "--no-open", "--port", str(port)])
    assert answer.exit_code == 0, answer.output
    assert (told["host"], told["debug"]) == ("127.0.0.1", False)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        from app.cli import main

        with pytest.raises(SystemExit, match="2"):
            main(["app", "--no-open", "--port", str(port)])


#: One of each kind; all sizes go through the command line.
HUGE = ("dp 10^12", "ep 10^4", "pp 10^3", "layers 4096", "experts 32000", "prompt 10^12")
BOUNDS = [name for name in sorted(BUILDERS) if name not in ("presets", "learn", "quiz", "flags", "numbers")]


@pytest.mark.parametrize("name", BOUNDS)
def test_no_mesh_keeps_others_waiting(client: FlaskClient, name: str) -> None:
    """Every builder, asked with every huge size: an answer or a refusal soon, and within 1 GB."""
    tables = parse_text(BASE, ".toml")
    assert isinstance(tables, dict)
    base = {"scenario": "", **flatten(tables), "rank": "0", "tokens": "64"}
    client.get(f"/api/{name}?{urlencode(base)}")
    with bounded_memory():
        for size in HUGE:
            changes = SIZES[size]
            query = base | {key: str(value) for key, value in changes.items()}
            if name == "compare":
                query = {"a": urlencode(query), "b": urlencode(base)}
            address = f"/api/{name}?{urlencode(query)}"
            answer = judged(lambda address=address: client.get(address))
            assert answer.status_code == 200, (size, json.dumps(answer.json)[:200])


@pytest.mark.parametrize("table", ["mesh", "cluster", "token", "model"])
def test_a_number_where_a_table_belongs_is_refused_by_name(client: FlaskClient, table: str) -> None:
    answer = client.get(f"/api/mesh?{table}=8").json
    assert answer is not None
    assert answer["wrong"]["field"] == table


@pytest.mark.parametrize("change", ["mesh.dp=1000&mesh.ep=16", "model.experts=1600", "model.top_k=17"])
def test_numbers_of_a_large_mesh_are_refused(client: FlaskClient, change: str) -> None:
    answer = judged(lambda: client.get(f"/api/numbers?picks=&cluster.nodes=&{change}")).json
    assert "that this page runs" in answer["error"]["rule"]
