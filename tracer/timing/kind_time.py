"""Seconds of the layers of one kind in a pass: what is its own, beside what all layers share."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.model.layers import DenseFfn
from tracer.timing.kind_work import KindWork, mixer_name
from tracer.timing.measured.around import around_dense, around_kind
from tracer.timing.measured.kinds import measured_feed, measured_mixer
from tracer.timing.roofline import LayerTime, OperatorTime, layer_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracer.mesh.hardware import Hardware
    from tracer.model.layers import LayerKind
    from tracer.scenario.scenario import Scenario
    from tracer.timing.batch import TimedBatch

_NOTHING = LayerTime(())


@dataclass(frozen=True, slots=True)
class KindTime:
    """One kind's mixer, its dense FFN (or what is around LatentMoE's experts), and its small kernels."""

    kind: LayerKind
    layers: tuple[int, ...]
    mixer: LayerTime
    dense: LayerTime
    around: LayerTime = _NOTHING
    around_dense: LayerTime = _NOTHING

    @property
    def seconds(self) -> float:
        """Seconds of one layer of the kind, without what it sends and without experts."""
        return exact_sum(each.seconds for each in (self.mixer, self.dense, self.around, self.around_dense))

    @property
    def operators(self) -> tuple[OperatorTime, ...]:
        """Everything that one layer of the kind runs alone."""
        parts = (self.mixer, self.dense, self.around, self.around_dense)
        return tuple(each for layer in parts for each in layer.operators)

    def count_in(self, layers: range) -> int:
        """How many of a run of layers are of the kind."""
        return bisect_left(self.layers, layers.stop) - bisect_left(self.layers, layers.start)

    @property
    def title(self) -> str:
        """The kind with the number of its layers, for tables."""
        return f"{len(self.layers)} x {mixer_name(self.kind)}"


def peak_kinds(works: Iterable[KindWork], hardware: Hardware) -> tuple[KindTime, ...]:
    """Kinds at their rooflines."""
    return tuple(
        KindTime(each.kind, each.layers, layer_time(each.mixer, hardware), layer_time(each.dense, hardware))
        for each in works
    )


def measured_kinds(
    floor: Iterable[KindTime],
    works: Iterable[KindWork],
    scenario: Scenario,
    batch: TimedBatch,
    parts: int,
    gpu: Hardware,
    rows: tuple[float, float, float],
) -> tuple[KindTime, ...]:
    """Kinds by measured calls; ``rows`` are a GPU's outside attention, inside, and in a dense FFN."""
    outside, inside, own = rows
    found = []
    for before, work in zip(floor, works, strict=True):
        feed = work.kind.feed_forward
        found.append(
            replace(
                before,
                mixer=measured_mixer(scenario, batch, parts, gpu, work),
                dense=measured_feed(scenario, own, outside, gpu, work),
                around=around_kind(scenario, outside, inside, gpu, work.kind),
                around_dense=around_dense(scenario, own, gpu, feed.width)
                if isinstance(feed, DenseFfn)
                else _NOTHING,
            )
        )
    return tuple(found)
