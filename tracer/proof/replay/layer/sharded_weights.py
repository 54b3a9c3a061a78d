"""Sharded weights on arrays: each GPU keeps a piece of every unit, and puts it together before it runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.memory.shard_units import shard_group
from tracer.proof.replay.sent import Place, Pulled
from tracer.scenario.sharding import shard_sizes
from tracer.trip.hop import HopKind, Part, Role

if TYPE_CHECKING:
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Run
    from tracer.proof.replay.walk import Halt
    from tracer.scenario.scenario import Scenario

_ENDS = {"embed": Part.EMBEDDING, "head": Part.HEAD, "norm": Part.HEAD}


def cut_into_pieces(scenario: Scenario, gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs, each left with one piece of each of its units instead of the weights.

    A router's bias is no part of a unit, as biases are not counted: it stays whole.
    """
    if shard_sizes(scenario.plan, scenario.mesh).whole:
        return gpus
    for gpu in gpus:
        units: dict[str, Checkpoint] = {}
        for name, value in gpu.weights.items():
            if not name.endswith("router_bias"):
                units.setdefault(_unit_of(name), {})[name] = value
        for unit, held in units.items():
            group = shard_group(scenario, gpu.rank, experts=unit.endswith(Part.MOE))
            flat = np.concatenate([held[name].ravel() for name in sorted(held)])
            size = -(-len(flat) // len(group))
            padded = np.pad(flat, (0, size * len(group) - len(flat)))
            place = group.index(gpu.rank)
            gpu.unit_shapes[unit] = {name: value.shape for name, value in held.items()}
            gpu.pieces[unit] = padded[place * size : (place + 1) * size].copy()
            for name in held:
                del gpu.weights[name]
    return gpus


def _unit_of(name: str) -> str:
    """The unit of a weight: an end, or a layer's experts or all else of it."""
    if name in _ENDS:
        return f"0.{_ENDS[name]}"
    layer, rest = name.split(".", 1)
    return f"{layer}.{Part.MOE if rest.startswith('expert') else Part.ATTENTION}"


def gather_unit(run: Run, layer: int, part: Part) -> list[Halt]:
    """Every GPU of the stage puts a unit together from the pieces of its group; the rows' stops for it."""
    unit = f"{0 if part in (Part.EMBEDDING, Part.HEAD) else layer}.{part}"
    gpus = run.stage_gpus(0) if layer == 0 else run.gpus_of_layer(layer)
    for gpu in gpus:
        shapes = gpu.unit_shapes.get(unit, {})
        if not shapes:
            continue
        group = shard_group(run.scenario, gpu.rank, experts=part is Part.MOE)
        flat, start = np.concatenate([run.machine.gpus[rank].pieces[unit] for rank in group]), 0
        for name in sorted(shapes):
            size = int(np.prod(shapes[name]))
            gpu.weights[name] = flat[start : start + size].reshape(shapes[name])
            start += size
    return run.walk.take(layer, part, (HopKind.WEIGHT_GATHER,))


def note_gathers(run: Run, layer: int, part: Part, halts: list[Halt]) -> None:
    """Tell the ledger, with the tokens that each served, and drop the gathered weights."""
    unit = f"{0 if part in (Part.EMBEDDING, Part.HEAD) else layer}.{part}"
    served: dict[tuple[int, int], list[int]] = {}
    for halt in halts:
        where = run.where(halt.row, layer) if part is Part.MOE else halt.where
        for transfer in halt.build(run.scenario, where).transfers:
            served.setdefault((transfer.src, transfer.dst), []).append(int(run.batch.ids[halt.row]))
    place = Place(layer, part, HopKind.WEIGHT_GATHER)
    for (owner, runner), tokens in served.items():
        size = len(run.machine.gpus[owner].pieces[unit])
        run.machine.ledger.pulled.append(Pulled(place, Role.WEIGHTS, owner, runner, tuple(tokens), size))
    for gpu in run.machine.gpus:
        for name in gpu.unit_shapes.get(unit, {}):
            gpu.weights.pop(name, None)
