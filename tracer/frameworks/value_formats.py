"""Formats of values that a server's flags choose: ``--dtype``, ``--kv-cache-dtype``, ``--quantization``.

Words and meanings of vLLM 0.33.0 (``config/cache.py``, ``config/model.py``) and SGLang 0.5.23
(``arg_groups/fields/model.py``); ``auto`` follows the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread
from tracer.model.dtype import Dtype
from tracer.model.weight_format import WeightFormat

if TYPE_CHECKING:
    from tracer.frameworks.settings import Settings
    from tracer.model.spec import ModelSpec

DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
_FLOATS = {
    "half": Dtype.FP16, "float16": Dtype.FP16, "fp16": Dtype.FP16, "bfloat16": Dtype.BF16,
    "bf16": Dtype.BF16, "float": Dtype.FP32, "float32": Dtype.FP32,
}  # fmt: skip
_KV = {
    **_FLOATS,
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"), Dtype.FP8),
}
_PLAIN = (None, WeightFormat.BF16, WeightFormat.FP16, WeightFormat.FP32)
_PARTS = ("attention_weights", "dense_weights", "shared_weights", "expert_weights")


def value_formats(settings: Settings) -> tuple[dict[str, str], list[Note]]:
    """Keys of a scenario's ``dtype`` table, and a remark for each format that it cannot say."""
    table: dict[str, str] = {}
    notes: list[Note] = []
    word = _text(settings, "dtype")
    if word in _FLOATS:
        found = str(_FLOATS[word])
        table = {"activations": found, "kv": found, "dispatch": found, "combine": found, "weights": found}
    word = _text(settings, "kv_cache_dtype")
    if word in _KV:
        table["kv"] = str(_KV[word])
    elif word not in ("", "auto"):
        notes.append(_not_modelled(settings.name("kv_cache_dtype"), word, "K/V in that format"))
    return table, notes


def quantized(settings: Settings, spec: ModelSpec | None) -> tuple[ModelSpec | None, list[Note]]:
    """The model with its layers in FP8 where ``--quantization fp8`` makes them so while it loads.

    A model whose checkpoint is in FP8 already stays as it is.
    """
    word = _text(settings, "quantization")
    if not word or word == "none":
        return spec, []
    name = settings.name("quantization")
    if word != "fp8" or spec is None:
        return spec, [_not_modelled(name, word, "weights in that format")]
    formats = {part: getattr(spec, part) for part in _PARTS}
    if spec.weights in _PLAIN and all(form in _PLAIN for form in formats.values()):
        parts = _PARTS if spec.experts is not None else _PARTS[:2]
        return replace(spec, **dict.fromkeys(parts, WeightFormat.FP8)), []  # type: ignore[arg-type]
    if all("fp8" in str(form) for form in formats.values() if form is not None):
        return spec, []
    return spec, [_not_modelled(name, word, "weights of several formats made FP8")]


def _text(settings: Settings, dest: str) -> str:
    """A flag's word in lower case; empty where the framework has none, or a variable holds it."""
    value = settings.get(dest) if dest in settings.flags else ""
    return value.lower() if isinstance(value, str) and not isinstance(value, Unread) else ""


def _not_modelled(name: str, word: str, lacks: str) -> Note:
    return Note(
        "not_modelled",
        f"{name} {word[:100]} is not modelled: the trip lacks {lacks}",
        "the groups hold; --strict refuses it",
    )
