"""The roofline: an operator takes the larger of its arithmetic's time and its memory's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.model.parameters import expert_bytes, expert_parameters, part_format
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart
from tracer.timing.operators import ExpertLoad, Operator, expert_load, expert_operator, rate_of

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.model.spec import ModelSpec
    from tracer.timing.calibration.answer import Estimate

MAX_BATCH = 1 << 30


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """One operator on one GPU: seconds of arithmetic and of memory at peak rates.

    ``estimate`` is the answer of a measured call that stands for it; None at peak.
    """

    operator: Operator
    compute_seconds: float
    memory_seconds: float
    estimate: Estimate | None = None

    @property
    def floor_seconds(self) -> float:
        """The larger of arithmetic and memory at peak."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def seconds(self) -> float:
        """The estimate, which no floor exceeds; the floor where there is none."""
        return self.floor_seconds if self.estimate is None else max(self.estimate.seconds, self.floor_seconds)

    @property
    def bound(self) -> str:
        """``compute`` or ``memory``."""
        return "compute" if self.compute_seconds >= self.memory_seconds else "memory"


@dataclass(frozen=True, slots=True)
class LayerTime:
    """The operators of one layer in order."""

    operators: tuple[OperatorTime, ...]

    @property
    def seconds(self) -> float:
        """Operators one after the other, each at its own roof."""
        return exact_sum(each.seconds for each in self.operators)

    @property
    def roof_seconds(self) -> float:
        """The plain roofline of a layer: the larger of all its arithmetic and all its memory time."""
        compute = exact_sum(each.compute_seconds for each in self.operators)
        return max(compute, exact_sum(each.memory_seconds for each in self.operators))

    @property
    def floor_seconds(self) -> float:
        """Operators one after the other at their peak."""
        return exact_sum(each.floor_seconds for each in self.operators)

    def of(self, name: str) -> float:
        """Seconds of the operators called ``name``; 0 when there is none."""
        return exact_sum(each.seconds for each in self.operators if each.operator.name == name)


def operator_time(operator: Operator, hardware: Hardware, *, rows: bool = True) -> OperatorTime:
    """Time at the hardware's peak rates; ``rows=False`` counts weight bytes only.

    Raises:
        ConfigError: when no source was seen for a rate that is needed.
    """
    flops = hardware.need(operator.rate, f"time {operator.name}")
    memory = hardware.need("hbm_bytes_per_s", f"time {operator.name}")
    moved = operator.bytes if rows else operator.weight_bytes
    return OperatorTime(operator, operator.flops / flops, moved / memory)


def layer_time(operators: Iterable[Operator], hardware: Hardware, *, rows: bool = True) -> LayerTime:
    """Times of a layer's operators; ``rows=False`` counts weight bytes only.

    Raises:
        ConfigError: as :func:`operator_time`.
    """
    return LayerTime(tuple(operator_time(each, hardware, rows=rows) for each in operators))


def ridge(hardware: Hardware, rate: str = "bf16_flops") -> float:
    """FLOPs per byte at which arithmetic and memory take equally long: peak FLOPs / memory bandwidth.

    >>> from tracer.mesh.hardware import hardware_preset
    >>> round(ridge(hardware_preset("h100")))
    295

    Raises:
        ConfigError: when no source was seen for a rate.
    """
    why = "find the ridge"
    return hardware.need(rate, why) / hardware.need("hbm_bytes_per_s", why)


@dataclass(frozen=True, slots=True)
class ExpertRoof:
    """Where the expert GEMMs of a model leave the memory roof of a GPU.

    ``tokens_per_expert`` is ridge x bytes per weight / 2, from weight bytes alone. ``batch`` is the number
    of tokens (of all GPUs that share the experts) at which the mean load reaches it: x E / k.
    ``batch_with_rows`` counts the rows' bytes and the experts really hit as well; None when the rows
    alone keep the GEMMs under the memory roof at any batch.
    """

    tokens_per_expert: float
    batch: float
    batch_with_rows: int | None


def expert_roof(
    spec: ModelSpec, hardware: Hardware, unstated: WeightFormat = WeightFormat.BF16
) -> ExpertRoof:
    """The batch at which expert GEMMs become bound by arithmetic; the same on every expert-parallel share.

    Raises:
        ConfigError: for a model without experts, or a rate that no source states.
    """
    stored = part_format(spec, WeightPart.EXPERTS, unstated)
    per_weight = expert_bytes(spec, unstated) / expert_parameters(spec)
    rows = ridge(hardware, rate_of(stored)) * per_weight / 2
    why = "spread a batch over experts"
    batch = rows * spec.need("experts", why) / spec.need("top_k", why)
    return ExpertRoof(rows, batch, _first_compute_bound(spec, hardware, unstated))


def _first_compute_bound(spec: ModelSpec, hardware: Hardware, unstated: WeightFormat) -> int | None:
    """Smallest batch whose expert GEMMs take at least as long in arithmetic as in memory, by bisection."""

    def bound(tokens: int) -> bool:
        operator = expert_operator(spec, expert_load(spec, tokens), unstated)
        return operator_time(operator, hardware).bound == "compute"

    if not bound(MAX_BATCH):
        return None
    low, high = 0, MAX_BATCH
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """One batch on the roofline of the expert GEMMs; ``flops_per_s`` is what the roof allows.

    ``flops`` are those of the whole batch.
    """

    tokens: int
    load: ExpertLoad
    intensity: float
    flops_per_s: float
    bound: str
    flops: float


def expert_points(
    spec: ModelSpec, hardware: Hardware, batches: Iterable[int], unstated: WeightFormat = WeightFormat.BF16
) -> tuple[RoofPoint, ...]:
    """The expert GEMMs of several batches (tokens over all GPUs that share the experts), for a chart.

    Raises:
        ConfigError: as :func:`expert_roof`.
    """
    points = []
    for tokens in batches:
        load = expert_load(spec, tokens)
        time = operator_time(expert_operator(spec, load, unstated), hardware)
        rate = time.operator.flops / time.seconds if time.seconds else 0.0
        points.append(RoofPoint(tokens, load, time.operator.intensity, rate, time.bound, time.operator.flops))
    return tuple(points)
