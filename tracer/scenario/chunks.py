"""Which layers are on which pipeline stage: one run of layers per stage, or several (virtual stages).

The layers are cut into chunks in the order a token meets them; a schedule deals the chunks out to stages.
Megatron-LM and torchtitan call a chunk a virtual stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracer.errors import ConfigError
from tracer.scenario.plan import ChunkOrder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracer.scenario.plan import Plan


class LayerChunk(NamedTuple):
    """Consecutive layers, numbered from 1, and the stage that holds them; there may be none of them.

    A chunk without layers has the embedding, the LM head or a draft layer alone.
    """

    stage: int
    layers: range


def layer_chunks(layers: int, stages: int, plan: Plan) -> tuple[LayerChunk, ...]:
    """The chunks in the order a token meets them.

    Raises:
        ConfigError: when a chunk would be empty, or given sizes do not add up.
    """
    sizes = _sizes(layers, stages, plan)
    chunks, first = [], 1
    for number, size in enumerate(sizes):
        stage = stage_of_chunk(number, stages, plan.chunk_order)
        chunks.append(LayerChunk(stage, range(first, first + size)))
        first += size
    return tuple(chunks)


def stage_of_chunk(chunk: int, stages: int, order: ChunkOrder) -> int:
    """The stage of a chunk: round and round, or there and back.

    >>> [stage_of_chunk(chunk, 4, ChunkOrder.INTERLEAVED) for chunk in range(8)]
    [0, 1, 2, 3, 0, 1, 2, 3]
    >>> [stage_of_chunk(chunk, 4, ChunkOrder.V_SHAPE) for chunk in range(8)]
    [0, 1, 2, 3, 3, 2, 1, 0]
    """
    lap, place = divmod(chunk, stages)
    return stages - 1 - place if order is ChunkOrder.V_SHAPE and lap % 2 else place


def runs_by_stage(chunks: Iterable[LayerChunk], stages: int) -> tuple[tuple[range, ...], ...]:
    """Each stage's runs of layers, ascending; runs that touch are one, and empty ones are left out.

    >>> runs_by_stage([LayerChunk(0, range(1, 3)), LayerChunk(1, range(3, 3)), LayerChunk(0, range(3, 5))], 2)
    ((range(1, 5),), ())
    """
    found: list[list[range]] = [[] for _ in range(stages)]
    for chunk in chunks:
        runs = found[chunk.stage]
        if runs and runs[-1].stop == chunk.layers.start:
            runs[-1] = range(runs[-1].start, chunk.layers.stop)
        elif chunk.layers:
            runs.append(chunk.layers)
    return tuple(tuple(runs) for runs in found)


def split_layers(
    layers: int, parts: int, given: tuple[int, ...] | None, field: str = "mesh.stage_layers"
) -> tuple[int, ...]:
    """Layers of each stage or chunk: as given, else evenly, the first ones taking one more each.

    >>> split_layers(61, 4, None)
    (16, 15, 15, 15)

    Raises:
        ConfigError: when one would be empty, or given sizes do not add up; ``field`` is the list's key.
    """
    of_stages = field == "mesh.stage_layers"
    word = "stages" if of_stages else "chunks (pp times chunks)"
    if given is not None:
        if len(given) != parts or sum(given) != layers:
            raise ConfigError(
                field,
                list(given),
                f"must list {parts} {word} that add up to {layers} layers",
                "mend the list, or leave it out for an even split",
            )
        return given
    if parts > layers:
        raise ConfigError(
            "mesh.pp" if of_stages else "mesh.chunks",
            parts,
            f"is more {word} than the model's {layers} layers",
            f"try {layers} or fewer {'stages' if of_stages else 'chunks in all'}",
        )
    share, extra = divmod(layers, parts)
    return (share + 1,) * extra + (share,) * (parts - extra)


def _sizes(layers: int, stages: int, plan: Plan) -> tuple[int, ...]:
    if plan.chunks == 1 and plan.chunk_layers is None:
        return split_layers(layers, stages, plan.stage_layers)
    return split_layers(layers, stages * plan.chunks, plan.chunk_layers, "mesh.chunk_layers")
