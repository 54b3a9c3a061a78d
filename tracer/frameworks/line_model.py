"""The model of a launch: named on its line, given by size flags, or asked for. Never a stand-in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.frameworks.found_model import FoundModel
from tracer.frameworks.model_names import MAX_NAME, named_model
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread
from tracer.frameworks.value_formats import PLAIN, quantized, stored_as_named, value_formats
from tracer.model.spec import FORMAT_FIELDS
from tracer.model.weight_format import WeightFormat

if TYPE_CHECKING:
    from tracer.frameworks.launch.result import Process
    from tracer.frameworks.parsing import Parsed
    from tracer.frameworks.settings import Framework, Settings
    from tracer.model.spec import ModelSpec

_SIZES = {
    "num_layers": "layers", "hidden_size": "hidden", "num_attention_heads": "heads", "num_experts": "experts",
    "ffn_hidden_size": "dense_hidden", "moe_ffn_hidden_size": "expert_hidden", "moe_router_topk": "top_k",
}  # fmt: skip
_TRAINED = ("verl", "nemo-rl", "slime")
"""Tools whose engines serve the weights that are being trained, whatever the checkpoint stores."""
_SUBCOMMANDS = frozenset(
    {"serve", "throughput", "latency", "sft", "pt", "run-batch", "build", "launch", "preload"}
)


def found_model(
    process: Process, parsed: Parsed, settings: Settings, known: Framework, asked: ModelSpec | None
) -> FoundModel:
    """The model of one process; ``asked`` is the caller's own, which wins.

    Raises:
        ConfigError: for size flags that make no model.
    """
    table, notes = value_formats(settings)
    if asked is not None:
        spec, more = quantized(settings, asked)
        return FoundModel(spec, dtype=table, notes=(*notes, *more))
    sized = known.sizes_model(settings) if known.sizes_model is not None else FoundModel()
    table |= sized.dtype
    name = model_name(process, parsed, settings, known)
    found = sized if sized.spec is not None or not name else _unchanged(_named(name), settings)
    if process.adapter in _TRAINED:
        found = _trained(found)
    spec, more = quantized(settings, found.spec)
    return replace(found, spec=spec, dtype=table, notes=(*found.notes, *notes, *more))


def model_name(process: Process, parsed: Parsed, settings: Settings, known: Framework) -> str:
    """The name of the model that a launch gives; empty where it gives none."""
    if process.model:
        return process.model
    given = settings.given.get("model") if "model" in settings.flags else None
    flavor = settings.given.get("model_flavor") if "model_flavor" in settings.flags else None
    if isinstance(given, str) and isinstance(flavor, str):
        return f"{given}-{flavor}"
    if isinstance(given, str):
        return given
    if known.names_model:
        bare = [word for word in parsed.bare if word not in _SUBCOMMANDS]
        return bare[0] if bare else ""
    return ""


def _named(name: str) -> FoundModel:
    shown = name[:MAX_NAME]
    if isinstance(name, Unread):
        sets = " ".join(f"--set {each}=..." for each in name.missing[:2])
        message = f"the model is {shown}, which nothing in these lines sets"
        return FoundModel(named=shown, notes=(_unknown(message, f"{sets or 'write its name'}, or "),))
    found = named_model(name)
    if found.spec is None:
        message = f"model {shown} is not one that ships: its layers, experts and bytes are not known"
        if found.near:
            message += f" ({found.near} ships, and the name says another model)"
        return FoundModel(named=shown, notes=(_unknown(message, ""),))
    message = f"model {shown}: read as {found.preset}, which ships"
    notes = [Note("model_of_line", message, "add --model config.json for another")]
    if not found.stored:
        return FoundModel(found.spec, shown, found.preset, notes=tuple(notes))
    as_named = stored_as_named(found.spec, found.stored)
    if as_named is None:
        lacks = f"weights in {found.stored}: those of {found.preset} are taken"
        message = f"{shown} is not modelled in full: the trip lacks {lacks}"
        notes.append(Note("not_modelled", message, "add --model config.json"))
        return FoundModel(found.spec, shown, found.preset, notes=tuple(notes))
    spec, word = as_named
    message = f"the name says {found.stored}: the matrices of all layers are taken in {word}"
    notes.append(Note("format_of_name", message, "add --model config.json for what is left out, and scales"))
    return FoundModel(spec, shown, found.preset, notes=tuple(notes))


def _trained(found: FoundModel) -> FoundModel:
    """A model in training: its weights in BF16, where its checkpoint on the hub stores them narrower."""
    spec = found.spec
    if spec is None:
        return found
    narrow = [part for part in FORMAT_FIELDS if getattr(spec, part) not in PLAIN]
    if not narrow and not spec.stored:
        return found
    spec = replace(spec, stored=(), **dict.fromkeys(narrow, WeightFormat.BF16))  # type: ignore[arg-type]
    message = f"{found.preset or found.named} is stored in narrower formats: here it is trained, in BF16"
    return replace(
        found, spec=spec, notes=(*found.notes, Note("trained_in_bf16", message, "add --model for others"))
    )


def _unchanged(found: FoundModel, settings: Settings) -> FoundModel:
    """A named model whose sizes no flag changes; else none, with what changes it."""
    if found.spec is None:
        return found
    for dest, size in _SIZES.items():
        given = settings.given.get(dest) if dest in settings.flags else None
        if given is not None and given != getattr(found.spec, size):
            message = (
                f"{settings.name(dest)} {given} changes {found.preset}, which has {getattr(found.spec, size)}"
            )
            return FoundModel(named=found.named, notes=(_unknown(f"{message}: no model is made", ""),))
    return found


def _unknown(message: str, fix: str) -> Note:
    return Note("model_unknown", message, f"{fix}add --model config.json, or the name of one that ships")
