"""What trips and meshes show in a notebook."""

from __future__ import annotations

import importlib.metadata

import pytest

import tracer
from tracer.notebook import html_table


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
