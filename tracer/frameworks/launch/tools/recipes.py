"""Recipes of NeMo and Megatron-Bridge: a name that stands for a model, as a flag or in the script's name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tracer.data import FOLDER
from tracer.frameworks.launch.tools.values import RENAMED
from tracer.frameworks.model_names import named_model
from tracer.frameworks.notes import Note

_FLAGS = ("--recipe", "--factory", "--hf-path", "--hf-model", "--hf-model-id", "--model", "--model-name")


def recipe_of(script: str, words: Sequence[str]) -> str:
    """The recipe or model that a launch names; a script's name counts where a model that ships is in it.

    >>> recipe_of("pretrain.py", ["--recipe", "llama3_8b"]), recipe_of("pretrain_llama3_8b.py", [])
    ('llama3_8b', 'pretrain_llama3_8b')
    """
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") in _FLAGS:
            return value if equals else "".join(words[place + 1 : place + 2])
    base = script.rsplit("/", 1)[-1].removesuffix(".py")
    while base:
        if named_model(base).spec is not None:
            return base
        base = base.partition("_")[2]
    return ""


def recipe_settings(name: str) -> Mapping[str, object]:
    """What a recipe of Megatron-Bridge sets that shapes the mesh, as overrides name it; empty if not known.

    >>> recipe_settings("llama3_8b_pretrain_config")["model.context_parallel_size"]
    2
    """
    if not name.endswith("_config"):
        return {}
    found: Mapping[str, object] = _recipes()["recipes"].get(name, {})
    return {f"model.{RENAMED.get(key, key)}": _plain(value) for key, value in found.items() if key != "model"}


def recipe_model(name: str) -> str:
    """The hub's name of the model that a recipe of Megatron-Bridge trains; empty where it does not say."""
    return str(_recipes()["recipes"].get(name, {}).get("model", ""))


def recipe_note(name: str) -> Note:
    """What is said of a recipe whose settings are known."""
    sizes = ", ".join(
        f"{key.removeprefix('model.')} {value}"
        for key, value in recipe_settings(name).items()
        if isinstance(value, int) and value is not True and value is not False and value > 1
    )
    message = f"recipe {name} of Megatron-Bridge {_recipes()['version']} sets {sizes or 'every size to 1'}"
    return Note("recipe_read", message, "overrides on the line go before it")


_LETTERS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}


def _plain(value: object) -> object:
    """A layout that is given as lists, as the string that Megatron's flag takes; anything else as it is."""
    if not isinstance(value, list):
        return value
    return "|".join("".join(_LETTERS.get(part, part) for part in stage) for stage in value)


@cache
def _recipes() -> dict[str, Any]:
    """The table, as ``scripts/read_recipes.py`` wrote it."""
    table: dict[str, Any] = json.loads((FOLDER / "recipes.json").read_text(encoding="utf-8"))
    return table
