"""Command lines: every option of every command with any value, and frameworks' launch flags."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from frameworks.drawn_flags import words
from hypothesis import given
from hypothesis import strategies as st

from app.cli import COMMANDS, tokentrip
from tests.fuzz.drawn import PATHS, TINY, inputs, texts
from tests.fuzz.judge import command
from tracer.frameworks import FRAMEWORKS

#: `app` serves until it is stopped; a scheduler that is away is waited for; replay and EPLB prove or pack
#: on arrays, and a census counts as many tokens as it is told to.
LEFT_OUT = {"app", "replay", "eplb", "site"}
COSTLY = ("census", "time", "ledger", "presets", "generate", "advise", "orders", "export")
CHEAP = sorted(set(COMMANDS) - LEFT_OUT - set(COSTLY))
NOT_DRAWN = {"scheduler", "threads"}
TAKES_ITS_TIME = {("census", "tokens"), ("time", "published")}
SETTABLE = [f"{table}.{key}" for table, key in PATHS if table]
SCENARIOS = ["own.toml"] * 20 + [
    "six-cuts",
    "six-cuts-decode",
    "mixtral-8x7b-ep8",
    "hybrid-tp4-ep8",
    "gone.toml",
    "own.toml",
]


@pytest.fixture(scope="module", autouse=True)
def own(folder: Path) -> None:
    (folder / "own.toml").write_text(TINY)


def options_of(name: str) -> list[click.Option]:
    found = tokentrip.get_command(click.Context(tokentrip), name)
    assert found is not None
    options = [each for each in found.params if isinstance(each, click.Option)]
    return [
        each for each in options if each.name not in NOT_DRAWN and (name, each.name) not in TAKES_ITS_TIME
    ]


OPTIONS = {name: options_of(name) for name in COMMANDS if name not in LEFT_OUT}


@st.composite
def lines(draw: st.DrawFn, names: tuple[str, ...]) -> list[str]:
    """A command, a scenario and up to four of its options."""
    name = draw(st.sampled_from(names))
    line = [name]
    if name in ("compare", "diff"):
        line += [draw(st.sampled_from(SCENARIOS)), draw(st.sampled_from(SCENARIOS))]
    elif name not in ("presets", "ledger", "completion") and draw(st.integers(0, 15)):
        line.append(draw(st.sampled_from(SCENARIOS)))
    if name == "rank":
        line.append(draw(texts))
    for _ in range(draw(st.integers(0, 4))):
        option = draw(st.sampled_from(OPTIONS[name])) if OPTIONS[name] else click.Option(["--nonsense"])
        line.append(draw(st.sampled_from([*option.opts, *option.secondary_opts])))
        if not option.is_flag:
            value = draw(texts)
            line.append(f"{draw(st.sampled_from(SETTABLE))}={value}" if option.name == "overrides" else value)
    return line + ([draw(texts)] if draw(st.integers(0, 15)) == 0 else [])


@inputs(0.6)
@given(line=lines(tuple(CHEAP)))
def test_any_option(folder: Path, line: list[str]) -> None:
    command(*line)


@inputs(0.35)
@given(
    data=st.data(), name=st.sampled_from(FRAMEWORKS), gpus=st.sampled_from(["", "1", "8", "16", "x", "-1"])
)
def test_any_launch_flag(folder: Path, data: st.DataObject, name: str, gpus: str) -> None:
    line = data.draw(words(name))
    command("from", name, *(["--gpus", gpus] if gpus else []), "--", *line)


@inputs(0.05)
@given(line=lines(COSTLY))
def test_costly_commands(folder: Path, line: list[str]) -> None:
    command(*line)
