"""Which layers Megatron gives each pipeline stage, and each virtual stage (model chunk) of it.

Sources: ``megatron/training/arguments.py`` (how many chunks), ``transformer/transformer_config.py`` (what is
refused), ``transformer/transformer_block.py`` (get_num_layers_to_build) and
``transformer/pipeline_parallel_layer_layout.py`` (the layout string) of megatron-core 0.16.1.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING

from tracer.frameworks.notes import Note, Refusal
from tracer.scenario.plan import ChunkOrder

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request, Settings
    from tracer.scenario.plan import Plan

PP = "pipeline_model_parallel_size"
LAYOUT = "pipeline_model_parallel_layout"
FIRST, LAST = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
PER_CHUNK = "num_layers_per_virtual_pipeline_stage"
CHUNKS = "virtual_pipeline_model_parallel_size"
MAX_LAYOUT = 1 << 16
_LETTERS = {"E": "embedding", "L": "loss", "t": "decoder layer", "m": "MTP layer"}


def stage_plan(request: Request, pp: int) -> tuple[dict[str, object], list[Note]]:
    """Keys ``chunks``, ``chunk_layers`` and ``stage_layers`` of a scenario's mesh; none for an even split.

    Raises:
        Refusal: where Megatron raises.
    """
    settings = request.settings
    layers = request.model.layers if request.model is not None else settings.maybe("num_layers")
    if settings.has(LAYOUT):
        return _of_layout(settings, pp, layers)
    if pp == 1:
        return {}, []
    ends = [dest for dest in (FIRST, LAST) if settings.has(dest)]
    counted = [dest for dest in (EMBEDDING, LOSS) if settings.on(dest)]
    if ends and counted:
        raise Refusal(
            ends[0],
            "num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage cannot be set at the "
            "same time with account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split",
            otherwise=f"drop {settings.name(ends[0])} or {settings.name(counted[0])}",
        )
    if settings.has(PER_CHUNK) and settings.has(CHUNKS):
        raise Refusal(
            PER_CHUNK,
            "--num-layers-per-virtual-pipeline-stage and --num-virtual-stages-per-pipeline-rank cannot be "
            "set at the same time",
            otherwise=f"drop {settings.name(PER_CHUNK)}",
        )
    if layers is None:
        return _without_layers(settings)
    sizes = _stage_sizes(settings, pp, layers)
    return _in_chunks(settings, pp, sizes), []


def written_stages(plan: Plan) -> list[str]:
    """Flags for a plan's stages: the number of chunks, or a layout where they are listed."""
    listed = plan.chunk_layers or plan.stage_layers
    if listed is not None:
        return ["--pipeline-model-parallel-layout", f"E{'|'.join('t' * size for size in listed)}L"]
    if plan.chunks > 1 and plan.chunk_order is ChunkOrder.INTERLEAVED:
        return ["--num-virtual-stages-per-pipeline-rank", str(plan.chunks)]
    return []


def _without_layers(settings: Settings) -> tuple[dict[str, object], list[Note]]:
    """The number of chunks where it is given; how long they are needs the number of layers."""
    chunks = settings.maybe(CHUNKS) or 1
    if settings.has(PER_CHUNK):
        note = Note(
            "virtual_stages_unknown",
            f"{settings.name(PER_CHUNK)} {settings.get(PER_CHUNK)} makes virtual stages, and how many "
            "depends on the number of layers, which nothing says: the mesh is shown without them",
            "add --num-layers, or --model config.json",
        )
        return {}, [note]
    return ({"chunks": chunks} if chunks > 1 else {}), []


def _stage_sizes(settings: Settings, pp: int, layers: int) -> list[int]:
    """Layers of each stage; embedding and loss count as one each where they are accounted for."""
    first, last = settings.maybe(FIRST), settings.maybe(LAST)
    ends = [size for size in (first, last) if size is not None]
    counted = settings.on(EMBEDDING) + settings.on(LOSS)
    middle, stages = layers + counted - sum(ends), pp - len(ends)
    if middle < stages or (middle % stages if stages else middle):
        said = f"{middle} besides the given ends" if ends else f"{middle}"
        said += " with the embedding and the loss" * (counted == 2)
        raise Refusal(
            PP,
            f"number of layers ({said}) should be divisible by the pipeline stages left ({stages})",
            otherwise="give --decoder-first-pipeline-num-layers or --decoder-last-pipeline-num-layers",
        )
    inner = [middle // stages] * stages if stages else []
    return [*([first] if first else []), *inner, *([last] if last else [])]


def _in_chunks(settings: Settings, pp: int, sizes: list[int]) -> dict[str, object]:
    """Stages cut into equal chunks, and what embedding and loss take off the first and the last of them."""
    chunks = _chunks(settings, sizes)
    for size in sizes:
        if size % chunks:
            raise Refusal(
                CHUNKS if settings.has(CHUNKS) else PER_CHUNK,
                f"number of layers on each pipeline rank ({size}) must be divisible by virtual pipeline "
                f"parallel degree {chunks}",
            )
    listed = [size // chunks for _ in range(chunks) for size in sizes]
    listed[0] -= settings.on(EMBEDDING)
    listed[-1] -= settings.on(LOSS)
    if chunks == 1 and min(listed):
        return {"stage_layers": listed} if len(set(listed)) > 1 else {}
    plan: dict[str, object] = {"chunks": chunks} if chunks > 1 else {}
    return plan | ({"chunk_layers": listed} if len(set(listed)) > 1 else {})


def _chunks(settings: Settings, sizes: list[int]) -> int:
    """Chunks a stage: given, or layers of a stage over the layers of a chunk."""
    each = settings.maybe(PER_CHUNK)
    if each is None:
        return settings.maybe(CHUNKS) or 1
    if settings.has(FIRST) or settings.has(LAST):
        raise Refusal(
            PER_CHUNK,
            "please use --num-virtual-stages-per-pipeline-rank to specify virtual pipeline parallel degree "
            "when enable uneven pipeline parallelism",
            otherwise=f"write {settings.name(CHUNKS)} in its place",
        )
    if sizes[0] % each:
        raise Refusal(
            PER_CHUNK,
            f"number of layers per pipeline stage ({sizes[0]}) must be divisible number of layers per "
            f"virtual pipeline stage ({each})",
        )
    return sizes[0] // each


def _of_layout(settings: Settings, pp: int, layers: int | None) -> tuple[dict[str, object], list[Note]]:
    """Decoder layers of every part of the layout string; MTP layers are no layers of the trip."""
    others = [dest for dest in (FIRST, LAST) if settings.has(dest)]
    others += [dest for dest in (EMBEDDING, LOSS) if settings.on(dest)]
    if others:
        raise Refusal(
            LAYOUT,
            "pipeline_model_parallel_layout cannot be set with other pipeline layout arguments",
            otherwise=f"drop {settings.name(others[0])}",
        )
    parts = parse_layout(settings.text(LAYOUT))
    _check_layout(settings, parts, pp, layers)
    chunks, listed = len(parts) // pp, [part.count("t") for part in parts]
    notes = []
    mtp = sum(part.count("m") for part in parts)
    if mtp:
        notes.append(
            Note(
                "mtp_not_laid_out",
                f"the layout places {mtp} MTP layer{'s' * (mtp > 1)}: they are no layers of a trip, and are "
                "not counted on the stage that holds them",
                "read weights and memory of that stage as too low",
            )
        )
    if pp == 1 and chunks == 1:
        return {}, notes
    if chunks == 1 and min(listed):
        return ({"stage_layers": listed} if len(set(listed)) > 1 else {}), notes
    plan: dict[str, object] = {"chunks": chunks} if chunks > 1 else {}
    return plan | {"chunk_layers": listed}, notes


def parse_layout(text: str) -> list[str]:
    """The parts of a layout string, one a virtual stage: ``(x)*n`` and ``x*n`` repeat, ``|`` ends a part.

    >>> parse_layout("Ett|(tt|)*2,m|L")
    ['Ett', 'tt', 'tt', 'm', 'L']

    Raises:
        Refusal: for another letter, or a string that unrolls to more than ``MAX_LAYOUT`` letters.
    """
    text = text.strip("\"'").replace(",", "")
    for pattern in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        repeats = list(re.finditer(pattern, text))
        lengths = [min(int(each[2][:9]), MAX_LAYOUT) * len(each[1]) for each in repeats]
        if list(accumulate(lengths, initial=len(text)))[-1] > MAX_LAYOUT:
            raise Refusal(LAYOUT, f"it stands for more than {MAX_LAYOUT:,} letters", otherwise="write fewer")
        text = re.sub(pattern, lambda each: each[1] * int(each[2]), text)
    for letter in text:
        if letter not in _LETTERS and letter != "|":
            raise Refusal(
                LAYOUT,
                f"Invalid layer character: {letter}, known layer characters: {list(_LETTERS)}",
                otherwise="write E, t, m, L, | and repeats, such as 'Et|(tt|)*2L'",
            )
    return text.split("|")


def _check_layout(settings: Settings, parts: list[str], pp: int, layers: int | None) -> None:
    """What PipelineParallelLayerLayout asserts."""
    flat, virtual = "".join(parts), settings.maybe(CHUNKS)
    rule = ""
    if len(parts) % pp:
        rule = (
            "pipeline_model_parallel_layout must be divisible by pipeline_model_parallel_size "
            f"({len(parts)}, {pp})"
        )
    elif virtual is not None and virtual != len(parts) // pp:
        rule = (
            "virtual_pipeline_model_parallel_size conflicts with pipeline_model_parallel_layout "
            f"({virtual}, {len(parts) // pp})"
        )
    elif not flat.startswith("E") or flat.count("E") != 1:
        rule = "the first layer must be the embedding (E), exactly once"
    elif not flat.endswith("L") or flat.count("L") != 1:
        rule = "the last layer must be the loss (L), exactly once"
    elif layers is not None and flat.count("t") != layers:
        rule = f"Number of decoder layers {flat.count('t')} must match num_layers {layers}"
    elif "m" in flat and "t" in flat[flat.index("m") :]:
        rule = "decoder layers must be placed before MTP layers"
    if rule:
        raise Refusal(LAYOUT, rule, otherwise="mend the layout")
