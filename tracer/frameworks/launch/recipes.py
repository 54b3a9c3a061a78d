"""Recipes of NeMo and Megatron-Bridge: a name that stands for a model, as a flag or in the script's name."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.frameworks.model_names import named_model

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
