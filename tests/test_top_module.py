"""``tokentrip.py``: the common tasks by one import, and safe beside packages of the same names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tokentrip
from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario
from tracer.trip.trip import take_trip

HOSTILE = 'raise SystemExit("the wrong code ran")\n'


def test_the_tasks_give_what_the_engine_gives(tmp_path: Path) -> None:
    scenario = tokentrip.load("six-cuts")
    assert tokentrip.trip("six-cuts").log == take_trip(scenario).log
    assert len(tokentrip.trips(scenario, [0, (3, 40)]).trips) == 2
    assert tokentrip.traffic(scenario).scenario == scenario
    assert tokentrip.census(scenario, tokens=64).scenario == scenario
    assert (
        tokentrip.compare(scenario, scenario.with_(order="tp-cp-pp-dp")).b.scenario.mesh.dense.names[2]
        == "pp"
    )
    assert tokentrip.fits(scenario.with_(hardware="h100")).scenario.cluster.hardware == "h100"
    assert "one pass of" in str(tokentrip.time(scenario.with_(hardware="h100"), tokens=64))
    assert tokentrip.orders(scenario).ranked
    (mesh,) = tokentrip.from_launch("vllm serve deepseek-ai/DeepSeek-V3 -tp 8")
    assert mesh.layout.world_size == 8
    for ending in (".svg", ".json"):
        assert tokentrip.export(scenario, tmp_path / f"trip{ending}", hop=4).stat().st_size > 1_000
    with pytest.raises(ConfigError, match=r"hop=400 must be a hop from 0 to"):
        tokentrip.export(scenario, tmp_path / "trip.svg", hop=400)
    assert set(tokentrip.__all__) <= set(dir(tokentrip))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tpp": 4}, r"tpp=4 is no part of a scenario, .*did you mean 'tp'\?"),
        ({"tp": 3}, r"mesh\.ep=16 must divide the stage's 24 ranks"),
        ({"position": 10**6}, r"token\.position=1000000 must lie in the prompt of 64"),
    ],
)
def test_a_change_by_key_is_checked(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tokentrip.load("six-cuts").with_(**changes)


def test_keys_and_parts_change_together_and_the_rest_follows() -> None:
    scenario = tokentrip.load("six-cuts")
    changed = scenario.with_(seed=7, tp=4, cp=1, kv="fp8", gpu=5)
    assert isinstance(changed, Scenario)
    assert (changed.seed, changed.mesh.tp, changed.mesh.edp, changed.dtype.kv) == (7, 4, 1, "fp8")
    assert changed.home == 5
    assert scenario.with_(dp=8, ep=32).cluster.nodes == 8


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with packages and modules of our names that must not run."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text(HOSTILE)
    (tmp_path / "app" / "models.py").write_text("SIZE = 1\n")
    for name in ("tracer", "layouts"):
        (tmp_path / f"{name}.py").write_text(HOSTILE)
    return tmp_path


def test_the_current_folder_s_code_never_runs_in_place_of_ours(hostile: Path) -> None:
    assert "lands on GPU 11" in run(hostile, "-m", "tokentrip", "trip", "six-cuts").stdout
    code = "import tokentrip, app.models; print(tokentrip.export('six-cuts', 'x.svg'), app.models.SIZE)"
    assert run(hostile, "-c", code).stdout == "x.svg 1\n"


def test_a_package_that_is_loaded_already_keeps_its_modules(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("NAME = 'theirs'\n")
    code = "import app, tokentrip; tokentrip.export('six-cuts', 'x.svg'); print(app.NAME)"
    assert run(tmp_path, "-c", code).stdout == "theirs\n"


def test_the_server_s_entry_ignores_the_current_folder(hostile: Path) -> None:
    code = "import tokentrip; print(tokentrip.create_server().test_client().get('/healthz').json)"
    assert run(hostile, "-c", code).stdout == "{'status': 'ok'}\n"


def test_sphinx_takes_our_directives_beside_a_project_s_own_app(hostile: Path) -> None:
    conf = 'import sys\nsys.path.insert(0, ".")\nextensions = ["myst_parser", "tokentrip"]\n'
    (hostile / "conf.py").write_text(conf)
    (hostile / "index.md").write_text("# Trip\n\n```{token-trip} six-cuts\n```\n")
    done = run(hostile, "-m", "sphinx", "-q", "-W", "-b", "html", ".", "_build")
    assert done.returncode == 0, done.stderr
    assert list((hostile / "_build" / "_images").glob("six-cuts-*.svg"))
