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
PLAIN = (None, WeightFormat.BF16, WeightFormat.FP16, WeightFormat.FP32)
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
    if spec.weights in PLAIN and all(form in PLAIN for form in formats.values()):
        parts = _PARTS if spec.experts is not None else _PARTS[:2]
        return replace(spec, **dict.fromkeys(parts, WeightFormat.FP8)), []  # type: ignore[arg-type]
    if all("fp8" in str(form) for form in formats.values() if form is not None):
        return spec, []
    return spec, [_not_modelled(name, word, "weights of several formats made FP8")]


_OF_NAME: dict[str, WeightFormat | None] = {
    "fp8": WeightFormat.FP8,
    "nvfp4": WeightFormat.NVFP4, "fp4": WeightFormat.NVFP4,
    "awq": WeightFormat.INT4_ZERO_G128, "gptq": WeightFormat.INT4_ZERO_G128,
    "int4": WeightFormat.INT4_G128, "w4a16": WeightFormat.INT4_G128, "4bit": WeightFormat.INT4_G128,
    "bnb": WeightFormat.NF4,
    "int8": WeightFormat.INT8_CHANNEL, "8bit": WeightFormat.INT8_CHANNEL,
    "bf16": WeightFormat.BF16, "fp16": WeightFormat.FP16,
}  # fmt: skip
"""What a word of a checkpoint's name says of its layers' weights: the format that its makers mostly use."""
_SAYS_NO_MORE = {
    "awq": ("int4", "4bit", "w4a16"), "gptq": ("int4", "4bit", "w4a16"), "bnb": ("4bit",),
    "fp8": ("dynamic", "block", "quantized"), "int4": ("quantized", "w4a16"), "int8": ("quantized", "8bit"),
}  # fmt: skip
"""Words beside a format that agree with it."""


def stored_as_named(spec: ModelSpec, words: str) -> tuple[ModelSpec, WeightFormat] | None:
    """The model with its layers in the format that a checkpoint's name states; None where it cannot be told.

    ``words`` are those of the name that speak of formats, joined by ``-``: ``fp8``, ``gptq-int4``.
    """
    names = words.split("-")
    first = next((name for name in _OF_NAME if name in names and name in _SAYS_NO_MORE), names[0])
    word = _OF_NAME.get(first)
    if word is None or not set(names) <= {first, *_SAYS_NO_MORE.get(first, ())}:
        return None
    if word is WeightFormat.FP8 and "block" in names:
        word = WeightFormat.FP8_BLOCK128
    plain = word in PLAIN
    own = [getattr(spec, part) for part in ("weights", *_PARTS)]
    if spec.stored or not (plain or all(form in PLAIN for form in own)):
        return None
    parts = _PARTS if spec.experts is not None else _PARTS[:2]
    return replace(spec, **dict.fromkeys(parts, word)), word  # type: ignore[arg-type]


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
