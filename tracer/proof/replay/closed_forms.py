"""What each GPU sent in a block of the whole batch, beside the engine's closed form for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tracer.mesh.axes import Axis
from tracer.scenario.plan import Contract, DispatchMode
from tracer.scenario.step import with_tokens
from tracer.traffic.traffic import comm_volume
from tracer.trip.hop import HopKind, Part

if TYPE_CHECKING:
    from tracer.proof.replay.run import Run
    from tracer.proof.replay.sent import Place
    from tracer.scenario.scenario import Scenario
    from tracer.traffic.line import AxisTraffic

SUM_KINDS = frozenset({HopKind.ALL_GATHER, HopKind.REDUCE_SCATTER, HopKind.ALL_REDUCE})
BLOCKS = {
    ("tp", "attention"): (Part.ATTENTION, SUM_KINDS),
    ("tp", "ffn"): (Part.FFN, SUM_KINDS),
    ("tp", "shared_expert"): (Part.SHARED, SUM_KINDS),
    ("tp", "moe"): (Part.MOE, SUM_KINDS),
    ("tp", "moe_gather"): (Part.MOE, SUM_KINDS),
    ("tp", "embedding"): (Part.EMBEDDING, SUM_KINDS),
    ("cp", "attention"): (Part.ATTENTION, frozenset({HopKind.KV_EXCHANGE})),
    ("cp", "heads_scatter"): (Part.ATTENTION, frozenset({HopKind.HEADS_SCATTER})),
    ("cp", "heads_gather"): (Part.ATTENTION, frozenset({HopKind.HEADS_GATHER})),
    ("ep", "moe"): (Part.MOE, frozenset({HopKind.DISPATCH, HopKind.COMBINE})),
    ("ep", "weight_pull"): (Part.MOE, frozenset({HopKind.WEIGHT_PULL})),
    ("ep", "counts_gather"): (Part.MOE, frozenset({HopKind.COUNTS_GATHER})),
    ("ep", "probs_dispatch"): (Part.MOE, frozenset({HopKind.PROBS_DISPATCH})),
    ("pp", "pipeline"): (Part.PIPELINE, frozenset({HopKind.PP_SEND})),
}
"""Hops that a line of expected traffic, by axis and part, speaks of."""


class Claim(StrEnum):
    """How a formula binds: each GPU sends it; they do on average; or at most, each copy relayed once."""

    EACH = "each"
    ON_AVERAGE = "on_average"
    AT_MOST = "at_most"


@dataclass(frozen=True, slots=True)
class Form:
    """A block of a layer: its formula and what each GPU of the stage sent, ascending, in elements.

    Pulled weights count where they arrive. ``kept`` are the elements of picks that stay at home, which a
    formula by picks counts as well, over all GPUs.
    """

    axis: str
    part: str
    layer: int
    claim: Claim
    formula: str
    expected: float
    sent: tuple[int, ...]
    kept: int = 0

    @property
    def holds(self) -> bool:
        """Whether what was sent agrees with the formula."""
        if self.claim is Claim.EACH:
            return all(abs(sent - self.expected) < 0.5 for sent in self.sent)
        stated, total = self.expected * len(self.sent), sum(self.sent) + self.kept
        return abs(total - stated) < 0.5 if self.claim is Claim.ON_AVERAGE else sum(self.sent) <= 2 * stated

    def to_dict(self) -> dict[str, Any]:
        """The form as JSON values."""
        names = ("axis", "part", "layer", "formula", "expected", "holds")
        told = {name: getattr(self, name) for name in names}
        return told | {"claim": str(self.claim), "least": min(self.sent), "most": max(self.sent)}


def closed_forms(run: Run) -> tuple[Form, ...]:
    """Forms of every block that has one; none when replicas' prompts differ in length."""
    shares = {int(share) for share in run.batch.share}
    if len(shares) > 1:
        return ()
    tokens = shares.pop() * run.scenario.mesh.cp
    lines = comm_volume(with_tokens(run.scenario, tokens)).lines
    # Counts are summed at every home here, as the trips say it; their form has one root.
    told = [line for line in lines if line.axis != Axis.DP and line.part != HopKind.COUNTS_REDUCE]
    return tuple(form for line in told for form in _forms(run, line))


def _forms(run: Run, line: AxisTraffic) -> Iterator[Form]:
    """A line's form in each layer where it moved anything."""
    part, kinds = BLOCKS[line.axis, line.part]
    claim = _claim(run.scenario, line)
    by_layer = _sent_by_layer(run, part, kinds)
    for layer, by_rank in sorted(by_layer.items()):
        if HopKind.WEIGHT_PULL in kinds and run.scenario.placement_of(layer).slots is not None:
            continue
        stage = 0 if layer == 0 else run.scenario.stage_of_layer(layer)
        sent = tuple(by_rank[gpu.rank] for gpu in run.stage_gpus(stage))
        kept = _kept(run, layer, kinds) if claim is Claim.ON_AVERAGE else 0
        yield Form(line.axis, line.part, layer, claim, line.formula, line.elements, sent, kept)


def _sent_by_layer(run: Run, part: Part, kinds: frozenset[HopKind]) -> dict[int, Counter[int]]:
    """Elements by layer and rank."""

    def wanted(place: Place) -> bool:
        """Whether a transfer there is counted."""
        return place.part is part and place.kind in kinds

    found: dict[int, Counter[int]] = {}
    for entry in run.machine.ledger.sent:
        if wanted(entry.place):
            counts = Counter(entry.src.tolist())
            by_rank = found.setdefault(entry.place.layer, Counter())
            by_rank.update({rank: rows * entry.elements for rank, rows in counts.items()})
    for pull in run.machine.ledger.pulled:
        if wanted(pull.place):
            found.setdefault(pull.place.layer, Counter())[pull.dst] += pull.elements
    return found


def _claim(scenario: Scenario, line: AxisTraffic) -> Claim:
    """Copies to experts depend on the picks: low latency sends one for each, high throughput fewer.

    GPUs that hold unequal numbers of experts pull unequal amounts.
    """
    if line.axis != Axis.EP or scenario.plan.contract is Contract.AG_RS or line.part == HopKind.COUNTS_GATHER:
        return Claim.EACH
    relayed = scenario.plan.contract is Contract.EP and scenario.plan.dispatch is DispatchMode.HIGH_THROUGHPUT
    return Claim.AT_MOST if relayed else Claim.ON_AVERAGE


def _kept(run: Run, layer: int, kinds: frozenset[HopKind]) -> int:
    """Elements of the messages to experts on the dispatching GPU itself: rows there and back, or gates."""
    if HopKind.PROBS_DISPATCH in kinds:
        return run.stays.get(layer, 0)
    if HopKind.DISPATCH not in kinds:
        return 0
    return 2 * run.stays.get(layer, 0) * run.scenario.model.need("hidden", "count what stays")
