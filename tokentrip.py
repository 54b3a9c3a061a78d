"""tokentrip: follow one token through a GPU mesh. One import for the common tasks.

>>> import tokentrip
>>> trip = tokentrip.trip("six-cuts")
>>> trip.log.gpus_touched, trip.log.node_crossings
(23, 15)
>>> tokentrip.load("six-cuts").with_(tp=4, cp=1).mesh.tp
4

Wherever a scenario is asked for, a preset's name, the path of a .toml or .json file or a ``Scenario`` will
do. Wrong input raises :class:`ConfigError`, which names the field, the value, the rule and a fix.

``python -m tokentrip`` is the command line, ``tokentrip:create_server()`` the explorer for a WSGI server, and
``"tokentrip"`` among Sphinx's ``extensions`` brings its directives. The packages behind this module have
common names (``app``, ``layouts``, ``tracer``); by way of this module they are tokentrip's own, whatever lies
in the current folder.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

_HOME = Path(__file__).resolve().parent


def _own(name: str) -> None:
    """Make a package name ours without running another's code: others' modules stay reachable behind ours.

    A package of that name that is loaded already is kept, and ours are found behind its modules.
    """
    ours, loaded = str(_HOME / name), sys.modules.get(name)
    if loaded is not None:
        path = list(getattr(loaded, "__path__", []))
        if ours not in path:
            loaded.__path__ = [*path, ours]
        return
    other = find_spec(name)
    theirs = (
        [] if other is None else [each for each in other.submodule_search_locations or () if each != ours]
    )
    spec = spec_from_file_location(
        name, _HOME / name / "__init__.py", submodule_search_locations=[ours, *theirs]
    )
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


for _name in ("tracer", "layouts", "app"):
    _own(_name)

from tracer.errors import ConfigError  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import flask

    from app.site.notebook import LiveTrip
    from tracer.batch.census.result import Census
    from tracer.batch.picks.source import PickSource
    from tracer.frameworks.opening import LaunchedMesh
    from tracer.memory.fits import Fits
    from tracer.runs.report import RunReport
    from tracer.scenario.scenario import Scenario
    from tracer.timing.report import TimeReport
    from tracer.traffic.orders import Orders
    from tracer.traffic.traffic import CommVolume
    from tracer.trip.compare import ScenarioComparison
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips

    Source = str | Path | Scenario

__all__ = [
    "ConfigError",
    "census",
    "compare",
    "create_server",
    "export",
    "fits",
    "from_launch",
    "live_trip",
    "load",
    "main",
    "orders",
    "presets",
    "read_run",
    "setup",
    "time",
    "traffic",
    "trip",
    "trips",
]


def presets() -> tuple[str, ...]:
    """Names of the scenarios that ship."""
    from tracer.scenario.files import preset_names

    return preset_names()


def load(source: Source) -> Scenario:
    """A scenario from a preset's name, a file, or one that is loaded already; ``.with_(tp=4)`` changes it.

    Raises:
        ConfigError: when nothing has that name, or it breaks a rule.
    """
    from tracer.scenario.files import load_scenario
    from tracer.scenario.scenario import Scenario

    return source if isinstance(source, Scenario) else load_scenario(source)


def from_launch(text: str | Sequence[str], *, gpus: int | None = None, **more: Any) -> list[LaunchedMesh]:
    """The meshes of a launch: a line, script, manifest or configuration as text, or words already split.

    ``more`` are ``framework``, ``filename`` and ``settings`` of ``tracer.frameworks.read_launch``.
    ``mesh.layout.scenario`` of each is the scenario, ``mesh.layout.warnings`` what it lacks.

    Raises:
        ConfigError: for what is not read, and for what the framework would refuse.
    """
    from tracer.frameworks.launch.door import read_launch
    from tracer.frameworks.opening import Asked, meshes_of

    return meshes_of(read_launch(text, **more), Asked(gpus=gpus))


def trip(source: Source) -> Trip:
    """One token's trip: hops, transfers, GPUs touched, crossings, ops and bytes; ``print`` shows the log.

    Raises:
        ConfigError: as :func:`load`, and where the scenario lacks what a hop needs.
    """
    from tracer.trip.trip import take_trip

    return take_trip(load(source))


def trips(source: Source, tokens: Iterable[int | tuple[int, int]]) -> Trips:
    """Several tokens on one map: positions, or (replica, position).

    Raises:
        ConfigError: as :func:`trip`.
    """
    from tracer.trip.trips import take_trips

    scenario = load(source)
    return take_trips(scenario, [(scenario.replica, one) if isinstance(one, int) else one for one in tokens])


def traffic(source: Source) -> CommVolume:
    """Bytes per axis of a forward pass, by closed forms, with their formulas.

    Raises:
        ConfigError: as :func:`load`.
    """
    from tracer.traffic.traffic import comm_volume

    return comm_volume(load(source))


def orders(source: Source) -> Orders:
    """Every order of the dense axes, ranked by what crosses NVLink domains.

    Raises:
        ConfigError: as :func:`load`.
    """
    from tracer.traffic.orders import rank_orders

    return rank_orders(load(source))


def census(source: Source, picks: PickSource | None = None, *, tokens: int = 1024) -> Census:
    """Every pick of a batch, counted: copies, loads, messages; ``picks`` are drawn where none are given.

    Raises:
        ConfigError: as :func:`load`, and for a model without experts.
    """
    from tracer.batch.census.take import take_census
    from tracer.batch.picks.draws import DrawnPicks

    scenario = load(source)
    return take_census(scenario, picks or DrawnPicks.of_model(scenario.model, tokens, seed=scenario.seed))


def compare(first: Source, second: Source) -> ScenarioComparison:
    """Two scenarios side by side: totals, by axis, hop by hop.

    Raises:
        ConfigError: as :func:`trip`.
    """
    from tracer.trip.compare import compare_scenarios

    return compare_scenarios(load(first), load(second))


def time(source: Source, **asked: Any) -> TimeReport:
    """How long a trip and a pass take; ``asked`` are those of :func:`tracer.timing.report.time_report`.

    Raises:
        ConfigError: as :func:`load`.
    """
    from tracer.timing.report import time_report

    return time_report(load(source), **asked)


def fits(source: Source, usable: float = 1.0) -> Fits:
    """Whether weights and K/V fit the GPUs, stage by stage; ``usable`` is the share of memory to use.

    Raises:
        ConfigError: as :func:`load`, and where the memory of a GPU is not stated.
    """
    from tracer.memory.fits import check_fits

    return check_fits(load(source), usable)


def read_run(files: Sequence[str | Path]) -> RunReport:
    """What recordings of a real run say: its layout, who is late, and where it differs from the trip.

    Raises:
        ConfigError: where none of the files is read.
    """
    from tracer.runs.report import examine_files

    return examine_files(files)


def export(source: Source | Trip | Trips, target: str | Path, *, hop: int | None = None) -> Path:
    """Write a trip as a picture, a table or for another tool; the ending of ``target`` says which.

    Raises:
        ConfigError: as :func:`trip`, for an ending that nothing has, and for a hop that the trip lacks.
    """
    from app.exports.files import write_whole
    from app.exports.formats import format_of
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips

    path = Path(target)
    write = format_of(path)
    taken = source if isinstance(source, Trip | Trips) else trip(source)
    several = Trips.of(taken)
    last = len(several.steps) - 1
    if hop is not None and not 0 <= hop <= last:
        raise ConfigError("hop", hop, f"must be a hop from 0 to {last}", "try 0, the landing")
    write_whole(path, write(several, hop))
    return path


def live_trip(source: Source, site: str, *, hop: int | None = None) -> LiveTrip:
    """A trip that a notebook shows live, from the folder of ``tokentrip site`` that is served at ``site``.

    Raises:
        ConfigError: as :func:`load`, and for a site that has no address of the web.
    """
    from app.site.notebook import live_trip as show

    return show(source, site, hop=hop)


def create_server() -> flask.Flask:
    """The explorer as a WSGI application: ``gunicorn 'tokentrip:create_server()'``."""
    from app.server import create_server as make

    return make()


def setup(app: Any) -> dict[str, bool]:
    """Register the directives and the role with Sphinx: ``extensions = ["tokentrip"]``."""
    from app.sphinx_ext import setup as register

    return register(app)


def main() -> None:
    """The command line."""
    from app.cli import main as run

    run()


if __name__ == "__main__":
    main()
