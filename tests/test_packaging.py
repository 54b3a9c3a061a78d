"""What is installed, and what an import costs. Each check has a companion that shows it can fail."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("tracer", "layouts", "app")
BIN = Path(sys.executable).parent
HEAVY = {"networkx", "plotly", "dash", "flask", "numba", "pyarrow", "layouts", "app"}


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def loaded_by(statement: str, cwd: Path) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after `statement`."""
    code = f"{statement}\nimport sys\nprint(*(name for name in sys.modules if '.' not in name))"
    done = run(sys.executable, "-I", "-c", code, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("module", ["tracer", "pytest_tokentrip"])
def test_the_engine_and_the_plugin_load_nothing_heavy(module: str, tmp_path: Path):
    assert loaded_by(f"import {module}", tmp_path) == set()


def test_the_plugin_leaves_the_name_tracer_free(tmp_path: Path):
    code = "import pytest_tokentrip, sys; print('tracer' in sys.modules)"
    assert run(sys.executable, "-I", "-c", code, cwd=tmp_path).stdout.split() == ["False"]


def test_a_heavy_import_is_noticed(tmp_path: Path):
    assert "plotly" in loaded_by("import plotly", tmp_path)


def lint_imports(cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(BIN / "lint-imports", "--no-cache", cwd=cwd)


def test_imports_go_one_way():
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "statement", "contract"),
    [
        ("tracer.trip", "import layouts", "Imports go one way"),
        ("layouts.scene", "import app", "Imports go one way"),
        ("tracer.trip", "import plotly", "The engine draws nothing"),
        ("layouts.svg", "import dash", "Pictures serve nothing"),
        ("tracer.mesh", "import tracer.scenario", "Rooms of the engine"),
        ("tracer.memory", "def lazily():\n    import tracer.trip", "Rooms of the engine"),
        ("tracer.cellar", "", "Rooms of the engine"),
        ("layouts.charts", "import layouts.pictures", "Rooms of the pictures"),
        ("app.query", "import app.web", "Rooms of the explorer"),
    ],
)
def test_an_import_the_other_way_is_noticed(module: str, statement: str, contract: str, tmp_path: Path):
    build_rooms(tmp_path)
    path = tmp_path.joinpath(*module.split("."))
    path.mkdir(exist_ok=True)
    (path / "__init__.py").write_text(statement)
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout
    broken = next(line for line in done.stdout.splitlines() if line.endswith("BROKEN"))
    assert broken.startswith(contract)


def test_rooms_without_imports_keep_every_contract(tmp_path: Path):
    build_rooms(tmp_path)
    assert lint_imports(tmp_path).returncode == 0


def build_rooms(root: Path) -> None:
    """The packages with every room that the contracts name, all empty."""
    shutil.copy(ROOT / "pyproject.toml", root)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        for container in contract.get("containers", []):
            layers = chain.from_iterable(layer.split("|") for layer in contract["layers"])
            for room in ("", *(layer.strip(" ()") for layer in layers)):
                (root / container / room).mkdir(exist_ok=True)
                (root / container / room / "__init__.py").touch()


def test_the_wheel_holds_the_packages_and_the_plugin_and_nothing_else(tmp_path: Path):
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    kept = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == kept | {"pytest_tokentrip.py", "tokentrip.py"}
    assert {f"{package}/py.typed" for package in PACKAGES} <= packed


def test_the_sdist_builds_the_same_wheel(tmp_path: Path):
    done = run(sys.executable, "-m", "hatchling", "build", "-d", tmp_path / "first", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (sdist,), (wheel,) = (tmp_path / "first").glob("*.tar.gz"), (tmp_path / "first").glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("tokentrip-*")
    done = run(
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "second", cwd=unpacked
    )
    assert done.returncode == 0, done.stderr
    (again,) = (tmp_path / "second").glob("*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_every_dependency_states_a_licence_that_asks_nothing_of_users():
    licences = run_path(str(ROOT / "scripts" / "licences.py"))
    told = licences["licences"]()
    assert {"click", "dash", "diskcache", "flask-compress", "numba", "numpy", "pyarrow"} <= told.keys()
    assert [name for name, licence in told.items() if licence == licences["UNKNOWN"]] == []
    assert [name for name, licence in told.items() if "GPL" in licence] == []


def test_entry_points():
    ours = {(e.group, e.name, e.value) for e in metadata.distribution("tokentrip").entry_points}
    assert ("console_scripts", "tokentrip", "app.cli:main") in ours
    assert ("pytest11", "pytest_tokentrip", "pytest_tokentrip") in ours


@pytest.fixture
def hostile_folder(tmp_path: Path) -> Path:
    """A user's project whose own modules have the names of our packages."""
    for package in PACKAGES:
        (tmp_path / f"{package}.py").write_text("raise SystemExit('hostile')\n")
    return tmp_path


def test_the_command_ignores_modules_in_the_folder_it_starts_from(hostile_folder: Path):
    done = run(BIN / "tokentrip", "--version", cwd=hostile_folder)
    assert (done.returncode, done.stdout) == (0, f"tokentrip {metadata.version('tokentrip')}\n"), done.stderr


def test_the_hostile_folder_is_hostile(hostile_folder: Path):
    done = run(sys.executable, "-m", "app.cli", "--version", cwd=hostile_folder)
    assert done.returncode != 0
    assert "hostile" in done.stderr


def test_a_project_with_its_own_tracer_runs_its_tests_beside_the_plugin(tmp_path: Path):
    (tmp_path / "tracer.py").write_text("MINE = True\n")
    (tmp_path / "test_mine.py").write_text("import tracer\n\ndef test_mine(): assert tracer.MINE\n")
    done = run(BIN / "pytest", "-p", "no:dash", "-p", "no:cacheprovider", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "tokentrip-" in done.stdout


def test_every_dependency_has_a_version_that_ci_runs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {_normalized(requirement) for requirement in wanted} - {"tokentrip"}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {_normalized(line) for line in lines if not line.startswith("#")}
    assert names <= pinned
    assert all(line.startswith("#") or line.count("==") == 1 for line in lines)


def _normalized(requirement: str) -> str:
    name = requirement
    for end in "[=<>; ":
        name = name.split(end)[0]
    return name.lower().replace("_", "-").replace(".", "-")
