"""Counts laid on a scenario's GPUs: loads and imbalance, before and after EPLB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tracer.batch.eplb import Replication, check_slots, rebalance
from tracer.batch.eplb_scenario import nvlink_domains_of_group, own_groups, with_slots
from tracer.display import Shown, Writers, left, text_table
from tracer.scenario.placement import doubled_text
from tracer.scenario.step import mesh_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.counts.expert_counts import ExpertCounts
    from tracer.scenario.scenario import Scenario

SCHEMA = 1
WITHOUT_PICKS = "counts name no token's GPU: copies, bytes and savings need picks"


@dataclass(frozen=True, eq=False)
class LoadCensus(Shown):
    """Loads of recorded counts. ``gpu_load``: ``[layers, ep]`` float64, a count shared by its replicas.

    With several dispatch groups (edp > 1) each takes an equal share, and the numbers are those of all.
    """

    WRITERS: ClassVar[Writers] = Writers(
        text="tracer.batch.counts.load_census:load_text",
        values="tracer.batch.counts.load_census:load_report",
        table="tracer.batch.counts.load_census:load_table",
    )

    scenario: Scenario
    counts: ExpertCounts
    gpu_load: NDArray[np.float64]

    def text(self, *, by_layer: bool = False) -> str:
        """The summary, and with ``by_layer`` each layer's busiest GPU."""
        lines = [str(self)]
        if by_layer:
            lines += [
                f"layer {layer}: busiest EP rank {int(row.argmax())} with {row.max():,.0f} picks, "
                f"max/mean {ratio:.4f}"
                for layer, row, ratio in zip(self.counts.layers, self.gpu_load, self.imbalance, strict=True)
            ]
        return "\n".join(lines)

    @property
    def imbalance(self) -> NDArray[np.float64]:
        """max/mean of the GPUs' loads, ``[layers]``; 1 where a layer has none."""
        mean = self.gpu_load.mean(1)
        found: NDArray[np.float64] = np.divide(
            self.gpu_load.max(1), mean, out=np.ones_like(mean), where=mean > 0
        )
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the counts, what they cannot say, and experts placed twice on a GPU."""
        groups = self.scenario.mesh.world_size // self.scenario.mesh.pp
        groups //= self.scenario.mesh.ep * self.scenario.mesh.etp
        shared = (f"loads are of all {groups} expert groups (edp), which share them evenly",)
        twice = doubled_text(self.scenario.placement_of(layer) for layer in self.counts.layers)
        return (*self.counts.notes, *(shared if groups > 1 else ()), *twice, WITHOUT_PICKS)


def load_census(scenario: Scenario, counts: ExpertCounts) -> LoadCensus:
    """Lay counts on the EP ranks of a scenario.

    Experts that every token picks (shared ones that are routed) get one pick a token, which counts leave out.
    """
    rows = [
        _gpu_load(scenario, layer, _with_shared(scenario, row))
        for layer, row in zip(counts.layers, counts.counts, strict=True)
    ]
    return LoadCensus(scenario, counts, np.array(rows))


def _with_shared(scenario: Scenario, row: NDArray[np.float64]) -> NDArray[np.float64]:
    always = len(scenario.always_picked)
    tokens = row.sum() / (scenario.model.top_k or 1)
    return np.concatenate([row, np.full(always, tokens)])


def _gpu_load(scenario: Scenario, layer: int, row: NDArray[np.float64]) -> NDArray[np.float64]:
    placement = scenario.placement_of(layer)
    tables = [np.array(placement.experts_of(rank), np.int64) for rank in range(placement.ep)]
    replicas = np.bincount(np.concatenate(tables), minlength=len(row))
    each = row / replicas
    return np.array([each[table].sum() for table in tables])


@dataclass(frozen=True, eq=False)
class CountsRebalanced:
    """Loads of the same counts before EPLB and after it."""

    replication: Replication
    before: LoadCensus
    after: LoadCensus

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``placement`` is what a scenario file takes."""
        return {
            "schema": SCHEMA,
            **self.replication.to_dict(self.before.counts.layers),
            "before": load_report(self.before),
            "after": load_report(self.after),
        }


def rebalanced_counts(
    scenario: Scenario, counts: ExpertCounts, *, slots: int, groups: int | None = None
) -> CountsRebalanced:
    """Replicate and pack a scenario's experts by recorded counts.

    Raises:
        ConfigError: for slots that do not fit, or a mesh whose EP ranks do not lie node after node.
    """
    check_slots(slots, len(counts.layers))
    loads = np.stack([_with_shared(scenario, row) for row in counts.counts])
    found = rebalance(
        loads,
        slots=slots,
        groups=groups or own_groups(scenario, loads.shape[1]),
        nodes=nvlink_domains_of_group(scenario),
        gpus=scenario.mesh.ep,
    )
    moved = with_slots(scenario, counts.layers, found.slots)
    return CountsRebalanced(found, load_census(scenario, counts), load_census(moved, counts))


def load_report(census: LoadCensus) -> dict[str, Any]:
    """The loads as JSON values."""
    experts, by_layer = census.counts.counts.sum(0), census.imbalance
    return {
        "schema": SCHEMA,
        "scenario": census.scenario.name,
        "of": "counts",
        "picks": census.counts.picks,
        "layer_numbers": list(census.counts.layers),
        "load_by_expert": experts.tolist(),
        "load_by_gpu": census.gpu_load.sum(0).tolist(),
        "load_by_layer_and_gpu": census.gpu_load.tolist(),
        "gpu_imbalance": float(by_layer.mean()),
        "worst_layer": float(by_layer.max()),
        "notes": list(census.notes),
    }


def _rows(census: LoadCensus) -> list[tuple[str, str]]:
    counts, by_layer = census.counts, census.imbalance
    experts = counts.counts.sum(0)
    worst = counts.layers[int(by_layer.argmax())]
    return [
        ("counts", f"{counts.picks:,.0f} picks in {len(counts.layers)} MoE layers, {len(experts)} experts"),
        (
            "loads by expert",
            f"{experts.min():,.0f} to {experts.max():,.0f}, max/mean {experts.max() / experts.mean():.4f}",
        ),
        (
            "loads by GPU",
            f"max/mean {by_layer.mean():.4f} (mean over layers), {by_layer.max():.4f} in layer {worst}",
        ),
        *(("note", note) for note in census.notes),
    ]


def load_text(census: LoadCensus) -> str:
    """The summary, one line each."""
    lines = text_table((left(width=16, gap=0), left(gap=0)), _rows(census), headings=False)
    return "\n".join([mesh_line(census.scenario), *lines])


def load_table(census: LoadCensus) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    """Header and rows of what a notebook shows."""
    return ("what", "how much"), _rows(census)
