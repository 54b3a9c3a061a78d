"""What fits, as a table a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracer.fits import runs_of
from tracer.residency import NOT_COUNTED
from tracer.trip_text import format_bytes, mesh_line

if TYPE_CHECKING:
    from tracer.fits import Fits, StageFit
    from tracer.residency import Residency

_SHOWN_RUNS = 4
_HEADER = ("stages", "layers each", "GPUs", "weights", "staging", "K/V a token", "tokens of K/V")


def fits_text(fits: Fits) -> str:
    """The table, the fullest GPU, what a replica keeps, and what is not counted."""
    scenario, memory = fits.scenario, format_bytes(fits.hbm_bytes)
    part = "" if fits.usable_bytes == fits.hbm_bytes else f", {format_bytes(fits.usable_bytes)} of it usable"
    lines = [
        f"{scenario.name or 'scenario'} on {scenario.cluster.hardware}: {memory} a GPU{part}",
        mesh_line(scenario),
        "",
        *_table([_HEADER, *(_cells(fits, row) for row in fits.stages)]),
        "",
        f"fullest: GPU {fits.fullest.rank}: {_share(fits, fits.fullest)}",
        _verdict(fits),
        f"not counted: {NOT_COUNTED}" + _left_out(fits),
    ]
    return "\n".join(lines)


def _cells(fits: Fits, row: StageFit) -> tuple[str, ...]:
    held, least = row.fullest, row.emptiest
    weights = format_bytes(held.weight_bytes)
    if least.weight_bytes != held.weight_bytes:
        weights = f"{format_bytes(least.weight_bytes)} to {weights}"
    tokens = f"{fits.tokens_on(held):,}"
    staging, per_token = format_bytes(held.staging_bytes), format_bytes(held.kv_bytes_per_token)
    return (
        _numbers(row.stages),
        f"{held.share.layers.count}",
        f"{row.ranks:,}",
        weights,
        staging,
        per_token,
        tokens,
    )


def _numbers(stages: Sequence[int]) -> str:
    """Stage numbers, a run as its ends."""
    runs = runs_of(stages)
    shown = [
        f"{run.start}" if len(run) == 1 else f"{run.start} to {run.stop - 1}" for run in runs[:_SHOWN_RUNS]
    ]
    return ", ".join(shown) + (f" … ({len(stages):,} stages)" if len(runs) > _SHOWN_RUNS else "")


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _share(fits: Fits, held: Residency) -> str:
    taken = held.weight_bytes + held.staging_bytes
    biggest = sorted(held.weight_bytes_by_part.items(), key=lambda item: -item[1])[:3]
    parts = ", ".join(f"{part} {format_bytes(size)}" for part, size in biggest)
    return f"{format_bytes(taken)}, {100 * taken / fits.usable_bytes:.0f} % of its memory ({parts})"


def _verdict(fits: Fits) -> str:
    if not fits.ok:
        short = fits.fullest.weight_bytes + fits.fullest.staging_bytes - fits.usable_bytes
        return f"DOES NOT FIT: {format_bytes(max(short, 0))} short, before any K/V"
    dp = fits.scenario.mesh.size_of("dp")
    prompts = fits.tokens_a_replica // fits.scenario.token.prompt
    return (
        f"fits: a replica keeps K/V of {fits.tokens_a_replica:,} tokens, {prompts:,} prompts of "
        f"{fits.scenario.token.prompt:,}; all {dp:,} replicas {fits.tokens_in_all:,}"
    )


def _left_out(fits: Fits) -> str:
    left_out = fits.scenario.need_model().left_out
    return f"; {'; '.join(left_out)}" if left_out else ""
