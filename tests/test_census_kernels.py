"""The kernel's checks of picks against plain loops, and that a wrong pick is named wherever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from census_cases import tables

from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario

pytest.importorskip("numba")

from tracer.batch.census.homes import GivenHomes
from tracer.batch.census.kernel import CHUNK, first_repeat, outside, take_turns
from tracer.batch.census.take import take_census
from tracer.batch.picks.source import ArrayPicks


@pytest.mark.parametrize("bad", [-2, 5, 9])
@pytest.mark.parametrize("shape", [(1, 1), (4, 3)])
def test_a_pick_that_is_no_expert_is_found_in_its_rows_alone(shape: tuple[int, int], bad: int) -> None:
    rows, width = shape
    for flat in range(rows * width):
        picks = np.resize(np.array([-1, 4, 0]), shape)
        picks.flat[flat] = bad
        for low in range(rows + 1):
            for count in range(rows - low + 1):
                inside = low * width <= flat < (low + count) * width
                assert outside(picks, low, count, 5) == (flat if inside else -1)


def test_the_first_repeat_of_a_row_is_found() -> None:
    rng = np.random.default_rng(1)
    for top_k in (1, 2, 4):
        for picks in rng.integers(-1, 4, (60, 3, top_k)):
            repeats = [
                row * top_k + late
                for row in range(3)
                for late in range(top_k)
                if picks[row, late] >= 0 and picks[row, late] in picks[row, :late]
            ]
            assert first_repeat(picks) == min(repeats, default=-1)


@pytest.mark.parametrize("least", [0, 1 << 31, (1 << 53) - CHUNK])
def test_whose_turn_it_is_at_any_position(least: int) -> None:
    """Quotients in floating point, remainders right to the unit, up to the largest whole number they hold."""
    counts = np.array([1, *range(2, 130), 1013, 4096])
    positions = np.arange(least, least + CHUNK)
    turns = np.zeros((len(counts), CHUNK), np.uint32)
    take_turns(positions, 24, 1000, counts, turns)
    expected = positions[24:] % counts[:, None]
    assert np.array_equal(turns[:, :1000], expected)
    assert not turns[:, 1000:].any()


@pytest.mark.parametrize("flat", range(0, 24, 5))
@pytest.mark.parametrize(
    ("asked", "wrong", "words"),
    [
        ({}, 12, "must be an expert from 0 to 11"),
        ({}, -2, "must be an expert from 0 to 11"),
        ({"check_repeats": True}, None, "repeats an expert"),
    ],
    ids=["above", "below", "repeated"],
)
def test_a_wrong_pick_is_named(
    flat: int, asked: dict[str, Any], wrong: int | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second of two layers, in blocks of two tokens; -1 before it is no pick, and right."""
    monkeypatch.setattr("tracer.batch.census.run.BLOCK_PICKS", 6)
    scenario = Scenario.from_dict(tables({"dp": 4, "ep": 4}))
    picks = np.resize(np.arange(12), (2, 8, 3))
    row, column = divmod(flat, 3)
    column = max(column, 1) if wrong is None else column
    picks[1, ::2, 0] = -1 if wrong is not None else picks[1, ::2, 0]
    picks[1, row, column] = picks[1, row, 0] if wrong is None else wrong
    homes = GivenHomes.of_ranks(scenario, np.array([3, 0, 0, 0, 2, 2, 1, 0]))
    with pytest.raises(ConfigError, match=rf"picks\[1, {row}, {column}\]=-?\d+ {words}"):
        take_census(scenario, ArrayPicks(picks), homes=homes, **asked)
