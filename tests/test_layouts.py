"""The scene: true to the trip it draws, whatever the mesh; and its cost follows what was touched."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from draws import draws
from hypothesis import HealthCheck, given, settings
from strategies import scenarios

from layouts import Scene, build_scene, render_svg, scene_to_dict
from layouts.scene.palette import DARK, LIGHT
from tracer import Scenario, load_scenario, preset_names, take_trip

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).parents[1]
few = settings(max_examples=draws(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def scene_of(name: str = "six-cuts", **extra: Any) -> Scene:
    return build_scene(take_trip(load_scenario(name)), **extra)


def huge(dp: int) -> Scenario:
    table = {
        "model": {"layers": 4, "hidden": 4096, "heads": 32, "kv_heads": 8, "experts": 32, "top_k": 4,
                  "expert_hidden": 2048, "vocab": 32000},
        "mesh": {"tp": 8, "dp": dp, "ep": 32},
    }  # fmt: skip
    return Scenario.from_dict(table)


@given(scenarios())
@few
def test_moves_and_counts_are_the_trips(table: dict[str, Any]) -> None:
    trip = take_trip(Scenario.from_dict(table))
    scene = build_scene(trip)
    assert [hop.kind for hop in scene.hops] == [str(hop.kind) for hop in trip.hops]
    for drawn, hop, tally in zip(scene.hops, trip.hops, trip.tallies, strict=True):
        moved = [(m.source, m.destination, m.payload_bytes, m.tier) for m in drawn.moves]
        assert moved == [(t.src, t.dst, t.bytes, t.tier) for t in hop.transfers]
        counts = (drawn.gpus_touched, drawn.node_crossings, drawn.comm_ops, drawn.bytes)
        assert counts == (tally.gpus_touched, tally.node_crossings, tally.comm_ops, tally.bytes)
    assert {rank for hop in scene.hops for rank in hop.marks.newly_touched} == set(trip.touched)


@given(scenarios())
@few
def test_every_gpu_touched_is_drawn_and_every_transfer_has_a_path(table: dict[str, Any]) -> None:
    trip = take_trip(Scenario.from_dict(table))
    scene = build_scene(trip)
    assert set(trip.touched) <= set(scene.gpu_boxes())
    assert all(move.path.startswith("M") for hop in scene.hops for move in hop.moves)


@given(scenarios())
@few
def test_boxes_never_overlap_and_stay_inside_the_picture(table: dict[str, Any]) -> None:
    scene = build_scene(take_trip(Scenario.from_dict(table)))
    places = [(box.x, box.y) for box in scene.gpu_boxes().values()]
    assert len(set(places)) == len(places)
    for box in scene.gpu_boxes().values():
        assert 0 <= box.x <= scene.width - box.width
        assert 0 <= box.y <= scene.height - box.height


@given(scenarios())
@few
def test_every_hop_is_told(table: dict[str, Any]) -> None:
    scene = build_scene(take_trip(Scenario.from_dict(table)))
    for hop in scene.hops:
        words = hop.words
        for text in (words.title, words.what, words.why, words.stop):
            assert text
            assert "  " not in text
            assert "None" not in text
        assert words.what.endswith(".")
        assert words.why.endswith(".")
        assert all(move.why for move in hop.moves)
        assert ("Dead work" in words.gotcha) == hop.dead
        if hop.question:
            assert hop.question.answer in hop.question.options
            assert len(set(hop.question.options)) == len(hop.question.options) >= 2


@given(scenarios())
@few
def test_a_move_starts_after_what_it_carries_has_arrived(table: dict[str, Any]) -> None:
    scene = build_scene(take_trip(Scenario.from_dict(table)))
    for hop in scene.hops:
        for move in hop.moves:
            assert move.phase >= 0
            if move.role == "forward":
                arrivals = [m.phase for m in hop.moves if m.destination == move.source]
                assert min(arrivals) < move.phase


def test_the_dispatch_of_six_cuts_is_told_as_it_happens() -> None:
    words = scene_of().hops[4].words
    assert words.title == "Dispatch to 2 experts"
    assert "Expert 27 is one NVLink hop away on GPU 13." in words.what
    assert "one copy crosses to GPU 3" in words.what
    assert "forwards over NVLink to GPU 2." in words.what


def test_marks_split_stay_and_merge() -> None:
    scene = scene_of()
    states = [dict(hop.marks.dots) for hop in scene.hops[:6]]
    assert states == [
        {11: "home"},
        {10: "part", 11: "part"},
        {10: "part", 11: "part"},
        {11: "home"},
        {2: "copy", 3: "relay", 11: "home", 13: "copy"},
        {11: "home"},
    ]
    owners = {rank for hop in scene.hops for rank in hop.marks.kv_owners}
    copies = {rank for hop in scene.hops for rank in hop.marks.kv_copies}
    assert (owners, copies) == ({10, 11, 26, 27}, {8, 9, 24, 25})


def test_stages_are_bands_in_rows_or_in_columns() -> None:
    rows, columns = scene_of().bands, scene_of("six-cuts-pp-inside-dp").bands
    assert [band.layers for band in rows] == ["layers 1–4", "layers 5–8"]
    assert rows[0].y + rows[0].height < rows[1].y
    assert [band.stage for band in columns] == [0, 1]
    assert columns[0].y == columns[1].y
    assert columns[0].x + columns[0].width <= columns[1].x


@pytest.mark.parametrize("dp", [4, 32, 128, 512, 131_072])
def test_what_is_drawn_follows_what_was_touched(dp: int) -> None:
    scene = build_scene(take_trip(huge(dp)))
    assert len(scene.lines) <= 8
    folded = dp - len(scene.lines)
    assert [fold.text for fold in scene.folds] == ([f"{folded:,} nodes not touched"] if folded else [])
    assert len(json.dumps(scene_to_dict(scene))) < 60_000


def test_all_rows_are_drawn_when_asked() -> None:
    scene = build_scene(take_trip(huge(512)), all_lines=True)
    assert len(scene.gpu_boxes()) == 4096
    assert not scene.folds


def test_a_wide_island_wraps() -> None:
    table = {
        "cluster": {"gpus_per_node": 4, "nodes_per_island": 18},
        "model": {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 4, "experts": 144, "top_k": 4,
                  "expert_hidden": 8, "vocab": 100},
        "mesh": {"tp": 4, "dp": 36, "ep": 72},
    }  # fmt: skip
    scene = build_scene(take_trip(Scenario.from_dict(table)))
    assert [line.label for line in scene.lines] == ["island 0", "", "", "", "island 1", "", "", ""]
    assert {len(line.gpus) for line in scene.lines} == {18}


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("theme", ["auto", "light", "dark", "page"])
def test_pictures_are_well_formed_named_and_legible(name: str, theme: str) -> None:
    scene = scene_of(name)
    for hop in (None, 0, len(scene.hops) // 2, len(scene.hops) - 1):
        root = ET.fromstring(render_svg(scene, hop=hop, theme=theme))
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert not root.findall(f".//{SVG}title")
        assert min(float(text.get("font-size", "0")) for text in root.iter(f"{SVG}text")) >= 12
        assert bool(root.findall(f"{SVG}style")) == (theme == "auto")


def test_a_hops_picture_draws_its_transfers() -> None:
    scene = scene_of()
    drawn = render_svg(scene, hop=4, theme="light")
    for move in scene.hops[4].moves:
        assert f'd="{move.path}"' in drawn
    assert "IB · 8,192 B" in drawn
    assert ">relay<" in drawn


def test_a_picture_refuses_what_it_cannot_draw() -> None:
    scene = scene_of()
    with pytest.raises(ValueError, match="hop=42 must be from 0 to 41"):
        render_svg(scene, hop=42)
    with pytest.raises(ValueError, match="theme='pink' must be one of"):
        render_svg(scene, theme="pink")


def test_the_map_is_drawn_the_same_every_time() -> None:
    assert render_svg(scene_of()) == render_svg(scene_of())


def test_page_and_pictures_share_their_colours() -> None:
    sheet = (ROOT / "app" / "assets" / "style.css").read_text(encoding="utf-8")
    blocks = re.findall(r"--page: #.*?\}", sheet, flags=re.S)
    assert len(blocks) == 3
    for block, palette in zip(blocks, (LIGHT, DARK, DARK), strict=True):
        declared = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", block))
        assert {name: declared[name] for name in palette} == palette
