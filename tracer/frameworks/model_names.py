"""The model that a launch names, among the models that ship: ``deepseek-ai/DeepSeek-V3-0324``.

A name counts as one that ships only where what stands around it changes no size: a release date,
``Instruct``, a format of the weights. Anything else (``R1-Distill-Llama-70B``, ``GLM-4.5-Air``) is another
model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from tracer.model.configs.presets import model_preset, model_preset_names
from tracer.model.spec import ModelSpec

MAX_NAME = 300
_SAME_SIZES = frozenset({
    "instruct", "chat", "base", "hf", "it", "exp", "preview", "original", "thinking", "terminus", "latest",
    "config", "pretrain", "finetune", "sft", "dpo", "peft", "lora", "meta", "deepseek", "ai", "qwen", "model",
    "models",
})  # fmt: skip
_FORMATS = frozenset({
    "fp8", "fp4", "nvfp4", "mxfp4", "mxfp8", "awq", "gptq", "int4", "int8", "w4a8", "w4a16", "w8a8", "bf16",
    "fp16", "quantized", "gguf", "bnb", "4bit", "8bit", "dynamic", "block",
})  # fmt: skip
_RELEASE = re.compile(r"v?\d{4}|v?\d{6}|v?\d{8}|v0\.\d+|17b|16e|128e")
_SAME_AS = {
    "deepseek-v3.1": "deepseek-v3", "deepseek3-671b": "deepseek-v3", "deepseek-v3-671b": "deepseek-v3",
    "deepseek-v2.5": "deepseek-v2", "deepseek-coder-v2": "deepseek-v2", "deepseek2-236b": "deepseek-v2",
    "deepseek-coder-v2-lite": "deepseek-v2-lite", "deepseek2-16b": "deepseek-v2-lite",
    "deepseek-v3-r1": "deepseek-r1", "llama-3-8b": "llama-3.1-8b", "llama-3-70b": "llama-3.1-70b",
    "llama-3.3-70b": "llama-3.1-70b", "llama-3-405b": "llama-3.1-405b",
}  # fmt: skip
"""Models with the same layers and sizes as one that ships, by their own config.json."""
_FP8 = frozenset({"fp8_block128", "fp8"})


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that a launch names: the one that ships with its sizes, and what the name says of the weights.

    ``spec`` is None where no model that ships has this name; ``near`` is then one that is close, or empty.
    """

    name: str
    preset: str = ""
    spec: ModelSpec | None = None
    stored: str = ""
    near: str = ""


@lru_cache(maxsize=256)
def named_model(name: str) -> NamedModel:
    """The model of a name, of a hub or of a folder.

    >>> named_model("deepseek-ai/DeepSeek-V3-0324").preset
    'deepseek-v3'
    >>> named_model("deepseek-ai/DeepSeek-R1-Distill-Llama-70B").preset, named_model("GLM-4.5-Air").near
    ('', 'glm-4.5')
    """
    near = ""
    for part in _parts(name[:MAX_NAME]):
        words = _words(part)
        for preset in _by_length():
            place = _found_at(words, preset)
            if place is None:
                continue
            rest = [*words[:place], *words[place + len(_words(preset)) :]]
            known = preset if preset in model_preset_names() else _SAME_AS[preset]
            stored = "-".join(word for word in rest if word in _FORMATS)
            if all(_same_sizes(word) for word in rest):
                spec = model_preset(known)
                return NamedModel(name, known, spec, "" if _stored_so(spec, stored) else stored)
            near = near or known
    return NamedModel(name, near=near)


def _same_sizes(word: str) -> bool:
    """Whether a word of a name changes no size of the model."""
    return word in _SAME_SIZES or word in _FORMATS or _RELEASE.fullmatch(word) is not None


def _parts(name: str) -> list[str]:
    """The last part of a path or a hub name; the hub's name inside of a cache's folders."""
    parts = [part for part in re.split(r"[/\\]", name.strip().rstrip("/\\")) if part not in ("", ".", "..")]
    cached = next((part for part in parts if part.startswith("models--")), None)
    if cached is not None:
        return [cached.rsplit("--", 1)[-1]]
    return parts[-1:]


def _words(part: str) -> list[str]:
    """The words of a name in the spelling of the models that ship: ``llama3_8b`` is llama, 3, 8b."""
    plain = part.lower().removesuffix(".json").removesuffix(".yaml").replace("_", "-").replace(":", "-")
    plain = re.sub(r"\bllama-?(\d)(\d)?(?=-|\.|$)", _llama, plain)
    plain = re.sub(r"\bdeepseek-?([vr]\d)", r"deepseek-\1", plain)
    return [word for word in re.split(r"[-\s]+", plain) if word]


def _llama(found: re.Match[str]) -> str:
    return f"llama-{found.group(1)}" + (f".{found.group(2)}" if found.group(2) else "")


@cache
def _by_length() -> tuple[str, ...]:
    """Names of models, the longest first: ``deepseek-v2-lite`` before ``deepseek-v2``."""
    names = (*model_preset_names(), *_SAME_AS)
    return tuple(sorted(names, key=lambda name: (-len(_words(name)), name)))


def _found_at(words: list[str], preset: str) -> int | None:
    wanted = _words(preset)
    for place in range(len(words) - len(wanted) + 1):
        if words[place : place + len(wanted)] == wanted:
            return place
    return None


def _stored_so(spec: ModelSpec, stored: str) -> bool:
    """Whether a model that ships is stored as the name says."""
    formats = {str(spec.expert_weights or spec.dense_weights or spec.weights or "")}
    wanted = set(stored.split("-")) - {"dynamic", "block"} if stored else set()
    return not wanted or wanted <= formats or (wanted == {"fp8"} and bool(formats & _FP8))
