"""Hugging Face config.json files: keys set to anything, dropped, and texts cut and spliced."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from model_configs import PATTERNS, Table, model_table, shipped_config

from tests.fuzz.drawn import inputs, spliced, values
from tests.fuzz.judge import command

SHIPPED = [shipped_config(name) for name in PATTERNS.values()]
MESHES = [
    (), ("--tp", "2"), ("--dp", "8", "--ep", "8"), ("--tp", "2", "--dp", "4", "--ep", "8"), ("--pp", "4"),
    ("--ep", "3"), ("--tp", "1000000"), ("--dp", "1000000", "--ep", "8"),
]  # fmt: skip


@st.composite
def configs_gone_wrong(draw: st.DrawFn) -> Table:
    """A config that ships with one to three keys set to anything or dropped."""
    config = json.loads(json.dumps(draw(st.sampled_from(SHIPPED))))
    for _ in range(draw(st.integers(1, 3))):
        table: dict[str, Any] = config if draw(st.booleans()) else model_table(config)
        key = draw(st.sampled_from([*table, "model_type", "text_config", "quantization_config", "x"]))
        if draw(st.integers(0, 4)) == 0:
            table.pop(key, None)
        else:
            table[key] = copy.deepcopy(draw(values))
        if not isinstance(config.get("text_config", config), dict):
            break
    return config


def read(folder: Path, text: bytes, mesh: tuple[str, ...]) -> None:
    file = folder / "config.json"
    file.write_bytes(text)
    command("trip", str(file), *mesh)


@inputs(0.75)
@given(config=configs_gone_wrong(), mesh=st.sampled_from(MESHES))
def test_any_value_of_any_key(folder: Path, config: Table, mesh: tuple[str, ...]) -> None:
    read(folder, json.dumps(config).encode(), mesh)


@inputs(0.25)
@given(data=st.data())
def test_texts_cut_and_spliced(folder: Path, data: st.DataObject) -> None:
    whole = json.dumps(data.draw(st.sampled_from(SHIPPED))).encode()
    read(folder, data.draw(spliced(whole)), ())
