"""Scenario files, TOML and JSON: keys set to anything, and texts cut and spliced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.drawn import TINY, inputs, scenarios_gone_wrong, spliced
from tests.fuzz.judge import command
from tracer.scenario.scenario import Scenario

#: Commands that read a scenario and nothing else; the first are the cheapest.
READERS = [
    ("trip",), ("trip", "--json"), ("trip",), ("rank", "0"), ("groups", "--axis", "ep"), ("fits",), ("kv",),
    ("traffic",), ("causal",), ("phases",), ("trip", "--phase", "decode"), ("trip", "--tokens", "0,1"),
    ("traffic", "--contracts"), ("orders",), ("generate", "--steps", "1"), ("advise",),
    ("lockstep", "--loads", "1,2"), ("time",),
]  # fmt: skip


def read(file: Path, words: tuple[str, ...]) -> None:
    name, *rest = words
    command(name, str(file), *rest)


def without_nulls(value: Any) -> Any:
    """TOML has no null: such keys go."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value if item is not None] if isinstance(value, list) else value


@inputs(0.75)
@given(tables=scenarios_gone_wrong(), words=st.sampled_from(READERS), toml=st.booleans())
def test_any_value_of_any_key(
    folder: Path, tables: dict[str, Any], words: tuple[str, ...], toml: bool
) -> None:
    file = folder / ("any.toml" if toml else "any.json")
    text = tomli_w.dumps(without_nulls(tables)) if toml else json.dumps(tables)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    read(file, words)


TOML = TINY.encode()
JSON = json.dumps(Scenario.from_toml(TINY).to_dict()).encode()


@inputs(0.25)
@given(data=st.data())
def test_texts_cut_and_spliced(folder: Path, data: st.DataObject) -> None:
    suffix, whole = data.draw(st.sampled_from([(".toml", TOML), (".json", JSON)]))
    file = folder / f"cut{suffix}"
    file.write_bytes(data.draw(st.one_of(spliced(whole), spliced(whole), st.binary(max_size=40))))
    read(file, ("trip",))


@pytest.mark.parametrize(
    "text", ["{" * 100_000, "[" * 100_000, '{"a":' * 50_000, "9" * 1_000_000, "[" * 900 + "]" * 900]
)
def test_deep_and_long_texts(folder: Path, text: str) -> None:
    for suffix in (".toml", ".json"):
        file = folder / f"deep{suffix}"
        file.write_text(text)
        read(file, ("trip",))
