"""The K/V's last trip as a picture: its arrows are the engine's pieces; its file can be checked."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from pool_cases import Table, decode_pool, pools
from strategies import few

import tracer
from app.cli import tokentrip
from layouts.pictures.pool_map import MAX_ARROWS, PoolMap, build_pool_map
from layouts.pictures.pool_svg import render_pool_svg
from tracer.display import format_bytes
from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario
from tracer.serving.kv_handover import KvHandover, kv_handover
from tracer.serving.pools import Pools

SVG = "{http://www.w3.org/2000/svg}"


def moved_to(**mesh: int) -> KvHandover:
    return kv_handover(Pools.join(tracer.load_scenario("six-cuts"), decode_pool(**mesh)))


def overlaps(picture: PoolMap) -> list[tuple[float, float]]:
    """Neighbouring boxes of a column, or labels, that are too close."""
    found = []
    for column in picture.columns:
        for above, below in pairwise(column.boxes):
            if above.y + above.height > below.y:
                found.append((above.y, below.y))
    heights = sorted(arrow.y for arrow in picture.arrows)
    return found + [pair for pair in pairwise(heights) if pair[1] - pair[0] < 20]


@few
@given(pools())
def test_arrows_and_labels_are_the_pieces_of_any_two_pools(tables: tuple[Table, Table]) -> None:
    both = Pools(*(Scenario.from_dict(table) for table in tables))
    for position in (None, both.prefill.token.prompt - 1):
        moved = kv_handover(both, position)
        picture = build_pool_map(moved)
        drawn = {(arrow.source, arrow.destination): arrow for arrow in picture.arrows}
        pieces: Counter[tuple[int, int]] = Counter()
        for piece in moved.pieces:
            pieces[piece.src, piece.dst] += piece.bytes
        assert len(drawn) == len(picture.arrows) == min(len(pieces), MAX_ARROWS)
        assert len(drawn) + picture.arrows_left_out == len(pieces)
        for ends, arrow in drawn.items():
            assert arrow.payload_bytes == pieces[ends]
            assert arrow.label.endswith(f" · {format_bytes(pieces[ends])}")
            assert arrow.label.startswith(f"GPU {ends[0]} · ")
        boxes = [{box.rank for box in column.boxes} for column in picture.columns]
        assert boxes == [{src for src, _ in drawn}, {dst for _, dst in drawn}]
        assert not overlaps(picture)


def test_equal_and_unequal_tp_name_heads_layers_and_who_moves_nothing() -> None:
    equal, wide = build_pool_map(moved_to()), build_pool_map(moved_to(tp=4, cp=1, dp=8, pp=1, ep=32))
    assert [arrow.label for arrow in equal.arrows][:2] == [
        "GPU 8 · heads 0-3 · layers 1-4 · 262 kB",
        "GPU 9 · heads 4-7 · layers 1-4 · 262 kB",
    ]
    assert len({arrow.y for arrow in wide.arrows}) == 16
    assert wide.columns[1].boxes[0].keeps == ("heads 0-1", "64 positions")
    folds = [column.fold.text for column in (*equal.columns, *wide.columns) if column.fold]
    assert folds == [
        "24 more GPUs: send nothing",
        "24 more GPUs: get nothing",
        "24 more GPUs: send nothing",
        "28 more GPUs: get nothing",
    ]


def test_a_thick_arrow_has_more_bytes() -> None:
    table = tracer.load_scenario("six-cuts").to_dict()
    table["mesh"]["stage_layers"] = [6, 2]
    picture = build_pool_map(kv_handover(Pools.join(Scenario.from_dict(table), decode_pool())))
    ordered = sorted(picture.arrows, key=lambda arrow: arrow.payload_bytes)
    widths = [arrow.width for arrow in ordered]
    assert widths == sorted(widths)
    assert len(set(widths)) == len({arrow.payload_bytes for arrow in ordered}) > 1


def test_many_pieces_fold_and_are_told() -> None:
    table = {
        "model": {"layers": 16, "hidden": 1024, "heads": 16, "kv_heads": 8, "head_dim": 64},
        "mesh": {"tp": 8, "cp": 4, "pp": 4, "dp": 100},
        "token": {"prompt": 4096},
    }
    decode = {**table, "phase": "decode", "mesh": {"tp": 4, "cp": 2, "pp": 8, "dp": 3}}
    moved = kv_handover(Pools(Scenario.from_dict(table), Scenario.from_dict(decode)))
    picture = build_pool_map(moved)
    rest = len(moved.pieces) - MAX_ARROWS
    assert picture.arrows_left_out == rest > 0
    size = format_bytes(moved.bytes - sum(arrow.payload_bytes for arrow in picture.arrows))
    assert re.fullmatch(rf"{rest} more pieces into \d+ GPUs: {size}", picture.rest)
    assert picture.rest in render_pool_svg(picture)
    assert {box.keeps for box in picture.columns[0].boxes} == {()}
    assert picture.height < 3000
    assert picture.columns[0].fold is not None
    assert picture.columns[0].fold.text == f"{12_800 - 128:,} more GPUs: send nothing"
    assert not overlaps(picture)


@pytest.mark.parametrize("theme", ["auto", "light", "dark", "page"])
def test_the_text_alternative_says_totals_and_every_piece(theme: str) -> None:
    moved = moved_to()
    root = ElementTree.fromstring(render_pool_svg(build_pool_map(moved), theme))
    assert root.get("role") == "img"
    assert root.get("aria-label") == f"The K/V's last trip: 64 positions. {moved.totals}"
    description = root.findtext(f"{SVG}desc") or ""
    assert description.count("to GPU") == len(moved.pieces) == 8
    arrows = [group for group in root.iter(f"{SVG}g") if group.get("class") == "arrow"]
    assert sum(int(group.get("data-bytes", "0")) for group in arrows) == moved.bytes
    sizes = [float(text.get("font-size", "0")) for text in root.iter(f"{SVG}text")]
    assert min(sizes) >= 12


def run(*words: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(tokentrip, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def test_the_picture_is_written_and_checked_against_both_scenarios(tmp_path: Path) -> None:
    pool, picture, pixels = (tmp_path / name for name in ("pool.toml", "moved.svg", "moved.png"))
    pool.write_text(decode_pool().to_toml())
    run("kv", "six-cuts", "--to", pool, "--whole", "--draw", picture)
    run("kv", "six-cuts", "--to", pool, "--draw", pixels)
    assert pixels.read_bytes().startswith(b"\x89PNG")
    assert "up to date" in run("export", "--check", picture)
    pool.write_text(decode_pool(tp=4, cp=1, dp=8, pp=1, ep=32).to_toml())
    told = run("export", "--check", picture, code=1)
    assert "decode.mesh.tp: 2 → 4" in told
    assert "decode.mesh.cp: 2 → 1" in told


def test_a_picture_without_a_pool_or_a_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs a decode pool to draw the way to; add --to SCENARIO"):
        run("kv", "six-cuts", "--draw", tmp_path / "a.svg")
    with pytest.raises(ConfigError, match=r"has no format of the last trip that ends so"):
        run("kv", "six-cuts", "--to", "six-cuts-decode", "--draw", tmp_path / "a.gif")
