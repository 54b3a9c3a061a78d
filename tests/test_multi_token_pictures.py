"""Several tokens on one map: marks follow each token, and counters are the engine's."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from PIL import Image
from token_batches import FEW, batches

from app.cli import tokentrip
from app.exports.formats import FORMATS, MULTI_TOKEN, endings_for
from app.web.api import trip_payload
from layouts import Scene, build_scene, render_svg, scene_to_dict
from layouts.animation.animated_svg import render_animated_svg
from layouts.scene.palette import TOKENS
from layouts.scene.token_tags import kv_at, token_tags, tokens_after, tokens_during
from layouts.svg.raster import to_gif
from tracer import ConfigError, load_scenario, take_trip
from tracer.display import format_bytes
from tracer.memory.kv_owners import kv_owners
from tracer.trip.link_loads import link_loads
from tracer.trip.trips import Trips, take_trips

SVG = "{http://www.w3.org/2000/svg}"
SIX = [0, 5, 9, 40, 63, (3, 40)]
# Digests of pictures of one token, as they were before several could share a map: of the whole trip, of every
# seventh hop, of the picture that plays (its middle hop where it is too long), of the JSON.
ONE_TOKEN = {
    "six-cuts": "8de5bf4075723e4d a4ede761f3fa8ada 224169cd1621033b 00d299835796a848",
    "six-cuts-decode": "520774edc9ea1a56 9ea245d0112235af 5e18ee7ba3868636 6a5e05fdc1ba6ceb",
    "gpt-oss-120b-dwdp4": "3add31bb72c5989b bd6e8150f4335ae0 02ffd5638e58c80d fb7bf928fa00e636",
    "mixtral-8x7b-tp8": "d7620082a26ddd8c 023c3e031259fb6f 9987b878155e55fa 9c542d4e1ac2a2ad",
    "gb200-nvl72": "0dae1857ef6e8de4 c648d07901543c85 6529507148ee71af 7526529c1d66dde5",
}


@pytest.fixture(scope="module")
def trips() -> Trips:
    return take_trips(load_scenario("six-cuts"), SIX)


@pytest.fixture(scope="module")
def scene(trips: Trips) -> Scene:
    return build_scene(trips)


@pytest.mark.parametrize("name", ONE_TOKEN)
def test_a_trip_of_one_token_keeps_its_pictures_byte_for_byte(name: str) -> None:
    scenario = load_scenario(name)
    alone = build_scene(take_trip(scenario))
    assert build_scene(take_trips(scenario, [(scenario.replica, scenario.position)])) == alone
    played = None if len(alone.hops) <= 80 else len(alone.hops) // 2
    texts = (
        render_svg(alone),
        "".join(render_svg(alone, hop=hop) for hop in range(0, len(alone.hops), 7)),
        render_animated_svg(alone, played),
        json.dumps(scene_to_dict(alone)),
    )
    assert [sha256(text.encode()).hexdigest()[:16] for text in texts] == ONE_TOKEN[name].split()


@FEW
@given(batches())
def test_marks_follow_each_tokens_own_home(trips: Trips) -> None:
    scene = build_scene(trips)
    kept = kv_at(scene, len(scene.hops) - 1)
    for token, trip in enumerate(trips.trips):
        scenario = trip.scenario
        marks = [hop.marks_of[token] for hop in scene.hops]
        owners = {rank for each in marks for rank in each.kv_owners}
        assert owners == set(kv_owners(scenario).ranks)
        assert {rank for rank, (owned, _) in kept.items() if token in owned} == owners
        assert {rank for each in marks for rank in each.newly_touched} == set(trip.touched)
        homes = [scenario.mesh.moved(scenario.home, "pp", stage) for stage in range(scenario.mesh.stages)]
        at_home = {rank for each in marks for rank, state in each.dots if state == "home"}
        assert at_home == set(homes)


@FEW
@given(batches())
def test_counters_and_moves_are_the_engines(trips: Trips) -> None:
    scene = build_scene(trips)
    last, totals = scene.hops[-1], trips.totals
    shown = (last.gpus_touched, last.node_crossings, last.bytes, scene.world_size)
    names = ("gpus_touched", "node_crossings", "bytes", "world_size")
    assert shown == tuple(totals[name] for name in names)
    assert set(scene.touched) == set(trips.touched) <= set(scene.gpu_boxes())
    for hop, step in zip(scene.hops, trips.steps, strict=True):
        drawn: Counter[tuple[int, int, str]] = Counter()
        carried: set[tuple[int, int, int]] = set()
        for move in hop.moves:
            drawn[move.source, move.destination, move.tier] += move.payload_bytes
            carried |= {(token, move.source, move.destination) for token in move.tokens}
            assert move.path.startswith("M")
        expected: Counter[tuple[int, int, str]] = Counter()
        for _, own in step.hops:
            for transfer in own.transfers:
                expected[transfer.src, transfer.dst, str(transfer.tier)] += transfer.bytes
        assert drawn == expected
        assert carried == {(token, t.src, t.dst) for token, own in step.hops for t in own.transfers}
        assert hop.crossings == sum(own.crossings for _, own in step.hops)
        assert hop.tokens == step.tokens
        assert dict(hop.meetings) == {each.gpu: each.tokens for each in step.meetings}
        loads = link_loads(step.hops)
        assert step.busiest == (loads[0] if loads else None)
        shown = loads[0].bytes if loads and scene.multi_token else None
        assert (hop.busiest.payload_bytes if hop.busiest else None) == shown


@FEW
@given(batches())
def test_who_stands_still_while_a_hop_travels_was_there_before(trips: Trips) -> None:
    scene = build_scene(trips)
    for before, hop in zip(scene.hops, scene.hops[1:], strict=False):
        standing = {(rank, each) for rank, held in tokens_during(hop, before).items() for each in held}
        were = {(rank, each) for rank, held in tokens_after(before).items() for each in held}
        left = {(rank, token) for rank, (token, _) in were - standing}
        assert standing <= were
        assert left <= {(move.source, token) for move in hop.moves for token in move.tokens}


def test_every_token_is_in_the_picture_by_number_and_colour(scene: Scene) -> None:
    text = render_svg(scene, hop=4, theme="light")
    root = ET.fromstring(text)
    numbers = [(each.text, each.get("fill")) for each in root.iter(f"{SVG}text")]
    fills = {rect.get("fill") for rect in root.iter(f"{SVG}rect")}
    for token in range(len(SIX)):
        fill, ink = TOKENS[token]
        assert fill in fills
        assert (f"{token}", ink) in numbers
    for name in ("replica 2, position 63", "replica 3, position 40"):
        assert name in text
    assert "busiest link of this hop: 8 → 0 over InfiniBand, 24.6 kB of tokens 0–2" in text
    assert 'stroke-width="6"' in text
    assert min(float(each.get("font-size", "0")) for each in root.iter(f"{SVG}text")) >= 12


def test_many_tokens_become_counts_and_none_is_lost() -> None:
    names = [(replica, position) for replica in range(4) for position in range(0, 60, 2)]
    trips = take_trips(load_scenario("six-cuts"), names)
    scene = build_scene(trips)
    for hop in scene.hops[:6]:
        shown = 0
        for standing in tokens_after(hop).values():
            tags = token_tags(standing, numbered=True)
            shown += int(tags[0].text[1:]) if tags[0].look == "count" else len(tags)
            assert all(tag.x + tag.width <= 76 for tag in tags)
        assert shown == sum(len(marks.dots) for marks in hop.marks_of)
    text = render_svg(scene, hop=4)
    assert "96 more tokens are not named here" in text
    assert "colours repeat every 8 tokens, numbers never" in text
    assert scene.hops[0].words.what.startswith("Tokens 0–119 land on")


def test_dots_tell_tokens_apart_without_colour_vision() -> None:
    """Seen by a deuteranope (Machado et al. 2009) no two fills coincide, and each number is legible."""
    matrix = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881))

    def linear(colour: str) -> list[float]:
        shares = [value / 255 for value in bytes.fromhex(colour[1:])]
        return [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]

    def luminance(colour: str) -> float:
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))

    for fill, ink in TOKENS:
        light, dark = sorted((luminance(fill), luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    seen = [
        [max(0.0, sum(m * c for m, c in zip(row, linear(fill), strict=True))) ** (1 / 2.4) for row in matrix]
        for fill, _ in TOKENS
    ]
    for one, other in combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 0.08


def test_what_plays_carries_every_move_and_refuses_too_many(
    trips: Trips, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ET.fromstring(render_animated_svg(scene))
    begins = [motion.get("begin", "").split(";") for motion in root.iter(f"{SVG}animateMotion")]
    assert sum(len(each) for each in begins) == sum(len(hop.moves) for hop in scene.hops)
    assert "6 tokens · the whole trip" in render_animated_svg(scene, 4)
    monkeypatch.setattr("app.exports.formats.MAX_PLAYED_MOVES", 100)
    with pytest.raises(ConfigError, match="an animated picture has room for 100; give --hop"):
        FORMATS[".anim.svg"](trips, None)


def test_a_notebook_shows_the_map_and_a_gif_keeps_the_tokens_colours(trips: Trips, scene: Scene) -> None:
    bundle = trips._repr_mimebundle_()
    assert bundle["image/svg+xml"] == render_svg(scene)
    assert bundle["text/html"].count("<tr>") == 1 + len(SIX)
    with Image.open(io.BytesIO(to_gif(scene, 1))) as image:
        image.seek(1)
        colours = {each for _, each in image.convert("RGB").getcolors(1 << 20)}
    assert {tuple(bytes.fromhex(fill[1:])) for fill, _ in TOKENS[: len(SIX)]} <= colours


def test_one_map_has_a_size(trips: Trips, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layouts.compose.scene_of_trip.MAX_DRAWN_OF_ALL", 300)
    with pytest.raises(
        ConfigError, match="than the 300 hops and transfers that one map draws; draw 2 of them"
    ):
        build_scene(trips)


def test_exports_of_several_tokens_are_checked(tmp_path: Path) -> None:
    names = [f"x{ending}" for ending in MULTI_TOKEN]
    words = [word for name in names for word in ("--to", str(tmp_path / name))]
    run = CliRunner()
    done = run.invoke(tokentrip, ["export", "six-cuts", "--tokens", "0,5,3:40", "--hop", "4", *words])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "x.json").read_text())["totals"]["world_size"] == 32
    drawn = [str(tmp_path / name) for name in ("x.svg", "x.anim.svg", "x.html")]
    assert run.invoke(tokentrip, ["export", "--check", *drawn]).exit_code == 0
    picture = tmp_path / "x.svg"
    stamp = re.sub(r'"tokens":\[\[2,0\],', '"tokens":[[2,1],', picture.read_text())
    picture.write_text(stamp)
    stale = run.invoke(tokentrip, ["export", "--check", str(picture)])
    assert stale.exit_code == 1
    assert "log.gpus_touched" in stale.output or "another version" in stale.output
    refused = run.invoke(
        tokentrip, ["export", "six-cuts", "--tokens", "0,5", "--to", str(tmp_path / "x.csv")]
    )
    assert isinstance(refused.exception, ConfigError)
    assert "cannot hold 2 tokens; write one token, or to .anim.svg" in str(refused.exception)


def test_a_picture_of_another_token_alone_is_checked_as_that_token(tmp_path: Path) -> None:
    picture = str(tmp_path / "x.svg")
    assert (
        CliRunner().invoke(tokentrip, ["export", "six-cuts", "--tokens", "5", "--to", picture]).exit_code == 0
    )
    assert CliRunner().invoke(tokentrip, ["export", "--check", picture]).exit_code == 0


def test_the_page_gets_the_engines_totals(trips: Trips) -> None:
    payload = trip_payload({"follow": "0,5,9,40,63,3:40"})
    for token, trip in zip(payload["tokens"], trips.trips, strict=True):
        log = trip.log
        counts = [log.gpus_touched, log.node_crossings, log.comm_ops, log.bytes, format_bytes(log.bytes)]
        assert list(token["totals"].values()) == counts
    tallies = [[t.gpus_touched, t.node_crossings, None, t.bytes] for t in trips.tallies]
    assert [list(hop["tally"].values())[:4] for hop in payload["hops"]] == tallies
    assert [hop["takers"] for hop in payload["hops"]] == [len(step.tokens) for step in trips.steps]
    assert payload["exports"] == endings_for(trips)
    assert set(payload["exports"]) == set(MULTI_TOKEN)
    alone = trip_payload({"follow": "40"})
    assert alone == trip_payload({})
    assert "tokens" not in alone


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("0,99", r"follow='0,99' is refused: token\.position=99 must lie in the prompt of 64; try 0 to 63"),
        ("0-63,0:0-999", r"follow='0-63,.*' must be 1 to 512 tokens"),
        ("x", r"follow='x' must be positions, runs of them or REPLICA:POSITION"),
    ],
)
def test_refused_tokens_name_the_key(names: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        trip_payload({"follow": names})
