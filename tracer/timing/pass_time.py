"""One forward pass of a scenario: what every layer computes and sends, and how long each part takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum
from tracer.errors import ConfigError, finite_number, whole_number
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Contract
from tracer.scenario.step import tokens_per_replica, with_tokens
from tracer.scenario.token import Phase
from tracer.timing.basis import PEAK_BASIS, Rates, rates_word
from tracer.timing.batch import TimedBatch
from tracer.timing.dispatch_time import ExchangeTime, moe_exchange
from tracer.timing.kind_time import KindTime, measured_kinds, peak_kinds
from tracer.timing.layer_work import LayerWork, layer_work
from tracer.timing.measured.around import around_dense, around_layer, around_moe, low_latency_copies
from tracer.timing.measured.compute import measured_work
from tracer.timing.measured.error import expected_error, expected_interval
from tracer.timing.measured.exchange import linked, measured_axes, measured_exchange
from tracer.timing.roofline import LayerTime, OperatorTime, layer_time
from tracer.timing.schedules.overlap import MoeTimes
from tracer.traffic.gathers import ENDS
from tracer.traffic.moe import dispatched_rows
from tracer.traffic.traffic import CommVolume, comm_volume, stage_sends
from tracer.trip.clock import LinkRates
from tracer.trip.hop import HopKind
from tracer.trip.kinds import has_ffn, mixes_tokens

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.scenario.scenario import Scenario
    from tracer.timing.calibration.answer import Estimate
    from tracer.timing.measured.error import Parts
    from tracer.traffic.line import AxisTraffic

DECODE_REQUESTS = 128
_SMALLEST = 1e-12
_WEIGHTS = (HopKind.WEIGHT_PULL, HopKind.WEIGHT_GATHER, ENDS, HopKind.COUNTS_REDUCE, HopKind.COUNTS_GATHER)
"""Parts of the traffic that weigh the same whatever the tokens."""
_NOTHING = LayerTime(())
_MEETING = (
    "attention", HopKind.QUERY_SEND, HopKind.PARTIALS_RETURN, HopKind.HEADS_SCATTER, HopKind.HEADS_GATHER,
)  # fmt: skip
_PROPORTIONAL = (
    "elements", "bytes", "nvlink_elements", "ib_elements", "nvlink_bytes", "ib_bytes", "nvlink_seconds",
    "ib_seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PassTime:
    """Times of one pass of ``tokens`` new tokens per replica, all replicas alike, seconds on one GPU.

    ``attention``, ``shared``, ``experts`` and ``dense`` are the operators of a layer, ``around`` the small
    kernels of any layer, ``around_moe`` and ``around_dense`` those of a kind, ``head`` the LM head;
    ``traffic`` is what the axes move at link rate, ``axes`` measured calls that stand for some of its
    lines, ``exchange`` dispatch and combine of a MoE layer, ``imbalance`` the busiest expert GPU's picks by
    their mean, ``copies`` what a low-latency exchange does on the GPU's own memory (inside its times),
    ``floor`` the same pass at peak. At peak rates operators are rooflines, loads even, and small
    kernels and the LM head left out. Nothing overlaps but the two link tiers. Where layers are not alike,
    ``kinds`` has what is each kind's own, ``attention``, ``dense`` and ``around`` are empty, and seconds of
    "a MoE layer" and of "a dense layer" are means over those there are.
    """

    tokens: int
    attention: LayerTime
    shared: LayerTime
    experts: LayerTime
    dense: LayerTime
    exchange: dict[str, ExchangeTime]
    traffic: CommVolume
    rates_name: str
    hardware_name: str
    rates: Rates = Rates.PEAK
    around: LayerTime = _NOTHING
    around_moe: LayerTime = _NOTHING
    around_dense: LayerTime = _NOTHING
    head: LayerTime = _NOTHING
    axes: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    floor: PassTime | None = None
    kinds: tuple[KindTime, ...] = ()
    imbalance: float = 1.0
    copies: LayerTime = _NOTHING

    def line_seconds(self, line: AxisTraffic) -> float:
        """Seconds of one line of traffic: the measured call that stands for it, or its links."""
        found = self.axes.get((line.axis, line.part))
        return line.seconds if found is None else max(found.seconds, line.seconds)

    def axis_seconds(self, axis: str, *parts: str) -> float:
        """Seconds a layer of an axis in some parts of the model."""
        return exact_sum(
            self.line_seconds(line) for line in self.traffic.lines if line.axis == axis and line.part in parts
        )

    @property
    def attention_seconds(self) -> float:
        """Attention of a layer with its TP and CP traffic."""
        if self.kinds:
            return self._mean(self._mixing_seconds, moe=self._of_moe)
        met = self.axis_seconds("cp", *_MEETING)
        return self.attention.seconds + self.axis_seconds("tp", "attention") + met

    def _mean(self, seconds: Callable[[KindTime], float], *, moe: bool | None = None) -> float:
        """Mean of something of each kind over its layers: all, or those with or without experts."""
        kinds = [kind for kind in self.kinds if moe is None or kind.kind.is_moe == moe]
        layers = sum(len(kind.layers) for kind in kinds)
        return exact_sum(len(kind.layers) * seconds(kind) for kind in kinds) / layers if layers else 0.0

    @property
    def _of_moe(self) -> bool | None:
        """MoE layers where there are any, else all."""
        return True if any(kind.kind.is_moe for kind in self.kinds) else None

    def _met_seconds(self, layer: int) -> float:
        """What a layer of several kinds sends over CP and over TP before its feed-forward part."""
        model = self.traffic.scenario.model
        lines = (line for line in self.traffic.lines if line.axis == "cp" and layer in line.layers)
        met = exact_sum(self.line_seconds(line) for line in lines)
        return met + (self.axis_seconds("tp", "attention") if mixes_tokens(model, layer) else 0.0)

    def _mixing_seconds(self, kind: KindTime) -> float:
        """A layer's mixer, with what it sends."""
        return kind.mixer.seconds + self._met_seconds(kind.layers[0])

    def kind_seconds(self, kind: KindTime) -> float:
        """One layer of a kind, its parts one after the other; a gather of weights beside it or before."""
        return self._with_gather(self._kind_alone(kind))

    def _kind_alone(self, kind: KindTime) -> float:
        layer = kind.layers[0]
        found = kind.seconds + self._met_seconds(layer)
        if kind.kind.is_moe:
            return found + self._experts_seconds + self.around_moe.seconds
        has_own = has_ffn(self.traffic.scenario.model, layer)
        return found + (self.axis_seconds("tp", "ffn") if has_own else 0.0)

    @property
    def layer_seconds(self) -> tuple[float, ...]:
        """Seconds of every layer, the first one first."""
        model = self.traffic.scenario.model
        if not self.kinds:
            both = {True: self.moe_layer_seconds, False: self.dense_layer_seconds}
            return tuple(both[model.is_moe(layer)] for layer in range(1, model.layers + 1))
        found = [0.0] * model.layers
        for kind in self.kinds:
            each = self.kind_seconds(kind)
            for layer in kind.layers:
                found[layer - 1] = each
        return tuple(found)

    @property
    def _experts_seconds(self) -> float:
        """Experts of a MoE layer, shared and routed, with what they send."""
        moved = exact_sum(each.seconds for each in self.exchange.values())
        moved += self.axis_seconds("tp", "shared_expert", "moe", "moe_gather")
        moved += self.axis_seconds("ep", "weight_pull", HopKind.COUNTS_GATHER, HopKind.PROBS_DISPATCH)
        moved += self.axis_seconds("tp", HopKind.COUNTS_REDUCE)
        return self.shared.seconds + self.experts.seconds + moved

    @property
    def moe_times(self) -> MoeTimes | None:
        """One MoE layer as the overlap takes it; None where tokens do not move between experts' GPUs."""
        if not self.exchange or not self.experts.operators:
            return None
        shared = self.shared.seconds + self.axis_seconds("tp", "shared_expert", "moe_gather")
        return MoeTimes(
            self.attention_seconds + self._small_seconds + self.around_moe.seconds,
            max(self.exchange["dispatch"].seconds, _SMALLEST),
            shared,
            self.experts.seconds,
            max(self.exchange["combine"].seconds, _SMALLEST),
        )

    @property
    def gather_seconds(self) -> float:
        """Gathers of sharded weights for a layer, on average, whether they are hidden or not."""
        return self.axis_seconds("dp", HopKind.WEIGHT_GATHER)

    def _with_gather(self, alone_seconds: float) -> float:
        """A layer in the midst of others: with prefetch the next layer's gather runs beside it."""
        if self.traffic.scenario.plan.weight_prefetch:
            return max(alone_seconds, self.gather_seconds)
        return alone_seconds + self.gather_seconds

    @property
    def moe_layer_seconds(self) -> float:
        """One MoE layer, its parts one after the other."""
        if self.kinds:
            return self._mean(self.kind_seconds, moe=True)
        return self._with_gather(self._moe_alone)

    @property
    def _moe_alone(self) -> float:
        small = self.around.seconds + self.around_moe.seconds
        return self.attention_seconds + self._experts_seconds + small

    @property
    def _small_seconds(self) -> float:
        """Small kernels and latent projections of a MoE layer, on average."""
        if not self.kinds:
            return self.around.seconds
        return self._mean(lambda kind: kind.seconds - kind.mixer.seconds, moe=self._of_moe)

    @property
    def dense_layer_seconds(self) -> float:
        """One dense layer."""
        if self.kinds:
            return self._mean(self.kind_seconds, moe=False)
        return self._with_gather(self._dense_alone)

    @property
    def _dense_alone(self) -> float:
        small = self.around.seconds + self.around_dense.seconds
        return self.attention_seconds + self.dense.seconds + self.axis_seconds("tp", "ffn") + small

    @property
    def send_seconds(self) -> float:
        """One pipeline send."""
        return self.axis_seconds("pp", "pipeline")

    @property
    def stage_seconds(self) -> tuple[float, ...]:
        """Seconds of each stage's layers, without sends."""
        return tuple(
            exact_sum(self._run_seconds(run) for run in runs) for runs in self.traffic.scenario.stage_runs
        )

    @property
    def chunk_seconds(self) -> tuple[float, ...]:
        """Seconds of each chunk's layers, in the order a token meets them, without sends."""
        return tuple(self._run_seconds(chunk.layers) for chunk in self.traffic.scenario.chunks)

    def _run_seconds(self, layers: range) -> float:
        is_moe = self.traffic.scenario.model.is_moe
        if self.kinds:
            found = exact_sum(self.kind_seconds(kind) * kind.count_in(layers) for kind in self.kinds)
        else:
            moe = sum(map(is_moe, layers))
            found = moe * self.moe_layer_seconds + (len(layers) - moe) * self.dense_layer_seconds
        if not len(layers) or not self.gather_seconds or not self.traffic.scenario.plan.weight_prefetch:
            return found
        # The first gather has no layer to hide behind, and nothing is gathered beside the last layer.
        last = self._alone(layers[-1])
        return found + self.gather_seconds + last - self._with_gather(last)

    def _alone(self, layer: int) -> float:
        """A layer without its gather."""
        if self.kinds:
            return self._kind_alone(next(kind for kind in self.kinds if layer in kind.layers))
        return self._moe_alone if self.traffic.scenario.model.is_moe(layer) else self._dense_alone

    @property
    def token_stage_seconds(self) -> tuple[float, ...]:
        """The same until a token is out: one stage has the LM head too, where it is timed."""
        head = self.traffic.scenario.head_stage
        found = enumerate(self.stage_seconds)
        return tuple(each + (self.head.seconds if stage == head else 0.0) for stage, each in found)

    @property
    def token_chunk_seconds(self) -> tuple[float, ...]:
        """Seconds of each chunk until a token is out: the last one has the LM head too."""
        *before, last = self.chunk_seconds
        return (*before, last + self.head.seconds)

    @property
    def seconds(self) -> float:
        """The whole pass through all stages, one after the other."""
        sends = len(stage_sends(self.traffic.scenario))
        return exact_sum(self.stage_seconds) + sends * self.send_seconds

    @property
    def small(self) -> LayerTime:
        """The kernels around the big ones, and the LM head."""
        parts = (self.around, self.around_moe, self.around_dense, self.head)
        return LayerTime(tuple(each for layer in parts for each in layer.operators))

    @property
    def operators(self) -> tuple[tuple[str, OperatorTime], ...]:
        """(name, time) of every operator of a layer, big ones first; of several kinds, kind by kind."""
        own = [
            (f"{each.operator.name} ({kind.title})", each) for kind in self.kinds for each in kind.operators
        ]
        big = (*self.attention.operators, *self.shared.operators, *self.experts.operators)
        rest = (*big, *self.dense.operators, *self.small.operators)
        return (*own, *((each.operator.name, each) for each in rest))

    @property
    def floor_seconds(self) -> float:
        """The same pass at peak rates: its big operators as rooflines, its traffic on the links."""
        return self.seconds if self.floor is None else self.floor.seconds

    @property
    def error(self) -> float | None:
        """Expected relative error of :attr:`seconds`; see :mod:`tracer.timing.measured.error`."""
        return expected_error(self.timed_parts)

    @property
    def interval_seconds(self) -> tuple[float, float] | None:
        """Seconds between which nine of ten measurements would put the pass; None where that is unknown."""
        return expected_interval(self.timed_parts, self.seconds, self.floor_seconds)

    @property
    def timed_parts(self) -> Parts:
        """Seconds of every part of the pass, with the estimate that they rest on."""
        model = self.traffic.scenario.model
        moe, dense = model.moe_layers, model.layers - model.moe_layers
        often = (
            (model.layers, self.attention),
            (model.layers, self.around),
            (moe, self.shared),
            (moe, self.experts),
            (moe, self.around_moe),
            (dense, self.dense),
            (dense, self.around_dense),
        )
        parts = [(count * each.seconds, each.estimate) for count, layer in often for each in layer.operators]
        parts += [
            (len(kind.layers) * each.seconds, each.estimate) for kind in self.kinds for each in kind.operators
        ]
        parts += [(moe * each.seconds, each.estimate) for each in self.exchange.values()]
        for line in self.traffic.lines:
            if not (line.axis == Axis.EP and self.exchange):
                seconds = self.line_seconds(line) * line.times
                parts.append((seconds, self.axes.get((line.axis, line.part))))
        return tuple((seconds, found) for seconds, found in parts if seconds)

    @property
    def assumption(self) -> str:
        """What the times assume, in one line."""
        return self._rates_assumption + self._gathers_assumption

    @property
    def _gathers_assumption(self) -> str:
        """How gathers of sharded weights are timed; nothing where there are none."""
        if not self.gather_seconds:
            return ""
        if self.traffic.scenario.plan.weight_prefetch:
            return "; weights of a layer are gathered behind the layer before it (weight_prefetch)"
        return "; every layer waits for its weights to be gathered (weight_prefetch = false)"

    @property
    def _loads_assumption(self) -> str:
        if self.imbalance == 1.0:
            return "loads of experts even"
        return f"the busiest experts' GPU with {self.imbalance:.3g} times the mean of the picks"

    @property
    def _rates_assumption(self) -> str:
        if self.rates is Rates.CALIBRATED:
            return (
                f"{self.hardware_name} by measured kernels where there are any, {self.rates_name} link rates "
                f"elsewhere, {self._loads_assumption}, all replicas alike, nothing overlapped but the two "
                "tiers; sampling, scheduling and the CPU left out"
            )
        return (
            f"{self.hardware_name} at peak FLOPs and memory rate, {self.rates_name} link rates, uniform "
            "picks, all replicas alike, nothing overlapped but the two tiers; norms, routing, embedding and "
            "LM head left out"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        names = ("moe_layer_seconds", "dense_layer_seconds", "send_seconds", "seconds", "assumption")
        return {
            "tokens_per_replica": self.tokens,
            "rates": str(self.rates),
            "imbalance": self.imbalance,
            "floor_seconds": self.floor_seconds,
            "error": self.error,
            "interval_seconds": self.interval_seconds and list(self.interval_seconds),
            **{name: getattr(self, name) for name in names},
            "stage_seconds": list(self.stage_seconds),
            "operators": [
                {
                    "name": name,
                    "flops": each.operator.flops,
                    "weight_bytes": each.operator.weight_bytes,
                    "row_bytes": each.operator.row_bytes,
                    "flops_per_byte": each.operator.intensity,
                    "seconds": each.seconds,
                    "bound": each.bound,
                }
                | _basis(each.estimate)
                for name, each in self.operators
            ],
            "exchange": {
                name: {
                    "nvlink_bytes": each.nvlink_bytes,
                    "ib_bytes": each.ib_bytes,
                    "seconds": each.seconds,
                    "binding": None if each.binding is None else str(each.binding),
                }
                | _basis(each.estimate)
                for name, each in self.exchange.items()
            },
        }


def _basis(found: Estimate | None) -> dict[str, Any]:
    """What an estimate rests on, as JSON values."""
    return {
        "basis": PEAK_BASIS if found is None else found.basis,
        "error": None if found is None else found.error,
    }


def pass_batch(scenario: Scenario, tokens: int | None = None) -> TimedBatch:
    """Requests of a replica's pass of ``tokens`` new tokens; the prompt, or 128 decoding requests, if None.

    More tokens than a prompt are several prompts of its length, fewer are one short prompt. Decode
    computes one token of each of ``tokens`` requests, whose context is the scenario's prompt.

    Raises:
        ConfigError: when ``tokens`` is not a whole number of at least 1.
    """
    prompt, decode = scenario.token.prompt, scenario.phase is Phase.DECODE
    default = DECODE_REQUESTS if decode else prompt
    count = whole_number("tokens", default if tokens is None else tokens)
    if decode:
        return TimedBatch.decoding(count, prompt)
    sequences = max(1, round(count / prompt))
    return TimedBatch.prompts(-(-count // sequences), sequences)


def pass_time(
    scenario: Scenario,
    hardware: Hardware,
    *,
    tokens: int | None = None,
    batch: TimedBatch | None = None,
    parts: int = 1,
    rates: Rates | str = Rates.CALIBRATED,
    links: LinkRates | None = None,
    rates_name: str = "the cluster's",
    like: PassTime | None = None,
    imbalance: float = 1.0,
) -> PassTime:
    """Times of a pass of ``batch`` requests per replica (default: :func:`pass_batch` of ``tokens``).

    ``rates`` is ``calibrated`` (measured kernels, where there are any) or ``peak`` (floors). ``links`` are
    a profile's link rates: they then time all that moves. ``parts`` cuts its rows evenly and times one
    part: attention work and rows are shared out, weights are read in each. ``like`` is a pass of the same
    scenario and rates: its traffic is scaled to the rows, which spares the sums over groups.
    ``imbalance`` is the picks of the busiest expert GPU by their mean, for experts after a dispatch.

    Raises:
        ConfigError: when the model lacks a size, the hardware a rate, or for another word for ``rates``.
    """
    chosen, batch = rates_word(rates), batch or pass_batch(scenario, tokens)
    rows = -(-batch.tokens // whole_number("parts", parts))
    used = links or LinkRates.of(scenario.cluster)
    cluster = replace(scenario.cluster, nvlink=used.nvlink, ib=used.ib)
    sized = with_tokens(scenario.with_phase(batch.phase).with_(cluster=cluster), rows)
    finite_number("imbalance", imbalance)
    if imbalance < 1:
        raise ConfigError(
            "imbalance", imbalance, "is a maximum by a mean, 1 or more", "give 1 for even loads"
        )
    work = layer_work(sized, batch, parts)
    traffic = comm_volume(sized) if like is None else _scaled(like.traffic, sized)
    floor = PassTime(
        rows,
        layer_time(work.attention, hardware),
        layer_time(work.shared, hardware),
        layer_time(work.experts, hardware),
        layer_time(work.dense, hardware),
        exchange=moe_exchange(traffic, used),
        traffic=traffic,
        rates_name=rates_name,
        hardware_name=hardware.name,
        kinds=peak_kinds(work.kinds, hardware),
    )
    if chosen is Rates.PEAK:
        return floor
    spread = sized.mesh.ep > 1 and sized.plan.contract in (Contract.EP, Contract.AG_RS)
    timed = replace(floor, imbalance=imbalance if spread else 1.0)
    timed = _measured_compute(timed, sized, batch, parts, hardware, work)
    return timed if links is not None else _measured_links(timed, sized, hardware)


def _measured_compute(
    floor: PassTime, sized: Scenario, batch: TimedBatch, parts: int, gpu: Hardware, work: LayerWork
) -> PassTime:
    """The pass with estimates for what the GPU computes, and the kernels that a roofline leaves out."""
    found = measured_work(sized, batch, parts, gpu, work, floor.imbalance)
    outside, moe = dispatched_rows(sized, tokens_per_replica(sized)), bool(sized.model.moe_layers)
    inside = batch.tokens / (parts * sized.mesh.cp)
    shared = sized.mesh.tp if sized.plan.slices_shared else 1
    own = inside / (sized.mesh.tp // sized.dense_tp)
    rows = (outside, inside, own)
    kinds = measured_kinds(floor.kinds, work.kinds, sized, batch, parts, gpu, rows)
    return replace(
        floor,
        kinds=kinds,
        rates=Rates.CALIBRATED,
        floor=floor,
        attention=found.attention,
        shared=found.shared,
        experts=found.experts,
        dense=found.dense,
        head=found.head,
        around=_NOTHING if kinds else around_layer(sized, outside, inside, gpu),
        around_moe=around_moe(sized, outside, shared, gpu) if moe else _NOTHING,
        copies=low_latency_copies(sized, outside, gpu) if moe else _NOTHING,
        around_dense=around_dense(sized, own, gpu) if found.dense.operators else _NOTHING,
    )


def _measured_links(timed: PassTime, sized: Scenario, hardware: Hardware) -> PassTime:
    """The pass with estimates for what moves, on the cluster's links."""
    gpu = linked(hardware, sized)
    return replace(
        timed,
        exchange=measured_exchange(sized, timed.traffic, timed.exchange, gpu, timed.imbalance),
        axes=measured_axes(sized, timed.traffic, gpu),
    )


def _scaled(traffic: CommVolume, scenario: Scenario) -> CommVolume:
    """The traffic of another number of tokens: everything but pulled weights is in proportion."""
    rows = tokens_per_replica(scenario)
    factor = rows / traffic.tokens
    lines = tuple(
        line
        if line.part in _WEIGHTS or (line.part == HopKind.STATE_PASS and not scenario.decodes)
        else replace(line, **{name: getattr(line, name) * factor for name in _PROPORTIONAL})
        for line in traffic.lines
    )
    return replace(traffic, scenario=scenario, tokens=rows, lines=lines)
