"""Averages over pipeline stages, which may hold different numbers of layers and sit differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tracer.rank_places import islands_of, pair_crossing_share, ring_crossing_share

if TYPE_CHECKING:
    from tracer.rank_grid import IntArray
    from tracer.scenario import Scenario


def layers_by_stage(scenario: Scenario, counted: Callable[[int], bool] = lambda _: True) -> list[int]:
    """How many layers of each stage are ``counted`` (a test of a layer number, from 1)."""
    first, found = 1, []
    for count in scenario.stage_layers:
        found.append(sum(counted(layer) for layer in range(first, first + count)))
        first += count
    return found


def crossing_share(scenario: Scenario, axis: str, weights: list[int], *, ring: bool = False) -> float:
    """Share of an axis's messages that cross islands, stages weighted by ``weights``.

    ``axis`` is tp, cp or dispatch; every ordered pair of a group alike, or with ``ring`` the links of a
    ring.
    """
    return share_of_groups(scenario, scenario.mesh.groups(axis), weights, ring=ring) if sum(weights) else 0.0


def share_of_groups(scenario: Scenario, groups: IntArray, weights: list[int], *, ring: bool = False) -> float:
    """The same for any groups, ``[groups, members]`` ranks, each within a stage."""
    stages = scenario.mesh.coordinates_of(groups[:, 0])["pp"]
    islands = islands_of(scenario.cluster, groups)
    measure = ring_crossing_share if ring else pair_crossing_share
    shares = [measure(islands[stages == stage]) if weight else 0.0 for stage, weight in enumerate(weights)]
    return float(np.average(shares, weights=weights))
