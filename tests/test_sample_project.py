"""A user's project with plugin, directive and check, from an installed wheel in an environment of its own.

The project has a ``tracer.py`` and an ``app.py`` of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = Path(__file__).with_name("sample_project")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON", "COV"))
    }
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv's bin folder: the built wheel, and what it depends on from the environment of this run."""
    folder = tmp_path_factory.mktemp("environment")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    installed = run(*pip, wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    Path(where.stdout.strip(), "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__")))


def test_the_wheel_is_what_runs(environment: Path, tmp_path: Path):
    code = "import tracer, app, layouts; print(tracer.__file__, app.__file__, layouts.__file__)"
    done = run(environment / "python", "-c", code, cwd=tmp_path)
    assert all(Path(path).is_relative_to(environment.parent) for path in done.stdout.split()), done
    assert len(done.stdout.split()) == 3


def test_its_tests_pass_with_the_plugin(environment: Path, project: Path):
    done = run(environment / "python", "-P", "-m", "pytest", "-q", "-p", "no:dash", cwd=project)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_its_tests_notice_another_mesh(environment: Path, project: Path):
    mesh = project / "mesh.toml"
    mesh.write_text(
        mesh.read_text().replace("gpus_per_node = 8", "gpus_per_node = 4").replace("nodes = 2", "nodes = 4")
    )
    done = run(environment / "python", "-P", "-m", "pytest", "-q", "-p", "no:dash", cwd=project)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "they part at hop " in done.stdout


def test_its_pictures_and_counts_are_checked(environment: Path, project: Path):
    command = [environment / "tokentrip", "export", "--check", "README.md", "trip.svg"]
    fresh = run(*command, cwd=project)
    assert fresh.returncode == 0, fresh.stdout + fresh.stderr
    mesh = project / "mesh.toml"
    mesh.write_text(mesh.read_text().replace("1 = [0, 12]", "1 = [0, 13]"))
    stale = run(*command, cwd=project)
    assert stale.returncode == 1
    assert "README.md: out of date" in stale.stdout
    assert "trip.svg: out of date" in stale.stdout


def test_its_site_builds_with_the_directive(environment: Path, project: Path):
    out = project / "built" / "html"
    sphinx = [environment / "python", "-P", "-m", "sphinx", "-q", "-W", "-b", "html"]
    done = run(*sphinx, project / "docs", out, cwd=project)
    assert done.returncode == 0, done.stderr
    page = (out / "index.html").read_text()
    assert "9/16 GPUs · 8 node crossings (8 ep) · 16 comm ops · 61.4 kB" in page
    assert 'alt="Two nodes of eight GPUs' in page
