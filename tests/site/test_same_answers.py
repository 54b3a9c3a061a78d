"""What Python in the tab answers is byte for byte what the server answers."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import pytest
from draws import draws
from hypothesis import given, settings
from strategies import scenarios

from app.query.address import flatten
from app.web.api import answer
from tracer.scenario.files import preset_names

Question = tuple[str, str, str | None]
Given = tuple[int, str, bytes]
DRAWN = 500
PAGES = ("trip", "mesh", "compare", "model", "traffic", "roofline", "decode", "gpu")
SLOW = "time"
SENT = (
    ("/api/launch", "", "vllm serve deepseek-ai/DeepSeek-V3 -tp 8 -dp 4 --enable-expert-parallel"),
    (
        "/api/launch",
        "gpus=16",
        "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2",
    ),
    ("/api/launch", "", "nothing that launches"),
    ("/api/upload", "name=a.toml", '[mesh]\ntp = 2\ncp = 2\n[model]\npreset = "mixtral-8x7b"\n'),
    ("/api/upload", "name=a.json", '{"hidden_size": 1}'),
    ("/api/upload", "name=a.yaml", "tensor_parallel_size: 8\nmodel: mistralai/Mixtral-8x7B-v0.1\n"),
)
WRONG = (
    ("/api/trip", "mesh.tp=3"),
    ("/api/trip", "scenario=six-cut"),
    ("/api/trip", "mesh.tp=%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
    ("/api/trip", "token.position=" + "9" * 400),
    ("/api/nothing", ""),
    ("/export/trip.svg", "mesh.tp=3"),
)
EXPORTS = ("svg", "anim.svg", "html", "csv", "json", "perfetto.json", "seq.mmd", "mmd", "dot")


def drawn_scenarios() -> list[str]:
    """Queries of scenarios as the other tests draw them."""
    found: list[str] = []

    @settings(max_examples=draws(DRAWN))
    @given(scenarios())
    def keep(scenario: dict[str, object]) -> None:
        found.append(urlencode({"scenario": "", **flatten(scenario)}))

    keep()
    return found[:DRAWN]


def questions() -> list[Question]:
    presets = [urlencode({"scenario": name}) for name in preset_names()]
    asked: list[Question] = [("/api/presets", "", None), ("/api/learn", "", None), ("/api/trace", "", None)]
    asked += [(f"/api/{page}", f"{query}&rank=1", None) for query in presets for page in PAGES]
    asked += [(f"/api/{SLOW}", query, None) for query in presets]
    asked += [("/api/compare", urlencode({"a": query, "b": presets[0]}), None) for query in presets]
    asked += [("/api/quiz", f"seed_of_quiz={seed}", None) for seed in range(1, 9)]
    asked += [("/api/trip", "follow=0,5,40", None), ("/api/trip", "rows=all", None)]
    asked += [(f"/export/trip.{ending}", "hop=3", None) for ending in EXPORTS]
    asked += [(path, query, None) for path, query in WRONG]
    asked += SENT
    pages = ("trip", "mesh", "traffic", "gpu")
    asked += [(f"/api/{pages[i % 4]}", f"{query}&rank=0", None) for i, query in enumerate(drawn_scenarios())]
    return asked


def in_tab(site: Path, asked: list[Question]) -> list[Given]:
    """The answers of the site's own engine, under Node.js."""
    node = shutil.which("node")
    assert node is not None
    lines = [
        json.dumps({"path": path, "query": query, "body": body and base64.b64encode(body.encode()).decode()})
        for path, query, body in asked
    ]
    command = [node, str(Path(__file__).with_name("ask.mjs")), str(site)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [(each["status"], each["kind"], base64.b64decode(each["body"])) for each in found]


def on_the_server(path: str, query: str, body: str | None) -> Given:
    found = answer(path, query, None if body is None else body.encode())
    return found.status, found.kind, found.body


@pytest.fixture(scope="module")
def both(site: Path) -> list[tuple[Question, Given, Given]]:
    asked = questions()
    served = [on_the_server(*each) for each in asked]
    return list(zip(asked, in_tab(site, asked), served, strict=True))


def test_every_answer_is_the_servers(both: list[tuple[Question, Given, Given]]) -> None:
    differ = [(question, tab, served) for question, tab, served in both if tab != served]
    shown = "\n".join(f"{question}\n {_near(tab, served)}" for question, tab, served in differ[:12])
    assert not differ, f"{len(differ)} of {len(both)} answers differ:\n{shown}"


def _near(tab: Given, served: Given) -> str:
    at = next((i for i, (a, b) in enumerate(zip(tab[2], served[2], strict=False)) if a != b), 0)
    part = slice(max(0, at - 60), at + 60)
    return f"tab    {tab[:2]} {tab[2][part]!r}\n server {served[:2]} {served[2][part]!r}"


def test_most_questions_get_figures(both: list[tuple[Question, Given, Given]]) -> None:
    good = [served for _, _, served in both if not served[2].startswith(b'{"error"')]
    assert len(good) > 0.9 * len(both)


def test_what_needs_numpy_says_so_with_the_command_to_run(site: Path) -> None:
    asked: list[Question] = [("/api/batch", "scenario=kimi-k2", None), ("/api/numbers", "hop=3", None)]
    batch, numbers = (json.loads(body)["error"]["text"] for _, _, body in in_tab(site, asked))
    assert "needs numpy" in batch
    assert "tokentrip census kimi-k2" in batch
    assert "tokentrip replay six-cuts" in numbers
