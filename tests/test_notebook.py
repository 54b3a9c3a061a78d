"""What trips, meshes and censuses show in a notebook."""

from __future__ import annotations

import importlib.metadata
import math
import re

import numpy as np
import pytest

import tracer
from layouts.pictures.census_svg import census_svg
from tracer.batch.census.take import take_census
from tracer.batch.picks.draws import DrawnPicks
from tracer.display import html_table


def test_a_trip_shows_its_log_a_table_and_its_map() -> None:
    trip = tracer.take_trip(tracer.load_scenario("six-cuts"))
    bundle = trip._repr_mimebundle_()
    assert bundle["text/plain"] == str(trip)
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/html"].count("<tr>") == len(trip.hops) + 1


def test_without_a_renderer_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    bundle = tracer.take_trip(tracer.load_scenario("six-cuts"))._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}


def test_a_huge_mesh_shows_without_being_listed() -> None:
    bundle = tracer.Mesh.build(tp=8, dp=10**9, ep=64)._repr_mimebundle_()
    assert "8,000,000,000 ranks: tp8 cp1 dp1000000000" in bundle["text/plain"]
    assert "<td>dp</td><td>1000000000</td><td>0 8 16" in bundle["text/html"]


def test_cells_are_escaped() -> None:
    assert "&lt;b&gt;" in html_table(("x",), [("<b>",)])


def test_a_census_shows_who_sends_to_whom_and_each_experts_load() -> None:
    scenario = tracer.load_scenario("six-cuts")
    census = take_census(scenario, DrawnPicks.of_model(scenario.model, 64))
    bundle = census._repr_mimebundle_()
    assert bundle["text/plain"] == str(census)
    picture = bundle["image/svg+xml"]
    assert picture in bundle["text/html"]
    cells = re.findall(r'<path d="((?:M\d+ \d+h1v1h-1z)+)" fill-opacity="([\d.]+)"', picture)
    squares = {
        (int(y), int(x)): float(shade) for path, shade in cells for x, y in re.findall(r"M(\d+) (\d+)", path)
    }
    copies = census.copies
    most = int(copies.max())
    assert squares == {
        (int(y), int(x)): math.ceil(8 * int(copies[y, x]) / most) / 8
        for y, x in zip(*np.nonzero(copies), strict=True)
    }
    assert picture.count(f"h{0.8 * 448 / 32:.4g}V") == np.count_nonzero(census.load_by_expert)


def test_a_large_census_is_drawn_by_islands() -> None:
    scenario = tracer.load_scenario("deepseek-v3-decode-ep320")
    picture = census_svg(take_census(scenario, DrawnPicks.of_model(scenario.model, 320)))
    assert "by node" in picture
    assert "of one node for another" in picture
