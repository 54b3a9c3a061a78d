"""The engine: a trip on a huge mesh, all groups as arrays, import and command start-up."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.ratios import Ratio, interleave
from tracer.mesh.grid import RankGrid
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.trip.trip import take_trip

TOKENTRIP = Path(sys.executable).with_name("tokentrip")
HUGE_DP = 1_048_576 // 8


def huge(scenario: Scenario) -> Scenario:
    """The same trip on 1,048,576 GPUs: six-cuts with its replicas multiplied."""
    tables = scenario.to_dict()
    tables["mesh"] |= {"dp": HUGE_DP, "edp": None}
    tables["cluster"]["nodes"] = None
    return Scenario.from_dict(tables)


def trip_on_a_huge_mesh() -> Ratio:
    """One trip on 32 and on 1,048,576 GPUs."""
    small = load_scenario("six-cuts")
    large = huge(small)
    return interleave(
        "trip on 1,048,576 GPUs, against 32",
        lambda: take_trip(large),
        lambda: take_trip(small),
        rounds=300,
        at_most=1.3,
    )


def deep_trip() -> Ratio:
    """DeepSeek-V3's 61 layers at EP144, against six-cuts' 8 layers: reported, with a loose bound."""
    tables = load_scenario("deepseek-v3-prefill-ep32").to_dict()
    tables["mesh"] |= {"dp": 144, "ep": 144, "edp": None}
    tables["cluster"]["nodes"] = None
    tables["placement"] = {"slots": [*range(256), *range(32)]}
    deep, small = Scenario.from_dict(tables), load_scenario("six-cuts")
    return interleave(
        "trip of DeepSeek-V3 at EP144, against six-cuts",
        lambda: take_trip(deep),
        lambda: take_trip(small),
        rounds=100,
        at_most=12,
    )


SIZES = {"tp": 8, "cp": 4, "dp": 512, "pp": 8}


def plain_groups(axis: str) -> list[list[int]]:
    """All groups of an axis by plain loops over coordinates."""
    strides = dict(zip(SIZES, [1, *itertools.accumulate(SIZES.values(), lambda a, b: a * b)], strict=False))
    others = [name for name in reversed(SIZES) if name != axis]
    groups = []
    for rest in itertools.product(*(range(SIZES[name]) for name in others)):
        base = sum(c * strides[name] for c, name in zip(rest, others, strict=True))
        groups.append([base + i * strides[axis] for i in range(SIZES[axis])])
    return groups


def each_axis(groups_of: Callable[[str], object]) -> None:
    """List the groups of one axis after another, keeping none: what is timed is listing, not page faults."""
    for axis in SIZES:
        groups_of(axis)


def all_groups() -> Ratio:
    """Every group of 131,072 ranks: as arrays, against plain Python loops."""
    grid = RankGrid(tuple(SIZES), tuple(SIZES.values()))
    for axis in SIZES:
        if grid.groups(axis).tolist() != plain_groups(axis):
            raise SystemExit(f"groups of {axis} differ")
    return interleave(
        "all groups of 131,072 ranks, against plain Python",
        lambda: each_axis(grid.groups),
        lambda: each_axis(plain_groups),
        rounds=50,
        baseline_rounds=5,
        at_least=500,
    )


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def start_up() -> list[Ratio]:
    """Whole processes, against one that imports numpy."""
    return [
        interleave(
            "import tracer, against import numpy",
            lambda: _run(sys.executable, "-c", "import tracer"),
            lambda: _run(sys.executable, "-c", "import numpy"),
            rounds=15,
            at_most=1.25,
        ),
        interleave(
            "tokentrip trip six-cuts, against python -c 'import numpy'",
            lambda: _run(TOKENTRIP, "trip", "six-cuts"),
            lambda: _run(sys.executable, "-c", "import numpy"),
            rounds=15,
            at_most=3.0,
        ),
    ]


def run() -> list[Ratio]:
    """Every ratio of this file."""
    return [trip_on_a_huge_mesh(), deep_trip(), all_groups(), *start_up()]
