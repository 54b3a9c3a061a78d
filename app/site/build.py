"""Build the explorer as a folder for any static host, and say whether such a folder is whole and current."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from app.pages import PAGES, Page
from app.query.address import flatten
from app.site.engine import compiled, engine_files
from app.site.pages import EMBEDDED, page_of, site_html
from app.site.runtime import VERSION, Runtime, find_runtime
from app.vendor import PLOTLY
from app.web.api import answer
from app.web.bundle import Bundle
from tracer.errors import ConfigError, listed, nearest
from tracer.scenario.files import SUFFIXES, load_scenario, preset_names

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

NOT_HERE = ("batch", "numbers", "run")
"""Pages that need numpy or a server: left out, and their commands are named where one asks for them."""
DEFAULT_PAGES = tuple(page.word for page in PAGES if page.word not in NOT_HERE)
MANIFEST = "site.json"
ASSETS = files("app.site") / "assets"
VENDOR = files("app.vendor")
MARK = "tokentrip site"
LICENCES = {
    "pyodide": f"pyodide {VERSION}, https://github.com/pyodide/pyodide, Mozilla Public License 2.0",
    "python": "CPython, in pyodide, https://www.python.org, Python Software Foundation License 2.0",
    "plotly.js": "plotly.js, https://plotly.com/javascript, MIT licence",
    "tomli-w, PyYAML": "in the archive with their licences, MIT",
}


def build_site(
    out: Path,
    *,
    scenario: str | None = None,
    pages: Iterable[str] = DEFAULT_PAGES,
    runtime: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the site into a folder, in place of an older one, and give its bytes.

    Args:
        out: a folder that is missing, empty, or a site built before.
        scenario: the scenario that pages open with: a preset, or a file.
        pages: words of the pages, such as ``trip`` and ``mesh``.
        runtime: pyodide's npm package, packed or unpacked; fetched by npm when None.
        say: told what is being done.

    Raises:
        ConfigError: for a page that does not exist, a folder that holds something else, or a runtime that is
            not the pinned one.
    """
    shown = _pages(pages)
    _check_target(out)
    start, picture = _start(scenario)
    found = find_runtime(runtime, cache_folder())
    say("compiling the engine")
    contents = _contents(shown, found, start, picture)
    say("writing")
    _write(out, contents)
    return sum(map(len, contents.values()))


def check_site(out: Path) -> list[str]:
    """What is wrong with a site's folder: files that are missing, changed or too many, or an older engine."""
    try:
        manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        recorded: dict[str, str] = manifest["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{out} holds no site: there is no {MANIFEST} that says what belongs to it"]
    problems = []
    for name, digest in recorded.items():
        path = out / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif _digest(path.read_bytes()) != digest:
            problems.append(f"{name} was changed")
    have = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    problems += [f"{name} does not belong to it" for name in sorted(have - set(recorded) - {MANIFEST})]
    if manifest.get("source") != source_digest():
        problems.append("it was built by another version of tokentrip: build it anew")
    return problems


def source_digest() -> str:
    """One digest of all that a site is made of."""
    total = hashlib.sha256(VERSION.encode())
    for name, content in sorted(engine_files().items()):
        total.update(f"{name} {_digest(content)}\n".encode())
    for text in (Bundle.of_scripts().text, Bundle.of_styles().text):
        total.update(text.encode())
    for part in sorted(ASSETS.iterdir(), key=lambda each: each.name):
        total.update(part.read_bytes())
    return total.hexdigest()


def cache_folder() -> Path:
    """Where the fetched package is kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    if home:
        return Path(home) / "tokentrip"
    try:
        return Path.home() / ".cache" / "tokentrip"
    except RuntimeError:  # no home at all
        return Path(tempfile.gettempdir()) / "tokentrip-cache"


def _pages(words: Iterable[str]) -> tuple[Page, ...]:
    found: list[Page] = []
    for word in words:
        page = page_of(word)
        if word in NOT_HERE:
            rule = "needs numpy or a server, which a folder of files has not"
            raise ConfigError("--pages", word, rule, f"choose from {listed(DEFAULT_PAGES)}")
        if page is None:
            raise ConfigError("--pages", word, "is no page", nearest(word, list(DEFAULT_PAGES)))
        found.append(page)
    trip = page_of("trip")
    if trip not in found:
        given = ",".join(each.word for each in found)
        raise ConfigError("--pages", given, "must have trip: it is the first page", "add trip")
    return tuple(page for page in PAGES if page in found)


def _start(source: str | None) -> tuple[str, str]:
    """(query that pages open with, the preset whose picture stands first)."""
    if source is None:
        return "", "six-cuts"
    scenario: Scenario = load_scenario(source)
    if Path(source).suffix.lower() not in SUFFIXES:
        return "?" + urlencode({"scenario": source}), source
    return "?" + urlencode({"scenario": "", **flatten(scenario.to_dict())}), "start"


def _check_target(out: Path) -> None:
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).is_file()):
        rule = "holds something else than a site"
        raise ConfigError("OUT", str(out), rule, "name a new folder, or an empty one")


def _contents(shown: tuple[Page, ...], runtime: Runtime, start: str, picture: str) -> dict[str, bytes]:
    """All files by name."""
    engine, library = compiled(runtime, engine_files())
    packed = {
        "wasm": gzip.compress(runtime.files["pyodide.asm.wasm"], 9, mtime=0),
        "asm": gzip.compress(runtime.files["pyodide.asm.mjs"], 9, mtime=0),
        "stdlib": gzip.compress(library, 9, mtime=0),
        "engine": gzip.compress(engine, 9, mtime=0),
    }
    parts = {name: f"parts/{name}-{_digest(content)[:16]}.bin" for name, content in packed.items()}
    contents = {parts[name]: content for name, content in packed.items()}
    contents["runtime/pyodide.mjs"] = runtime.files["pyodide.mjs"]
    contents[f"vendor/{PLOTLY}"] = (VENDOR / PLOTLY).read_bytes()
    for name in preset_names():
        contents[f"pictures/{name}.svg"] = answer("/export/trip.svg", urlencode({"scenario": name})).body
    if picture == "start":
        contents["pictures/start.svg"] = answer("/export/trip.svg", start[1:]).body
    baked = dict(_baked(shown, start, contents))
    contents["worker.mjs"] = _asset("worker.mjs")
    contents["token-trip.js"] = _asset("token-trip.js")
    contents["LICENCES.txt"] = "".join(f"{name}: {text}\n" for name, text in LICENCES.items()).encode()
    lock = json.loads(runtime.files["pyodide-lock.json"]) | {"packages": {}}
    script, style = Bundle.of_scripts(), Bundle.of_styles()
    names = {"script": script.address[1:], "style": style.address[1:]}
    contents[names["script"]], contents[names["style"]] = script.text.encode(), style.text.encode()
    build = _digest("".join(f"{name} {_digest(each)}" for name, each in sorted(contents.items())).encode())[
        :16
    ]
    cache = f"{MARK} {build}"
    settings = {
        "parts": parts,
        "sizes": {name: len(content) for name, content in packed.items()},
        "baked": baked,
        "worker": "worker.mjs",
        "cache": cache,
        "lock": json.dumps(lock),
    }
    site = f"const SITE = {json.dumps(settings, ensure_ascii=True)};\n".encode() + _asset("site.js")
    names["site"] = f"site-{_digest(site)[:16]}.js"
    contents[names["site"]] = site
    for page in shown:
        html = site_html(page, shown, names, start=start if page.one_mesh else "", picture=picture)
        contents[("" if page.path == "/" else f"{page.path[1:]}/") + "index.html"] = html.encode()
    trip = shown[0]
    live = site_html(trip, shown, names, start=start, picture=picture, embedded=True)
    contents[f"{EMBEDDED}/index.html"] = live.encode()
    contents["sw.js"] = _service_worker(contents, cache)
    return contents


def _service_worker(contents: dict[str, bytes], cache: str) -> bytes:
    """Small files are kept at once, the parts as the worker asks for them."""
    heavy = ("parts/", "pictures/", "vendor/")
    kept = [
        "./" + name.removesuffix("index.html")
        for name in sorted(contents)
        if not name.startswith(heavy) and name not in ("sw.js", "token-trip.js", "LICENCES.txt")
    ]
    settings = json.dumps({"cache": cache, "family": f"{MARK} ", "kept": kept})
    return f"const SITE = {settings};\n".encode() + _asset("sw.js")


def _baked(shown: tuple[Page, ...], start: str, contents: dict[str, bytes]) -> Iterable[tuple[str, str]]:
    """(question, file) of the answers that are ready before Python is: what each page asks first."""
    questions = [("/api/presets", "")]
    for page in shown:
        query = start if page.one_mesh else ""
        if page.word != "compare":
            questions.append((f"/api/{page.word}", query))
    for path, query in questions:
        pairs = parse_qsl(query[1:], keep_blank_values=True)
        found = answer(path, query[1:])
        name = f"baked/{path.removeprefix('/api/')}.json"
        contents[name] = found.body
        yield path + json.dumps(pairs, ensure_ascii=False, separators=(",", ":")), name


def _asset(name: str) -> bytes:
    return (ASSETS / name).read_bytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(out: Path, contents: dict[str, bytes]) -> None:
    """A new folder takes the old one's place when it is whole."""
    manifest: dict[str, Any] = {
        "schema": 1,
        "source": source_digest(),
        "runtime": VERSION,
        "files": {name: _digest(content) for name, content in sorted(contents.items())},
    }
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as name:
            fresh = Path(name) / "site"
            for file, content in contents.items():
                (fresh / file).parent.mkdir(parents=True, exist_ok=True)
                (fresh / file).write_bytes(content)
            (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
            if out.exists():
                shutil.move(out, Path(name) / "old")
            shutil.move(fresh, out)
    except OSError as error:
        raise ConfigError(
            "OUT", str(out), f"cannot be written: {error.strerror}", "pick another place"
        ) from error
