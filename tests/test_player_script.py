"""The explorer's scripts under Node: what computes is tested by its own runner, what is joined can be run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.es_modules import explorer_script, link, player_script
from layouts import build_scene, scene_to_dict
from tracer import load_scenario, take_trips

ROOT = Path(__file__).parents[1]
READ = """
import { readScene } from "./app/assets/core/scene.js";
let text = "";
for await (const part of process.stdin) text += part;
const { rows, hops } = readScene(JSON.parse(text));
const tags = (of) => [...of].map(([rank, each]) => [rank, each.map((tag) => tag.text)]);
console.log(JSON.stringify({
  seats: rows.flatMap(({ first, seats }) => seats.map((s) => [s.rank, first, s.place, s.stage, s.tint])),
  hops: hops.map((hop) => ({
    moves: hop.moves.map((m) =>
      [m.src, m.dst, m.bytes, m.tier, m.why, m.phase, m.on_rail, m.role, m.seconds]),
    riders: hop.moves.map((m) => m.rider?.token),
    dots: hop.marks.dots.map((dot) => [dot.rank, dot.state]),
    tags: hop.marks.tags_after ? tags(hop.marks.tags_after) : null,
    totals: [hop.tally.gpus_touched, hop.tally.node_crossings, hop.tally.comm_ops, hop.tally.bytes],
  })),
}));
"""


def run_node(*arguments: str, said: str = "", cwd: Path = ROOT) -> str:
    """What Node prints; without Node the test is skipped, in CI it fails."""
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no Node.js: install it (Debian: apt-get install nodejs)")
        pytest.skip("no Node.js: the scripts are tested with `node --test tests/js/*.test.js`")
    run = subprocess.run([node, *arguments], cwd=cwd, input=said, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_what_computes() -> None:
    files = sorted(str(path) for path in (ROOT / "tests" / "js").glob("*.test.js"))
    assert files
    run_node("--test", *files)


@pytest.mark.parametrize("module", sorted(path.name for path in (ROOT / "app/assets/core").iterdir()))
def test_every_module_that_computes_has_tests(module: str) -> None:
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "js").glob("*.test.js")]
    assert any(f"/core/{module}" in text for text in tests)


@pytest.mark.parametrize("script", [explorer_script, player_script])
def test_the_joined_modules_are_a_script(script: Any, tmp_path: Path) -> None:
    (tmp_path / "all.cjs").write_text(script(), encoding="utf-8")
    run_node("--check", "all.cjs", cwd=tmp_path)


def test_modules_do_not_see_each_others_names(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        'const name = "a";\nexport const nameOfA = () => name;\n', encoding="utf-8"
    )
    (tmp_path / "b.js").write_text(
        'import { nameOfA as name } from "./a.js";\nconst nameOfA = "b";\n'
        "export function both() {\n  return name() + nameOfA;\n}\n",
        encoding="utf-8",
    )
    (tmp_path / "main.js").write_text(
        'import { both } from "./b.js";\nconsole.log(both(), typeof name, typeof module0);\n',
        encoding="utf-8",
    )
    (tmp_path / "all.cjs").write_text(link("main.js", tmp_path), encoding="utf-8")
    assert run_node("all.cjs", cwd=tmp_path) == "ab undefined object\n"


@pytest.mark.parametrize("tokens", [[(2, 40)], [(2, 0), (2, 5), (3, 40)]])
def test_the_player_reads_what_the_scene_says(tokens: list[tuple[int, int]]) -> None:
    scene = build_scene(take_trips(load_scenario("six-cuts"), tokens))
    read = json.loads(run_node("--input-type=module", "-e", READ, said=json.dumps(scene_to_dict(scene))))
    boxes = scene.gpu_boxes().values()
    # The mesh is small, so the pictures and the player's map show the same GPUs, in the same colours.
    assert sorted(read["seats"]) == sorted([b.rank, b.rank // 8, b.rank % 8, b.stage, b.tint] for b in boxes)
    for found, hop in zip(read["hops"], scene.hops, strict=True):
        moves = hop.moves
        assert found["moves"] == [
            [m.source, m.destination, m.payload_bytes, m.tier, m.why, m.phase, m.on_rail, m.role, m.seconds]
            for m in moves
        ]
        assert found["totals"] == [hop.gpus_touched, hop.node_crossings, hop.comm_ops, hop.bytes]
        if not scene.multi_token:
            assert (found["dots"], found["tags"]) == ([list(dot) for dot in hop.marks.dots], None)
            continue
        alone = [m.tokens[0] if len(m.tokens) == 1 else None for m in moves]
        assert found["riders"] == alone
        standing: dict[int, list[str]] = {}
        for token, marks in enumerate(hop.marks_of):
            for rank, _ in marks.dots:
                standing.setdefault(rank, []).append(f"{token}")
        assert dict(map(tuple, found["tags"])) == standing
