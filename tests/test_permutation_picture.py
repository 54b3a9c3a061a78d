"""The permutation's picture and one GPU's rows, against plain loops."""

from __future__ import annotations

import re

import numpy as np
import pytest

from layouts.pictures.permutation_svg import MAX_ROWS, permutation_svg
from tracer.batch.permutation import busiest_gpu, permute
from tracer.scenario.files import load_scenario

PICKS = np.array([[2, 0], [0, 3], [3, -1]])


def test_every_pick_has_a_line_to_its_row_and_every_expert_its_run() -> None:
    found = permute(PICKS, 6)
    picture = permutation_svg(found)
    lines = re.findall(r'<path d="M([\d.]+) [\d.]+C[^"]* ([\d.]+) [\d.]+"', picture)
    centre = [16 + 34 * column + 17 for column in range(6)]
    assert sorted((float(a), float(b)) for a, b in lines) == sorted(
        (centre[2 * token + pick], centre[row])
        for token, rows in enumerate(found.scatter.tolist())
        for pick, row in enumerate(rows)
        if row >= 0
    )
    assert "expert 0: rows 0 to 1; expert 1: no rows; expert 2: rows 2 to 2; expert 3: rows 3 to 4" in picture
    assert "No rows, yet a start and an end: experts 1, 4, 5." in picture


def test_too_many_rows_to_draw_are_refused() -> None:
    with pytest.raises(ValueError, match="rows=65 must be at most 64"):
        permutation_svg(permute(np.zeros((MAX_ROWS + 1, 1), np.int64), 4))


@pytest.mark.parametrize("name", ["six-cuts", "deepseek-v3-decode-ep144", "hybrid-tp4-ep8"])
def test_the_busiest_gpus_rows_are_counted_slot_by_slot(name: str) -> None:
    scenario = load_scenario(name)
    model, mesh = scenario.model, scenario.mesh
    layer = next(layer for layer in range(1, model.layers + 1) if model.is_moe(layer))
    placement = scenario.placement_of(layer)
    load = np.arange(1, model.need("experts", "count") + 1) * 10
    held = busiest_gpu(scenario, layer, load)

    def rows_of(rank: int) -> list[int]:
        return [
            -(-int(load[expert]) // (len(placement.ep_ranks_of(expert)) * mesh.edp))
            for expert in placement.experts_of(rank)
        ]

    assert held.rows.tolist() == rows_of(held.ep_rank)
    assert sum(rows_of(held.ep_rank)) == max(sum(rows_of(rank)) for rank in range(mesh.ep))
    assert held.columns * mesh.etp == 2 * model.need("expert_hidden", "count")
    assert held.grouped.launches == 1
    assert held.loop.launches == len(held.rows)
