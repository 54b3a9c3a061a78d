"""The mesh's rows against one device's, layer by layer: how far apart, and where first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracer.proof.replay.one_device import run_one_device
from tracer.trip.hop import Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracer.model.spec import ModelSpec
    from tracer.proof.replay.batch import ReplayBatch
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.layer.rows import Gates
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.one_device import Outputs
    from tracer.scenario.scenario import Scenario

TOLERANCE = 1e-9
WORDS = {
    Part.EMBEDDING: "embedding",
    Part.ATTENTION: "attention",
    Part.FFN: "feed-forward block",
    Part.MOE: "MoE block",
    Part.HEAD: "logits",
}


@dataclass(frozen=True, slots=True)
class Gap:
    """The first rows that differ from one device's: after which block, on which GPU, by how much.

    ``what`` is the part as a person says it; ``layer`` and ``part`` order it among a trip's hops.
    """

    layer: int
    part: Part
    what: str
    replica: int
    position: int
    gpu: int
    error: float

    def __str__(self) -> str:
        layer = f"layer {self.layer} " if self.part not in (Part.EMBEDDING, Part.HEAD) else ""
        token = f"replica {self.replica}, position {self.position}"
        return f"{layer}{self.what}: {token} on GPU {self.gpu} is off by {self.error:.2g} from one device"


@dataclass(slots=True)
class Checks:
    """Runs every prompt on one device, then compares what the mesh computes; padding is not compared."""

    model: ModelSpec
    outputs: dict[int, Outputs]
    max_abs_error: float = 0.0
    first: Gap | None = None
    tokens: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, scenario: Scenario, batch: ReplayBatch, checkpoint: Checkpoint) -> Checks:
        """One device's outputs of every prompt, by replica."""
        model, outputs = scenario.model, {}
        for replica, length in enumerate(batch.prompts):
            if length:
                ids = batch.id_of(replica, 0) + np.arange(length)
                given = {}
                if replica == scenario.replica:
                    given = {(layer, scenario.position): picks for layer, picks in scenario.picks}
                outputs[replica] = run_one_device(model, checkpoint, batch.words[batch.rows_of(ids)], given)
        return cls(model, outputs)

    def hidden(self, batch: ReplayBatch, gpus: Iterable[Gpu], layer: int, part: Part) -> None:
        """Residual rows of the GPUs that hold them, after a block."""
        for gpu in gpus:
            rows = gpu.held("hidden")
            self._compare(batch, gpu, layer, part, WORDS[part], rows.keys, rows.values)

    def gates(self, batch: ReplayBatch, gpu: Gpu, layer: int, gates: Gates) -> None:
        """Router weights as ``[rows, experts]``, 0 where an expert was not picked."""
        experts = self.model.need("experts", "compare router weights")
        spread = np.zeros((len(gates.keys), experts))
        np.put_along_axis(spread, gates.experts, gates.weights, axis=1)
        self._compare(batch, gpu, layer, Part.MOE, "router weights", gates.keys, spread)

    def whole_numbers(self, found: IntArray, expected: IntArray) -> None:
        """Counts that ranks exchanged, against those of their whole group."""
        self.max_abs_error = max(self.max_abs_error, float(np.abs(found - expected).max(initial=0)))

    def logits(self, batch: ReplayBatch, gpu: Gpu, ids: IntArray, values: FloatArray) -> None:
        """Logits at home, ``[rows, vocab]``."""
        layer = self.model.layers
        self._compare(batch, gpu, layer, Part.HEAD, WORDS[Part.HEAD], ids, values)

    def _compare(
        self,
        batch: ReplayBatch,
        gpu: Gpu,
        layer: int,
        part: Part,
        what: str,
        ids: IntArray,
        values: FloatArray,
    ) -> None:
        real = ids >= 0
        rows = batch.rows_of(ids[real])
        replicas, positions = batch.replica[rows], batch.position[rows]
        for replica in np.unique(replicas).tolist():
            here = replicas == replica
            expected = self._expected(replica, layer, part, what)[positions[here]]
            errors = np.abs(values[real][here] - expected).max(axis=1)
            errors = np.where(np.isnan(errors), np.inf, errors)
            worst = float(errors.max())
            self.max_abs_error = max(self.max_abs_error, worst)
            self.tokens.update(ids[real][here].tolist())
            if worst > TOLERANCE and self.first is None:
                bad = int(np.flatnonzero(errors > TOLERANCE)[0])
                position = int(positions[here][bad])
                self.first = Gap(layer, part, what, replica, position, gpu.rank, float(errors[bad]))

    def _expected(self, replica: int, layer: int, part: Part, what: str) -> FloatArray:
        outputs = self.outputs[replica]
        if what == "router weights":
            return outputs.gates[layer]
        if part is Part.EMBEDDING:
            return outputs.embedded
        if part is Part.HEAD:
            return outputs.logits
        return (outputs.after_attention if part is Part.ATTENTION else outputs.after_ffn)[layer]
