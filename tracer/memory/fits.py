"""Does it fit? The weights of every kind of GPU against its memory, and how many tokens of K/V are left.

Ranks of a stage differ only in the slices that do not divide evenly, and the first part of every cut is
the largest: so a stage's first rank holds the most and its last rank the least, whatever the size of the
mesh. Stages with equal layers are one row.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, right, runs_of, text_table
from tracer.errors import ConfigError
from tracer.memory.kv_owners import tokens_in
from tracer.memory.residency import NOT_COUNTED, Residency, need_hbm_bytes, one_run, residency_of
from tracer.memory.share import all_stages
from tracer.scenario.step import mesh_line

if TYPE_CHECKING:
    from tracer.memory.share import StageLayers
    from tracer.scenario.scenario import Scenario


SCHEMA = 1


@dataclass(frozen=True, slots=True)
class StageFit:
    """Stages that hold alike: their numbers, the GPU that holds the most and the one that holds the least."""

    stages: tuple[int, ...]
    ranks: int
    fullest: Residency
    emptiest: Residency


@dataclass(frozen=True, slots=True)
class Fits:
    """What fits on a deployment's GPUs; ``print`` shows the table.

    ``usable_bytes`` is the part of ``hbm_bytes`` that weights, staging buffers and K/V may take;
    ``tokens_a_replica`` is the K/V a replica keeps, that of its fullest GPU times cp (and dcp).
    """

    scenario: Scenario
    hbm_bytes: int
    usable_bytes: int
    stages: tuple[StageFit, ...]

    @property
    def fullest(self) -> Residency:
        """The GPU with the most bytes of weights and staging buffers; the first of equals."""
        return max((row.fullest for row in self.stages), key=_occupied)

    @property
    def ok(self) -> bool:
        """Whether the weights fit, and K/V of one token beside them."""
        return self.tokens_a_replica > 0

    @property
    def tokens_a_replica(self) -> int:
        """Tokens whose K/V a replica keeps: every stage its layers', every CP (and DCP) rank its share.

        CP ranks that share heads keep the same tokens.
        """
        cp, plan = self.scenario.mesh.cp, self.scenario.plan
        shards = cp // plan.head_parts(cp) * plan.dcp
        if _occupied(self.fullest) > self.usable_bytes:
            return 0
        keepers = (row.fullest for row in self.stages if row.fullest.kv.keeps_any)
        return shards * min(map(self.tokens_on, keepers))

    @property
    def tokens_in_all(self) -> int:
        """The same over all replicas."""
        return self.scenario.mesh.dp * self.tokens_a_replica

    def tokens_on(self, held: Residency) -> int:
        """Tokens whose K/V one GPU keeps in its usable memory; 0 where no layer there keeps any."""
        return tokens_in(max(0, self.usable_bytes - _occupied(held)), held.kv)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/fits.schema.json`` describes them."""
        return {
            "schema": SCHEMA,
            "fits": self.ok,
            "hardware": self.scenario.cluster.hardware,
            "world_size": self.scenario.mesh.world_size,
            "hbm_bytes": self.hbm_bytes,
            "usable_bytes": self.usable_bytes,
            "fullest": self._row(self.fullest),
            "stages": [
                {
                    "stages": [[run.start, run.stop - 1] for run in runs_of(row.stages)],
                    "ranks": row.ranks,
                    "layers": one_run(row.fullest.share.layers.runs),
                    "layer_runs": [[run.start, run.stop - 1] for run in row.fullest.share.layers.runs],
                    "fullest": self._row(row.fullest),
                    "emptiest": self._row(row.emptiest),
                }
                for row in self.stages
            ],
            "kv_tokens_a_replica": self.tokens_a_replica,
            "kv_tokens_in_all": self.tokens_in_all,
        }

    def _row(self, held: Residency) -> dict[str, Any]:
        return {
            "rank": held.rank,
            "weight_bytes": held.weight_bytes,
            "staging_bytes": held.staging_bytes,
            "free_bytes": self.usable_bytes - _occupied(held),
            "kv_bytes_per_token": held.kv_bytes_per_token,
            "kv_tokens": self.tokens_on(held),
            "bounded_bytes_per_request": held.kv.bounded_bytes,
        }

    def __str__(self) -> str:

        return fits_text(self)


def check_fits(scenario: Scenario, usable: float = 1.0) -> Fits:
    """What fits on a scenario's GPUs; ``usable`` is the part of the memory left to weights and K/V.

    Raises:
        ConfigError: when the memory of the hardware, or a size of the model, is not known.
    """
    if not 0 < usable <= 1:
        raise ConfigError("usable", usable, "must be a part of the memory, above 0 and at most 1", "try 0.9")
    hbm = need_hbm_bytes(scenario)
    return Fits(scenario, hbm, int(hbm * usable), _stage_rows(scenario))


def _stage_rows(scenario: Scenario) -> tuple[StageFit, ...]:
    """A row for each kind of stage, in the order of their first stages."""
    kinds: dict[Hashable, list[int]] = {}
    examples: dict[Hashable, StageLayers] = {}
    for layers in all_stages(scenario):
        kinds.setdefault(layers.content, []).append(layers.stage)
        examples.setdefault(layers.content, layers)
    mesh, rows = scenario.mesh, []
    for content, stages in kinds.items():
        layers = examples[content]
        first, last = (mesh.rank_in_stage(layers.stage, place) for place in (0, mesh.stage_size - 1))
        fullest, emptiest = residency_of(scenario, first, layers), residency_of(scenario, last, layers)
        rows.append(StageFit(tuple(stages), len(stages) * mesh.stage_size, fullest, emptiest))
    return tuple(rows)


def _occupied(held: Residency) -> int:
    """Bytes that are taken before any K/V."""
    return held.weight_bytes + held.staging_bytes


_SHOWN_RUNS = 4
_COLUMNS = (
    right("stages", gap=0),
    right("layers each"),
    right("GPUs"),
    right("weights"),
    right("staging"),
    right("K/V a token"),
    right("tokens of K/V"),
)


def fits_text(fits: Fits) -> str:
    """The table, the fullest GPU, what a replica keeps, and what is not counted."""
    scenario, memory = fits.scenario, format_bytes(fits.hbm_bytes)
    part = "" if fits.usable_bytes == fits.hbm_bytes else f", {format_bytes(fits.usable_bytes)} of it usable"
    hardware = scenario.cluster.hardware or "GPUs stated by hand"
    lines = [
        f"{scenario.name or 'scenario'} on {hardware}: {memory} a GPU{part}",
        mesh_line(scenario),
        "",
        *text_table(_COLUMNS, [_cells(fits, row) for row in fits.stages]),
        "",
        f"fullest: GPU {fits.fullest.rank}: {_share(fits, fits.fullest)}",
        _verdict(fits),
        *_bounded(fits),
        f"not counted: {NOT_COUNTED}" + _left_out(fits),
    ]
    return "\n".join(lines)


def _cells(fits: Fits, row: StageFit) -> tuple[str, ...]:
    held, least = row.fullest, row.emptiest
    weights = format_bytes(held.weight_bytes)
    if least.weight_bytes != held.weight_bytes:
        weights = f"{format_bytes(least.weight_bytes)} to {weights}"
    tokens = f"{fits.tokens_on(held):,}" if held.kv.keeps_any else "no K/V"
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


def _share(fits: Fits, held: Residency) -> str:
    taken = held.weight_bytes + held.staging_bytes
    biggest = sorted(held.weight_bytes_by_part.items(), key=lambda item: -item[1])[:3]
    parts = ", ".join(f"{part} {format_bytes(size)}" for part, size in biggest)
    return f"{format_bytes(taken)}, {100 * taken / fits.usable_bytes:.0f} % of its memory ({parts})"


def _verdict(fits: Fits) -> str:
    if not fits.ok:
        short = fits.fullest.weight_bytes + fits.fullest.staging_bytes - fits.usable_bytes
        return f"DOES NOT FIT: {format_bytes(max(short, 0))} short, before any K/V"
    dp = fits.scenario.mesh.dp
    prompts = fits.tokens_a_replica // fits.scenario.token.prompt
    return (
        f"fits: a replica keeps K/V of {fits.tokens_a_replica:,} tokens, {prompts:,} prompts of "
        f"{fits.scenario.token.prompt:,}; all {dp:,} replicas {fits.tokens_in_all:,}"
    )


def _bounded(fits: Fits) -> list[str]:
    """What a request keeps whatever its length, where the model has windows or states."""
    size = fits.fullest.kv.bounded_bytes
    if not size:
        return []
    prompt = fits.scenario.token.prompt
    return [
        f"K/V a token is of the layers that keep every token; windows and states take {format_bytes(size)} "
        f"more per request of {prompt:,} tokens and GPU"
    ]


def _left_out(fits: Fits) -> str:
    left_out = fits.scenario.model.left_out
    return f"; {'; '.join(left_out)}" if left_out else ""
