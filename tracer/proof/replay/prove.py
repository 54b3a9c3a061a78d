"""Replay a scenario: run it on virtual GPUs, and hold it against one device and against its trips."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.proof.replay.batch import ReplayBatch, landing_of, prompt_lengths
from tracer.proof.replay.checkpoint import checkpoint_shapes, draw_checkpoint
from tracer.proof.replay.checks import TOLERANCE, Checks
from tracer.proof.replay.closed_forms import closed_forms
from tracer.proof.replay.faults import check_fault
from tracer.proof.replay.layer.forward import prefill_on_mesh
from tracer.proof.replay.layer.rows import MissingRowError
from tracer.proof.replay.layer.sharded_weights import cut_into_pieces
from tracer.proof.replay.layer.shards import shard
from tracer.proof.replay.machine import Gpu, Machine
from tracer.proof.replay.report import ReplayReport
from tracer.proof.replay.run import Run
from tracer.proof.replay.sent import Ledger
from tracer.proof.replay.tiny import check_alike, shrink
from tracer.proof.replay.trips import ReplayComparison, compare_with_trips, place_order
from tracer.proof.replay.walk import RowItineraries
from tracer.scenario.token import Phase
from tracer.trip.hop import WEIGHT_KINDS

if TYPE_CHECKING:
    from tracer.proof.replay.watch import Watch
    from tracer.scenario.scenario import Scenario

MAX_WEIGHTS = 1 << 25
MAX_GPUS = 1 << 11
MAX_ROW_LAYERS = 1 << 16


def replay(
    scenario: Scenario,
    *,
    tiny: bool = True,
    fault: str | None = None,
    seed: int = 0,
    prompts: Sequence[int] | None = None,
) -> ReplayReport:
    """Run a prefill of every replica on virtual GPUs and report what differs from the trips' claims.

    ``tiny`` shrinks widths first; ``fault`` switches a named mistake on; ``seed`` draws weights and
    prompts; ``prompts`` gives each replica's length (0: idle, it runs a dummy batch).

    Raises:
        ConfigError: when the scenario is not a prefill or does not fit in memory, or the fault cannot
            show in it.
    """
    started = perf_counter()
    run = start(scenario, tiny=tiny, fault=fault, seed=seed, prompts=prompts)
    broken = execute(run)
    comparison = compare_with_trips(run)
    ledger, left = run.machine.ledger, run.walk.left_over()
    error = float("inf") if broken else run.checks.max_abs_error
    return ReplayReport(
        scenario=run.scenario,
        fault=None if run.fault is None else str(run.fault),
        max_abs_error=error,
        equal=error <= TOLERANCE,
        tokens_checked=len(run.checks.tokens),
        transfers_equal=not comparison.mismatches and not left and broken is None,
        bytes_moved=ledger.bytes_moved(),
        bytes_logged=comparison.bytes_logged,
        padding_bytes=ledger.bytes_moved(real=False),
        pulled_bytes=sum(ledger.bytes_of(pull) for pull in ledger.pulled if pull.place.kind in WEIGHT_KINDS),
        closed_forms=closed_forms(run) if run.fault is None else (),
        memory_bytes=memory_bytes(run),
        seconds=perf_counter() - started,
        first_difference=first_difference(run, comparison, broken),
    )


def start(
    scenario: Scenario,
    *,
    tiny: bool = True,
    fault: str | None = None,
    seed: int = 0,
    prompts: Sequence[int] | None = None,
    watch: Watch | None = None,
) -> Run:
    """A run ready to be executed: weights drawn and cut, prompts drawn and landed, one device's outputs.

    Raises:
        ConfigError: as :func:`replay`.
    """
    if scenario.phase is not Phase.PREFILL:
        raise ConfigError("phase", scenario.phase, "cannot be replayed", "try phase = 'prefill'")
    scenario = shrink(scenario) if tiny else scenario
    check_alike(scenario)
    checked = check_fault(scenario, fault)
    check_size(scenario)
    check_rows(scenario, prompt_lengths(scenario, prompts))
    batch = ReplayBatch.of(scenario, prompts, seed)
    checkpoint = draw_checkpoint(scenario.model, seed)
    gpus = [Gpu(rank, shard(scenario, checkpoint, rank)) for rank in range(scenario.mesh.world_size)]
    machine, walk = (
        Machine(cut_into_pieces(scenario, gpus), Ledger(scenario)),
        RowItineraries(scenario, batch.riders()),
    )
    checks = Checks.of(scenario, batch, checkpoint)
    return Run(scenario, batch, machine, walk, checks, checked, watch)


def execute(run: Run) -> str | None:
    """Run the prefill; the reason in words when a GPU lacked a row that it needed, else None."""
    try:
        prefill_on_mesh(run)
    except MissingRowError as error:
        return str(error)
    return None


def memory_bytes(run: Run) -> int:
    """Most bytes of all live arrays at once, and the weights, once where GPUs hold views of one array."""
    weights = [value for gpu in run.machine.gpus for value in gpu.weights.values()]
    owners = [value if value.base is None else value.base for value in weights]
    return run.machine.peak_live_bytes + sum({id(each): each.nbytes for each in owners}.values())


def first_difference(run: Run, comparison: ReplayComparison, broken: str | None = None) -> str | None:
    """The earliest of what differs, in the order a token meets it; None when nothing does.

    Of a wrong transfer and a wrong number in one block, the transfer comes first: it may be the cause.
    ``broken`` says where the run stopped, for want of a row.
    """
    found: list[tuple[tuple[int, ...], str]] = []
    if run.checks.first is not None:
        gap = run.checks.first
        found.append(((*place_order(gap.layer, gap.part), 1, 0, 0), str(gap)))
    for each in comparison.mismatches:
        order = place_order(each.place.layer, each.place.part)
        found.append(((*order, 0, each.replica, each.position), str(each)))
    for row, place in run.walk.left_over()[:1]:
        told = f"layer {place.layer} {place.kind} ({place.part}) of row {row} was never made"
        found.append(((*place_order(place.layer, place.part), 2, row, 0), told))
    both = [min(found)[1]] if found else []
    return "; ".join([*both, *([f"stopped in {broken}"] if broken else [])]) or None


def count_weights(scenario: Scenario) -> int:
    """Weights that a replay of the whole model would hold."""
    return sum(prod(shape) for shape in checkpoint_shapes(scenario.model).values())


def check_size(scenario: Scenario) -> None:
    """Refuse a model whose weights would not fit as float64, and a mesh of too many virtual GPUs.

    Raises:
        ConfigError: above ``MAX_WEIGHTS`` weights, or ``MAX_GPUS`` GPUs.
    """
    world = scenario.mesh.world_size
    if world > MAX_GPUS:
        rule = f"is more than the {MAX_GPUS:,} GPUs that a replay runs"
        raise ConfigError("world_size", world, rule, "take a smaller mesh, such as fewer replicas")
    total = count_weights(scenario)
    if total > MAX_WEIGHTS:
        raise ConfigError(
            "model",
            scenario.model.name,
            f"has {total:,} weights, {total * 8 / 2**30:,.0f} GiB as float64; replay holds {MAX_WEIGHTS:,}",
            "replay it tiny (--tiny)",
        )


def check_rows(scenario: Scenario, lengths: tuple[int, ...]) -> None:
    """Refuse a batch, or a mesh, that would take too long.

    Raises:
        ConfigError: above ``MAX_ROW_LAYERS`` rows (or GPUs) times layers.
    """
    rows, layers = (
        sum(landing_of(scenario, length).padded for length in lengths),
        scenario.model.layers,
    )
    if max(rows, scenario.mesh.world_size) * layers > MAX_ROW_LAYERS:
        raise ConfigError(
            "token.prompt",
            max(lengths),
            f"makes {rows:,} rows on {scenario.mesh.world_size:,} GPUs in {layers} layers; replay takes "
            f"{MAX_ROW_LAYERS:,} rows times layers",
            "shorten the prompt, take a smaller mesh, or replay it tiny (--tiny)",
        )
