"""Recipes of NeMo and Megatron-Bridge: a name that stands for a model, as a flag or in the script's name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from tracer.data import FOLDER
from tracer.frameworks.launch.tools.values import RENAMED
from tracer.frameworks.model_names import named_model
from tracer.frameworks.notes import Note

_SHORT = {
    "-tp": "tensor_model_parallel_size", "-pp": "pipeline_model_parallel_size",
    "-cp": "context_parallel_size",
    "-vp": "virtual_pipeline_model_parallel_size", "-ep": "expert_model_parallel_size",
    "-etp": "expert_tensor_parallel_size",
}  # fmt: skip
"""Short flags of Megatron-Bridge's ``run_recipe.py``, and the long ones, which are overrides of the model."""
_FLAGS = ("--recipe", "--factory", "--hf-path", "--hf-model", "--hf-model-id", "--model", "--model-name")


def recipe_of(script: str, words: Sequence[str]) -> str:
    """The recipe or model that a launch names; a script's name counts where a model that ships is in it.

    >>> recipe_of("pretrain.py", ["--recipe", "llama3_8b"]), recipe_of("pretrain_llama3_8b.py", [])
    ('llama3_8b', 'pretrain_llama3_8b')
    """
    given = _named(words)
    if given and ("--model" in words or any(word.startswith("--model=") for word in words)):
        mode = next((after for word, after in pairwise(words) if word == "--mode"), "")
        library = f"{given}_{mode}_config"
        return library if library in _recipes()["recipes"] else given
    if given:
        return given
    base = script.rsplit("/", 1)[-1].removesuffix(".py")
    while base:
        if named_model(base).spec is not None:
            return base
        base = base.partition("_")[2]
    return ""


def script_recipe(script: str) -> str:
    """The recipe of Megatron-Bridge that one of its scripts is named after; empty for any other script.

    >>> script_recipe("pretrain_llama3_8b.py"), script_recipe("pretrain_gpt.py")
    ('llama3_8b_pretrain_config', '')
    """
    found = re.fullmatch(r"(pretrain|finetune)_(\w{1,80})\.py", script.rsplit("/", 1)[-1])
    name = f"{found.group(2)}_{found.group(1)}_config" if found is not None else ""
    return name if name in _recipes()["recipes"] else ""


def _named(words: Sequence[str]) -> str:
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") in _FLAGS:
            return value if equals else "".join(words[place + 1 : place + 2])
    return ""


def bridge_flags(words: Sequence[str]) -> dict[str, object]:
    """The flags of Megatron-Bridge's ``run_recipe.py`` as the overrides that it makes of them.

    >>> bridge_flags(["-tp", "2", "--context_parallel_size=4"])
    {'model.tensor_model_parallel_size': '2', 'model.context_parallel_size': '4'}
    """
    found: dict[str, object] = {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        size = _SHORT.get(name) or name.removeprefix("--").replace("-", "_")
        if name.startswith("-") and size in _SHORT.values():
            found[f"model.{size}"] = value if equals else "".join(words[place + 1 : place + 2])
    return found


def recipe_settings(recipe: str, words: Sequence[str] = ()) -> Mapping[str, object]:
    """What a recipe sets that shapes the mesh, as overrides name it; empty if not known.

    Recipes of Megatron-Bridge end in ``_config``; those of NeMo 2 take arguments, and ``words`` say what is
    done with them: only pre-training recipes are known.

    >>> recipe_settings("llama3_8b_pretrain_config")["model.context_parallel_size"]
    2
    >>> recipe_settings("llama31_405b(num_nodes=64)", ["pretrain"])["trainer.num_nodes"]
    64
    """
    name, arguments = _called(recipe)
    if name.endswith("_config"):
        found: Mapping[str, object] = _recipes()["recipes"].get(name, {})
        return {
            f"model.{RENAMED.get(key, key)}": _plain(value) for key, value in found.items() if key != "model"
        }
    known = _nemo_recipes()["recipes"].get(name)
    if known is None or list(words[:1]) != ["pretrain"]:
        return {}
    sizes = dict(known["sizes"])
    for key, value in arguments.items():
        size = known["arguments"].get(key, key)
        if size in sizes or size != key:
            sizes[size] = value
    counts = {"num_nodes": "trainer.num_nodes", "num_gpus_per_node": "trainer.devices"}
    return {
        counts.get(key, f"trainer.strategy.{RENAMED.get(key, key)}"): value for key, value in sizes.items()
    }


def recipe_model(recipe: str) -> str:
    """The name of the model that a recipe trains; empty where it does not say."""
    name, _ = _called(recipe)
    if name in _nemo_recipes()["recipes"]:
        return name
    return str(_recipes()["recipes"].get(name, {}).get("model", ""))


def recipe_note(recipe: str, words: Sequence[str] = ()) -> Note:
    """What is said of a recipe whose settings are known."""
    sizes = ", ".join(
        f"{key.removeprefix('model.').removeprefix('trainer.').removeprefix('strategy.')} {value}"
        for key, value in recipe_settings(recipe, words).items()
        if isinstance(value, int) and not isinstance(value, bool) and value > 1
    )
    name, _ = _called(recipe)
    tool, table = ("Megatron-Bridge", _recipes()) if name.endswith("_config") else ("NeMo", _nemo_recipes())
    message = f"recipe {name} of {tool} {table['version']} sets {sizes or 'every size to 1'}"
    return Note("recipe_read", message, "overrides on the line go before it")


def _called(recipe: str) -> tuple[str, dict[str, object]]:
    """``name(a=1, b=2)`` as the name and its arguments that are numbers or switches."""
    found = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", recipe.strip()[:1000], re.DOTALL)
    if found is None:
        return recipe, {}
    arguments: dict[str, object] = {}
    for part in (found.group(2) or "").split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if equals and value.isdecimal():
            arguments[key] = int(value)
        elif equals and value in ("True", "False"):
            arguments[key] = value == "True"
        elif equals and value == "None":
            arguments[key] = None
    return found.group(1), arguments


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


@cache
def _nemo_recipes() -> dict[str, Any]:
    """The table, as ``scripts/read_nemo_recipes.py`` wrote it."""
    table: dict[str, Any] = json.loads((FOLDER / "nemo_recipes.json").read_text(encoding="utf-8"))
    return table
