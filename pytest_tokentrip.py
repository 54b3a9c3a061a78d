"""The pytest plugin: trips in a user's tests.

The engine is called ``tracer``, a name that a user's own module may have. It is imported when a fixture
is first used, never before, and from this plugin's own folder when the test run's path leads elsewhere.

It asserts nothing itself, so pytest need not rewrite it: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from itertools import zip_longest
from os.path import isfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from tracer.runs.reading.recording import Recording
    from tracer.scenario.scenario import BareScenario, Scenario
    from tracer.trip.trip import Trip

    ScenarioSource = str | Path | Mapping[str, Any] | Scenario
    RunSource = str | Path | Sequence[str | Path] | Recording

_ENGINE = Path(__file__).resolve().with_name("tracer") / "__init__.py"


def _is_ours(origin: str | None) -> bool:
    return origin is not None and Path(origin).resolve() == _ENGINE


def _engine(name: str) -> ModuleType:
    """A module of the engine, whatever else is called ``tracer`` here."""
    full = f"tracer.{name}"
    loaded = sys.modules.get(full)
    if loaded is not None:
        return loaded
    present = sys.modules.get("tracer")
    found = present.__spec__ if present is not None else PathFinder.find_spec("tracer")
    if not _is_ours(found.origin if found is not None else None):
        _load_beside(present)
    return import_module(full)


def _load_beside(theirs: ModuleType | None) -> None:
    """Load every engine module under its full name, then give the bare name back to the user's own.

    ``from tracer.trip.trip import ...`` looks the full name up first, so the engine works on without it.
    """
    from pkgutil import walk_packages

    spec = importlib.util.spec_from_file_location(
        "tracer", _ENGINE, submodule_search_locations=[str(_ENGINE.parent)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"the engine is missing: {_ENGINE}")
    ours = importlib.util.module_from_spec(spec)
    sys.modules["tracer"] = ours
    try:
        spec.loader.exec_module(ours)
        for module in walk_packages([str(_ENGINE.parent)], prefix="tracer."):
            _load_if_possible(module.name)
    finally:
        if theirs is not None:
            sys.modules["tracer"] = theirs
        else:
            del sys.modules["tracer"]


def _load_if_possible(name: str) -> None:
    """Load a module unless an extra that it needs is not installed."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("tracer"):
            raise


def _scenario(source: ScenarioSource, folder: Path) -> Scenario:
    return cast("Scenario", _engine("scenario.scenario").with_model(_bare_scenario(source, folder)))


def _bare_scenario(source: ScenarioSource, folder: Path) -> BareScenario:
    """The scenario of a source, with or without a model."""
    if isinstance(source, Mapping):
        return cast("BareScenario", _engine("scenario.scenario").BareScenario.from_dict(source))
    if isinstance(source, str | Path):
        beside = folder / source
        found = beside if isfile(beside) else source
        return cast("BareScenario", _engine("scenario.files").load_bare_scenario(found))
    return source


def assert_trip_log(
    trip: Trip,
    *,
    gpus: int | None = None,
    crossings: int | Mapping[str, int] | None = None,
    ops: int | None = None,
) -> None:
    """Fail unless the trip's totals are these; the failure shows the hop where the two part.

    ``gpus`` are GPUs touched, ``crossings`` node crossings (a number, or one an axis, such as
    ``{"ep": 14, "tp": 0}``), ``ops`` comm ops. What is not given is not asked.
    """
    __tracebackhide__ = True
    if gpus is None and crossings is None and ops is None:
        raise TypeError("assert_trip_log asks for at least one of gpus, crossings and ops")
    problems = _engine("trip.checks").log_problems(trip, gpus=gpus, crossings=crossings, ops=ops)
    if problems:
        pytest.fail("\n".join(["the trip log is not as expected", *problems]))


def assert_axis_stays_inside_node(trip: Trip, axis: str) -> None:
    """Fail when an axis leaves a node, in a hop of the trip or in a group of a GPU that the trip touches."""
    __tracebackhide__ = True
    problem = _engine("trip.checks").axis_problem(trip, axis)
    if problem is not None:
        pytest.fail(problem)


def assert_run_matches(run: RunSource, scenario: ScenarioSource) -> None:
    """Fail unless a recorded run has the scenario's groups and operations, and nobody is late.

    ``run`` is a file, folder or pattern of recordings, several of them, or a ``Recording`` that was read.
    """
    __tracebackhide__ = True
    recording = run
    if isinstance(run, str | Path):
        recording = _engine("runs.reading.files").read_run([run])
    elif isinstance(run, list | tuple):
        recording = _engine("runs.reading.files").read_run(run)
    reference = _engine("runs.against").against_scenario(_bare_scenario(scenario, Path()))
    report = _engine("runs.report")
    problems = report.run_problems(report.examine(recording, reference))
    if problems:
        pytest.fail("\n".join(["the run does not match the scenario", *problems]))


@pytest.fixture(name="assert_run_matches")
def _assert_run_matches() -> Callable[[RunSource, ScenarioSource], None]:
    """The function :func:`assert_run_matches`, so that a test need not import it."""
    return assert_run_matches


@pytest.fixture(name="assert_trip_log")
def _assert_trip_log() -> Callable[..., None]:
    """The function :func:`assert_trip_log`, so that a test need not import it."""
    return assert_trip_log


@pytest.fixture(name="assert_axis_stays_inside_node")
def _assert_axis_stays_inside_node() -> Callable[[Trip, str], None]:
    """The function :func:`assert_axis_stays_inside_node`, so that a test need not import it."""
    return assert_axis_stays_inside_node


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register ``--tokentrip-update``."""
    group = parser.getgroup("tokentrip", "token trips")
    group.addoption("--tokentrip-update", action="store_true", help="write golden trip logs anew")


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Callable[[ScenarioSource], Scenario]:
    """A function: a preset's name, a scenario file (beside the test, or from where pytest runs) or a dict,
    to a checked scenario.
    """
    folder = request.path.parent

    def load(source: ScenarioSource) -> Scenario:
        return _scenario(source, folder)

    return load


@pytest.fixture
def take_trip(scenario: Callable[[ScenarioSource], Scenario]) -> Callable[[ScenarioSource], Trip]:
    """A function: what ``scenario`` takes, to the trip of its token."""

    def take(source: ScenarioSource) -> Trip:
        return cast("Trip", _engine("trip.trip").take_trip(scenario(source)))

    return take


@pytest.fixture
def golden_trip_log(request: pytest.FixtureRequest) -> Callable[[Trip, Path], None]:
    """A function: a trip and the file of its golden log; fails at the first line where the two part.

    ``pytest --tokentrip-update`` writes the file anew.
    """
    update = bool(request.config.getoption("--tokentrip-update"))

    def check(trip: Trip, path: Path) -> None:
        text = f"{trip}\n"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not isfile(path):
            pytest.fail(f"{path} is missing; pytest --tokentrip-update writes it", pytrace=False)
        wanted = path.read_text(encoding="utf-8")
        if text != wanted:
            pytest.fail(f"{path.name}: {_first_difference(wanted, text)}", pytrace=False)

    return check


def _first_difference(wanted: str, got: str) -> str:
    """Where two logs part, in two lines."""
    for number, (old, new) in enumerate(zip_longest(wanted.splitlines(), got.splitlines()), start=1):
        if old != new:
            return f"the trip parts from its golden log at line {number}\n  golden: {old}\n  now:    {new}"
    return "the logs differ in their line endings"
