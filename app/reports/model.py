"""What a model is made of: its layers by kind, parameters, bytes, K/V and states, arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query.address import scenario_of
from app.reports.blocks import Block, choice_control, counts, heading, note, picture, table
from layouts.pictures.model_svg import model_svg
from tracer.display import format_bytes, format_count
from tracer.errors import word_of
from tracer.memory.anatomy import CONTEXTS, Anatomy, anatomy
from tracer.memory.kv_bytes import sequence_bytes
from tracer.model.configs.presets import model_preset_names, read_model_preset
from tracer.model.dtype import Dtype
from tracer.model.layer_runs import written_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

_KV = (Dtype.BF16, Dtype.FP8)
_THIS = "the model of this mesh"


def model_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks; ``of`` names a model that ships, ``kv`` the dtype of the K/V cache.

    Raises:
        ConfigError: for a model that does not ship, or a size that is needed and not stated.
    """
    found = _anatomy(query)
    name = found.spec.name or _THIS
    names = [("", _THIS), *((each, each) for each in model_preset_names())]
    return {
        "title": f"What is {name} made of?",
        "controls": [
            choice_control("of", "Model", query.get("of", ""), names),
            choice_control("kv", "K/V cache", str(found.kv), [(str(each), str(each)) for each in _KV]),
        ],
        "blocks": [*_headline(found), *_details(found)],
    }


def _anatomy(query: Mapping[str, str]) -> Anatomy:
    kv = word_of("kv", query.get("kv") or str(Dtype.BF16), Dtype)
    if query.get("of"):
        read = read_model_preset(query["of"])
        return anatomy(read.spec, read.warnings, kv)
    return anatomy(scenario_of(dict(query)).model, (), kv)


def _headline(found: Anatomy) -> list[Block]:
    count = found.count
    sums = [
        ("parameters", format_count(count.total)),
        ("used by one token", format_count(count.active)),
        ("weights in store", format_bytes(count.weight_bytes)),
        (f"K/V of one token, {found.kv}", format_bytes(found.kv_bytes_per_token)),
        ("states per sequence", format_bytes(found.state_bytes_per_sequence)),
    ]
    name = f"Layers of {found.spec.name or _THIS} by kind, and parameters by part"
    return [counts("What it comes to", sums), picture(name, model_svg(found, "page"))]


def _details(found: Anatomy) -> list[Block]:
    spec, count, admits = found.spec, found.count, found.admits()
    kinds = [(kind.title, f"{len(layers)}", written_runs(layers)) for kind, layers in spec.kinds()]
    parts = [
        (str(each.part), f"{each.total:,}", f"{each.active:,}", format_bytes(each.weight_bytes))
        for each in count.parts
    ]
    parts.append(("all", f"{count.total:,}", f"{count.active:,}", format_bytes(count.weight_bytes)))
    lengths = [
        (
            f"{tokens:,}",
            format_bytes(sequence_bytes(spec, tokens, found.kv)),
            format_bytes(found.state_bytes_per_sequence),
            f"{found.flops_per_token(tokens) / 1e9:,.1f}",
        )
        for tokens in CONTEXTS
    ]
    cuts = [(_CUTS[axis], ", ".join(map(str, sizes))) for axis, sizes in admits.items()]
    formats = [(word, format_bytes(size)) for word, size in found.bytes_by_format().items()]
    return [
        heading("Layers by kind"),
        table("Layers by kind", ("kind", "number", "layers"), kinds, prose=True),
        heading("Parameters by part"),
        table("Parameters by part", ("part", "parameters", "used by one token", "bytes"), parts),
        table("Bytes by format", ("stored as", "bytes"), formats),
        heading("What a sequence keeps, and what its next token costs"),
        table("By length", ("tokens", "K/V", "states", "GFLOP per token"), lengths),
        heading("Sizes that divide its shape"),
        table("Sizes that divide", ("cut", "sizes"), cuts, prose=True),
        *([note(f"Source: {spec.source}.")] if spec.source else []),
        *(note(text) for text in found.warnings),
    ]


_CUTS = {
    "tp": "TP: heads and inner widths",
    "ep": "EP: experts",
    "cp_by_heads": "CP by heads (Ulysses); a ring takes any size",
}
