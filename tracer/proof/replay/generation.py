"""Replay a generation: prefill on the mesh, the K/V's way to another pool if there is one, decode steps.

The mesh samples by itself, greedily; one device generates the same request on its own, and everything the
mesh computes, keeps and sends is held against that device, the owners' claim and the trips.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError, whole_number
from tracer.proof.replay.batch import ReplayBatch, decode_batch
from tracer.proof.replay.checkpoint import draw_checkpoint
from tracer.proof.replay.checks import TOLERANCE, Checks
from tracer.proof.replay.faults import check_fault
from tracer.proof.replay.layer.forward import decode_on_mesh, prefill_on_mesh
from tracer.proof.replay.layer.kv_store import move_kv, owner_difference
from tracer.proof.replay.layer.rows import MissingRowError
from tracer.proof.replay.layer.sharded_weights import cut_into_pieces
from tracer.proof.replay.layer.shards import shard
from tracer.proof.replay.machine import Gpu, Machine
from tracer.proof.replay.one_device import run_one_device
from tracer.proof.replay.prove import check_rows, check_size
from tracer.proof.replay.report import GenerationReport
from tracer.proof.replay.run import Run
from tracer.proof.replay.sent import Ledger
from tracer.proof.replay.tiny import check_alike, shrink
from tracer.proof.replay.trips import compare_with_trips
from tracer.proof.replay.walk import RowItineraries
from tracer.scenario.token import Phase
from tracer.serving.pools import Pools

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.faults import Fault
    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.one_device import Outputs
    from tracer.scenario.scenario import Scenario

MAX_STEPS = 64


@dataclass(slots=True)
class SamplingChecks(Checks):
    """Checks that remember the word each row's logits choose, by token id."""

    chosen: dict[int, int] = field(default_factory=dict)

    def logits(self, batch: ReplayBatch, gpu: Gpu, ids: IntArray, values: FloatArray) -> None:
        """Compare, and sample greedily at home."""
        Checks.logits(self, batch, gpu, ids, values)
        self.chosen |= dict(zip(ids.tolist(), values.argmax(axis=1).tolist(), strict=True))


@dataclass(slots=True)
class Legs:
    """A generation on the mesh in progress: its legs share weights, checks and what they found so far.

    ``words`` are the tokens that each request has sampled, by replica.
    """

    checkpoint: Checkpoint
    checks: SamplingChecks
    fault: Fault | None
    span: int
    words: dict[int, list[int]]
    bytes_moved: int = 0
    bytes_logged: int = 0
    context_bytes: int = 0
    transfer_bytes: int = 0
    owners_equal: bool = True
    transfers_equal: bool = True
    differences: list[str] = field(default_factory=list)

    def take(
        self, scenario: Scenario, gpus: list[Gpu], batch: ReplayBatch, on_mesh: Callable[[Run], None]
    ) -> None:
        """Run one leg, compare its sends with the trips and its K/V with the claim, and sample."""
        machine, walk = Machine(gpus, Ledger(scenario)), RowItineraries(scenario, batch.riders())
        run = Run(scenario, batch, machine, walk, self.checks, self.fault)
        try:
            on_mesh(run)
        except MissingRowError as error:
            self.differences.append(str(error))
            self.transfers_equal = False
            return
        comparison, left = compare_with_trips(run), walk.left_over()
        self.bytes_moved += machine.ledger.bytes_moved()
        self.bytes_logged += comparison.bytes_logged
        self.context_bytes += run.context_bytes
        self.differences += [str(each) for each in comparison.mismatches[:1]]
        self.differences += [f"{place} of row {row} was never made" for row, place in left[:1]]
        self.transfers_equal &= not comparison.mismatches and not left
        for token in batch.ids[batch.to_head & (batch.ids >= 0)].tolist():
            self.words[token // self.span].append(self.checks.chosen[token])
        self.check_owners(scenario, gpus, int(batch.position[batch.ids >= 0].max()) + 1)
        for gpu in gpus:
            kept = {name: rows for name, rows in gpu.rows.items() if name.startswith("kv.")}
            gpu.rows.clear()
            gpu.rows.update(kept)

    def check_owners(self, scenario: Scenario, gpus: list[Gpu], context: int) -> None:
        """K/V that every GPU keeps of each request against the claim."""
        for replica in self.words:
            odd = owner_difference(scenario, gpus, replica, self.span, context)
            if odd is not None:
                self.owners_equal = False
                self.differences.append(odd)


def replay_generation(
    prefill: Scenario,
    steps: int = 2,
    decode: Scenario | None = None,
    *,
    tiny: bool = True,
    fault: str | None = None,
    seed: int = 0,
) -> GenerationReport:
    """Generate ``steps + 1`` tokens of every request on virtual GPUs and report what differs.

    Every prefill replica has a request; with a decode pool of its own mesh, as many as both pools have
    replicas. ``tiny`` shrinks one deployment; pools of two meshes are replayed as they are.

    Raises:
        ConfigError: for too many steps or weights, pools that do not fit, or a fault that cannot show.
    """
    if whole_number("steps", steps) > MAX_STEPS:
        raise ConfigError("steps", steps, f"is more than the {MAX_STEPS} that replay takes", "take fewer")
    first, second = _both(prefill, decode, tiny=tiny)
    checked = check_fault(first, fault)
    requests = min(first.mesh.dp, second.mesh.dp)
    length = first.token.prompt
    prompts = tuple(length if replica < requests else 0 for replica in range(first.mesh.dp))
    check_size(first)
    check_rows(first, prompts)
    checkpoint = draw_checkpoint(first.model, seed)
    batch = ReplayBatch.of(first, prompts, seed, room=steps + 1)
    device = {r: _one_device(first, checkpoint, _prompt(batch, r), steps) for r in range(requests)}
    checks = SamplingChecks(first.model, {replica: outputs for replica, (outputs, _) in device.items()})
    legs = Legs(checkpoint, checks, checked, batch.span, {replica: [] for replica in range(requests)})
    pools = None if decode is None else Pools(first, second)
    _walk_legs(legs, first, second, pools, batch, steps)
    expected = {replica: words for replica, (_, words) in device.items()}
    return _report(first, second, steps, legs, expected)


def _walk_legs(
    legs: Legs, first: Scenario, second: Scenario, pools: Pools | None, batch: ReplayBatch, steps: int
) -> None:
    gpus = _gpus(first, legs.checkpoint)
    legs.take(first, gpus, batch, prefill_on_mesh)
    length = first.token.prompt
    if pools is not None:
        targets = _gpus(second, legs.checkpoint)
        for replica in legs.words:
            legs.transfer_bytes += move_kv(pools, gpus, targets, replica, legs.span)
        gpus = targets
        legs.check_owners(second, gpus, length)
    prompts = [length if replica in legs.words else 0 for replica in range(second.mesh.dp)]
    for step in range(steps):
        if legs.differences and not legs.transfers_equal:
            return
        scenario = second.with_token(position=length + step)
        words = {replica: chosen[-1] for replica, chosen in legs.words.items()}
        legs.take(scenario, gpus, decode_batch(scenario, prompts, legs.span, words), decode_on_mesh)


def _both(prefill: Scenario, decode: Scenario | None, *, tiny: bool) -> tuple[Scenario, Scenario]:
    """The two phases' scenarios, without picks: replay's routers pick."""
    if decode is not None:
        pools = Pools.join(prefill.with_(picks=()), decode.with_(picks=()))
        return pools.prefill, _slot_said(pools.decode)
    first = prefill.with_phase(Phase.PREFILL).with_(picks=())
    first = shrink(first) if tiny else first
    check_alike(first)
    second = first.with_phase(Phase.DECODE)
    if prefill.decodes:
        second = second.with_(plan=replace(second.plan, dispatch=prefill.plan.dispatch))
        second = second.with_(token=replace(second.token, slot=prefill.slot))
    return first, _slot_said(second)


def _slot_said(scenario: Scenario) -> Scenario:
    token = replace(scenario.token, slot=scenario.slot, gpu=None, position=scenario.position)
    return scenario.with_(token=replace(token, replica=scenario.replica))


def _gpus(scenario: Scenario, checkpoint: Checkpoint) -> list[Gpu]:
    gpus = [Gpu(rank, shard(scenario, checkpoint, rank)) for rank in range(scenario.mesh.world_size)]
    return cut_into_pieces(scenario, gpus)


def _prompt(batch: ReplayBatch, replica: int) -> IntArray:
    """Vocabulary entries of a replica's prompt, ``[tokens]``."""
    ids = batch.id_of(replica, 0) + np.arange(batch.prompts[replica])
    return batch.words[batch.rows_of(ids)]


def _one_device(
    scenario: Scenario, checkpoint: Checkpoint, words: IntArray, steps: int
) -> tuple[Outputs, list[int]]:
    """One device's greedy generation, each token computed anew from the start: last pass, and tokens."""
    model, length = scenario.model, len(words)
    outputs = run_one_device(model, checkpoint, words, {})
    for _ in range(steps):
        words = np.append(words, outputs.logits[-1].argmax())
        outputs = run_one_device(model, checkpoint, words, {})
    return outputs, [*words[length:].tolist(), int(outputs.logits[-1].argmax())]


def _report(
    first: Scenario, second: Scenario, steps: int, legs: Legs, expected: dict[int, list[int]]
) -> GenerationReport:
    gap = legs.checks.first
    return GenerationReport(
        prefill=first,
        decode=second,
        steps=steps,
        fault=None if legs.fault is None else str(legs.fault),
        max_abs_error=legs.checks.max_abs_error,
        equal=legs.checks.max_abs_error <= TOLERANCE,
        tokens=legs.words,
        tokens_equal=legs.words == expected,
        transfers_equal=legs.transfers_equal,
        owners_equal=legs.owners_equal,
        bytes_moved=legs.bytes_moved,
        bytes_logged=legs.bytes_logged,
        context_bytes=legs.context_bytes,
        transfer_bytes=legs.transfer_bytes,
        first_difference=str(gap) if gap is not None else next(iter(legs.differences), None),
    )
