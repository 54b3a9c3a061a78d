"""Every preset on every page and by every command: an answer, or a refusal that names its reason.

Batches are small and prompts are those of the presets, so that a preset takes about a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

pytest.importorskip("numba")

from app.cli import COMMANDS, tokentrip
from app.pages import PAGES
from app.web.api import answer
from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario, preset_names

QUERIES = {"batch": "tokens=64&slots={slots}", "compare": "a={preset}&b={preset}", "trip": "hop=2"}
FILES = ("trip.svg", "trip.json", "trip.csv", "trip.html")

AFTER = {
    "census": ["--tokens", "64", "--json"],
    "compare": ["{preset}"],
    "eplb": ["--tokens", "64", "--slots", "{slots}"],
    "generate": ["--steps", "2"],
    "rank": ["0"],
    "lockstep": ["--loads", "{loads}"],
}
"""What a command needs behind the preset's name."""

OF_NO_PRESET = {
    "app",
    "check",
    "completion",
    "diff",
    "export",
    "flags",
    "from",
    "keys",
    "ledger",
    "model",
    "presets",
    "run",
    "site",
}
"""Commands that take no scenario, or files of other programs; each has tests of its own."""

TOO_LONG = {"replay", "causal"}
"""Commands that a preset of a real size keeps for minutes; each has tests with small ones."""


REFUSED = {
    ("llama-3.1-405b", "batch"): "model.experts is not given",
    ("llama-3.1-405b", "census"): "model.experts is not given",
    ("llama-3.1-405b", "eplb"): "model.experts is not given",
    ("llama-3.1-405b", "advise"): "model.experts is not given",
    ("deepseek-v3-decode-ep320", "numbers"): "world_size=320 is more than the 128",
    ("deepseek-v3-decode-ep144", "numbers"): "world_size=144 is more than the 128",
    ("gb200-nvl72", "numbers"): "phase='decode' cannot be replayed",
    ("sglang-decode-ep72", "numbers"): "phase='decode' cannot be replayed",
    ("six-cuts-decode", "numbers"): "phase='decode' cannot be replayed",
}
"""What has no answer for a preset, with the reason that is given; anything else refused is a fault."""


ALERTS = {("llama-3.1-405b", "roofline")}
"""Presets and pages of which one part alone has no answer: a dense model has no expert GEMMs."""


def filled(words: str, preset: str) -> str:
    """Words with slots that divide over the EP ranks and hold every expert, and a load per replica."""
    scenario = load_scenario(preset)
    ep, experts = scenario.mesh.ep, (scenario.model.experts or 0) + len(scenario.always_picked)
    loads = ",".join(str(replica % 3) for replica in range(scenario.mesh.dp))
    return words.format(preset=preset, slots=max(1, -(-experts // ep)) * ep, loads=loads)


def questions(preset: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        if page.word != "learn":
            query = filled(QUERIES.get(page.word, ""), preset)
            yield f"/api/{page.word}", f"scenario={preset}&{query}"
    yield "/api/gpu", f"scenario={preset}&rank=0"
    for name in FILES:
        yield f"/export/{name}", f"scenario={preset}"


@pytest.mark.parametrize("preset", preset_names())
def test_every_page_answers_for_every_preset(preset: str) -> None:
    for path, query in questions(preset):
        found, page = answer(path, query), path.rpartition("/")[2]
        assert found.status == 200, (path, found.body[:300])
        if found.name:
            continue
        payload = json.loads(found.body)
        said = payload.get("error", {}).get("text", "")
        assert said.startswith(REFUSED.get((preset, page), "")), path
        assert bool(said) == ((preset, page) in REFUSED), (path, said)
        # An alert among the blocks is a refusal as well.
        alerts = [block for block in payload.get("blocks", ()) if block["kind"] == "alert"]
        assert not alerts or (preset, page) in ALERTS, (path, alerts)


@pytest.mark.parametrize("preset", preset_names())
def test_every_command_answers_for_every_preset(preset: str) -> None:
    runner = CliRunner()
    for name in sorted(set(COMMANDS) - OF_NO_PRESET - TOO_LONG):
        words = [filled(word, preset) for word in AFTER.get(name, [])]
        found = runner.invoke(tokentrip, [name, preset, *words])
        if (preset, name) in REFUSED:
            assert isinstance(found.exception, ConfigError), name
            assert str(found.exception).startswith(REFUSED[preset, name])
            continue
        assert (found.exception, found.exit_code) == (None, 0), (name, found.output[-300:])
        assert found.output, name
