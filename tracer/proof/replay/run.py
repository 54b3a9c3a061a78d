"""What every step of a replay works on: the machine, the batch, the itineraries, the checks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tracer.mesh.axes import Axis
from tracer.proof.replay.layer.rows import Rows
from tracer.proof.replay.sent import Place
from tracer.trip.hop import HopKind, Part, Transfer, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracer.proof.replay.batch import ReplayBatch
    from tracer.proof.replay.checks import Checks
    from tracer.proof.replay.faults import Fault
    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.machine import Gpu, Machine
    from tracer.proof.replay.walk import RowItineraries
    from tracer.proof.replay.watch import Watch
    from tracer.scenario.scenario import Scenario

SUMS = (HopKind.REDUCE_SCATTER, HopKind.ALL_REDUCE)
Parcel = tuple[str, int, int, int]
"""(role, source, destination, key) of a row to send."""


@dataclass(slots=True)
class Run:
    """One replay in progress.

    ``picks`` are the routers' choices, ``[layer][row]``; ``stays`` counts by layer the messages that a
    low-latency dispatch does not send, because the expert is on the dispatching GPU. ``context_bytes`` is
    what pass-KV moved of K/V that is not the step's own.
    """

    scenario: Scenario
    batch: ReplayBatch
    machine: Machine
    walk: RowItineraries
    checks: Checks
    fault: Fault | None = None
    watch: Watch | None = None
    picks: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    stays: dict[int, int] = field(default_factory=dict)
    context_bytes: int = 0

    def stage_gpus(self, stage: int) -> list[Gpu]:
        """GPUs of a stage, ascending."""
        mesh = self.scenario.mesh
        return [gpu for gpu in self.machine.gpus if mesh.stage_of(gpu.rank) == stage]

    def gpus_of_layer(self, layer: int) -> list[Gpu]:
        """GPUs that hold a layer."""
        return self.stage_gpus(self.scenario.stage_of_layer(layer))

    def check_hidden(self, layer: int, part: Part) -> None:
        """Compare the residual rows after a block with one device's; layer 0 is before the first."""
        gpus = self.stage_gpus(0) if layer == 0 else self.gpus_of_layer(layer)
        self.checks.hidden(self.batch, gpus, layer, part)

    def home_rows(self, gpu: Gpu) -> IntArray:
        """Ids of the rows whose home in its stage is this GPU."""
        first = self.scenario.mesh.moved(gpu.rank, Axis.PP, 0)
        ids: IntArray = self.batch.ids[self.batch.home == first]
        return ids

    def hop(self, layer: int, part: Part, kinds: Collection[HopKind], tensor: str) -> bool:
        """Take the rows' next stops of a kind and move a tensor as they say; whether there were any.

        Keys of the tensor's rows are token ids.
        """
        halts = self.walk.take(layer, part, kinds)
        ids = self.batch.ids
        sends = (
            parcel for halt in halts for parcel in stepped(self.walk.transfers(halt), int(ids[halt.row]))
        )
        if halts:
            self.send_all(Place(layer, part, halts[0].kind), tensor, sends, lambda keys: keys)
        return bool(halts)

    def send_all(
        self,
        place: Place,
        tensor: str,
        parcels: Iterable[tuple[int, Parcel]],
        token_of: Callable[[IntArray], IntArray],
    ) -> None:
        """Send rows step by step, rows of one role side by side."""
        steps: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
        for step, (role, src, dst, key) in parcels:
            steps.setdefault((step, role), []).append((src, dst, key))
        if self.watch is not None:
            self.watch.look(self.machine, place, tensor, token_of)
        for (step, role), rows in sorted(steps.items()):
            src, dst, keys = np.array(rows, dtype=np.int64).T
            self.machine.send(place, role, step, tensor, (src, dst, keys), token_of)
            if self.watch is not None:
                self.watch.look(self.machine, place, tensor, token_of)

    def where(self, row: int, layer: int) -> Where:
        """Where the MoE block of a row is, with the experts picked for it."""
        batch, stage = self.batch, self.scenario.stage_of_layer(layer)
        home = self.scenario.mesh.moved(int(batch.home[row]), Axis.PP, stage)
        picks = self.picks.get(layer, {}).get(row, ())
        picks = (*picks, *self.scenario.always_picked)
        return Where(layer, stage, int(batch.position[row]), home, Part.MOE, picks)

    def add_to_hidden(self, gpu: Gpu, tensor: str) -> None:
        """Residual connection: a tensor's rows join those of the GPU's hidden rows that it covers."""
        hidden = gpu.held("hidden")
        gpu.rows["hidden"] = replace(hidden, values=hidden.values + gpu.at(tensor, hidden.keys))

    def put(self, gpu: Gpu, tensor: str, keys: IntArray, values: FloatArray) -> None:
        """Store a computed tensor ``[rows, width]`` on a GPU."""
        gpu.rows[tensor] = Rows.keyed(keys, values)

    def drop(self, layer: int, *tensors: str) -> None:
        """Free tensors of a layer's GPUs."""
        self.machine.note_memory()
        for gpu in self.gpus_of_layer(layer):
            for tensor in tensors:
                gpu.rows.pop(tensor, None)


def stepped(transfers: Iterable[Transfer], key: int) -> Iterable[tuple[int, Parcel]]:
    """Transfers of one row with the step each can be made in: after its source has received."""
    reached: dict[int, int] = {}
    for transfer in transfers:
        step = reached.get(transfer.src, -1) + 1
        reached[transfer.dst] = max(step, reached.get(transfer.dst, -1))
        yield step, (transfer.role, transfer.src, transfer.dst, key)
