"""One forward pass of a scenario: what every layer computes and sends, and how long each part takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum
from tracer.errors import whole_number
from tracer.scenario.step import tokens_per_replica, with_tokens
from tracer.scenario.token import Phase
from tracer.timing.batch import TimedBatch
from tracer.timing.dispatch_time import ExchangeTime, moe_exchange
from tracer.timing.layer_work import layer_work
from tracer.timing.roofline import LayerTime, layer_time
from tracer.timing.schedules.overlap import MoeTimes
from tracer.traffic.gathers import ENDS
from tracer.traffic.traffic import CommVolume, comm_volume
from tracer.trip.clock import LinkRates
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.scenario.scenario import Scenario

DECODE_REQUESTS = 128
_SMALLEST = 1e-12
_WEIGHTS = (HopKind.WEIGHT_PULL, HopKind.WEIGHT_GATHER, ENDS)
"""Parts of the traffic that weigh the same whatever the tokens."""
_PROPORTIONAL = (
    "elements", "bytes", "nvlink_elements", "ib_elements", "nvlink_bytes", "ib_bytes", "nvlink_seconds",
    "ib_seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PassTime:
    """Times of one pass of ``tokens`` new tokens per replica, all replicas alike, seconds on one GPU.

    ``attention``, ``shared``, ``experts`` and ``dense`` are rooflines at peak rates; ``traffic`` is what
    the axes move at link rate, ``exchange`` dispatch and combine of a MoE layer. Nothing overlaps but the
    two link tiers.
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

    def axis_seconds(self, axis: str, *parts: str) -> float:
        """Seconds a layer of an axis in some parts of the model."""
        return exact_sum(
            line.seconds for line in self.traffic.lines if line.axis == axis and line.part in parts
        )

    @property
    def attention_seconds(self) -> float:
        """Attention of a layer with its TP and CP traffic."""
        met = self.axis_seconds(
            "cp",
            "attention",
            *(HopKind.QUERY_SEND, HopKind.PARTIALS_RETURN, HopKind.HEADS_SCATTER, HopKind.HEADS_GATHER),
        )
        return self.attention.seconds + self.axis_seconds("tp", "attention") + met

    @property
    def moe_times(self) -> MoeTimes | None:
        """One MoE layer as the overlap takes it; None where tokens do not move between experts' GPUs."""
        if not self.exchange or not self.experts.operators:
            return None
        shared = self.shared.seconds + self.axis_seconds("tp", "shared_expert", "moe_gather")
        return MoeTimes(
            self.attention_seconds,
            max(self.exchange["dispatch"].seconds, _SMALLEST),
            shared,
            self.experts.seconds,
            max(self.exchange["combine"].seconds, _SMALLEST),
        )

    @property
    def gather_seconds(self) -> float:
        """Gathers of sharded weights before a layer, on average and none of it hidden behind compute."""
        return self.axis_seconds("dp", HopKind.WEIGHT_GATHER)

    @property
    def moe_layer_seconds(self) -> float:
        """One MoE layer, its parts one after the other."""
        moved = exact_sum(each.seconds for each in self.exchange.values())
        moved += self.axis_seconds("tp", "shared_expert", "moe", "moe_gather")
        moved += self.axis_seconds("ep", "weight_pull")
        own = self.shared.seconds + self.experts.seconds
        return self.attention_seconds + own + moved + self.gather_seconds

    @property
    def dense_layer_seconds(self) -> float:
        """One dense layer."""
        moved = self.axis_seconds("tp", "ffn") + self.gather_seconds
        return self.attention_seconds + self.dense.seconds + moved

    @property
    def send_seconds(self) -> float:
        """One pipeline send."""
        return self.axis_seconds("pp", "pipeline")

    @property
    def stage_seconds(self) -> tuple[float, ...]:
        """Seconds of each stage's layers, without sends."""
        scenario, done, stages = self.traffic.scenario, 0, []
        model = scenario.model
        for count in scenario.stage_layers:
            layers = range(done + 1, done + count + 1)
            moe = sum(model.is_moe(layer) for layer in layers)
            stages.append(moe * self.moe_layer_seconds + (count - moe) * self.dense_layer_seconds)
            done += count
        return tuple(stages)

    @property
    def seconds(self) -> float:
        """The whole pass through all stages, one after the other."""
        stages = self.stage_seconds
        return exact_sum(stages) + (len(stages) - 1) * self.send_seconds

    @property
    def assumption(self) -> str:
        """What the times assume, in one line."""
        return (
            f"{self.hardware_name} at peak FLOPs and memory rate, {self.rates_name} link rates, uniform "
            "picks, all replicas alike, nothing overlapped but the two tiers; norms, routing, embedding and "
            "LM head left out"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        names = ("moe_layer_seconds", "dense_layer_seconds", "send_seconds", "seconds", "assumption")
        operators = (*self.attention.operators, *self.shared.operators, *self.experts.operators)
        return {
            "tokens_per_replica": self.tokens,
            **{name: getattr(self, name) for name in names},
            "stage_seconds": list(self.stage_seconds),
            "operators": [
                {
                    "name": each.operator.name,
                    "flops": each.operator.flops,
                    "weight_bytes": each.operator.weight_bytes,
                    "row_bytes": each.operator.row_bytes,
                    "flops_per_byte": each.operator.intensity,
                    "seconds": each.seconds,
                    "bound": each.bound,
                }
                for each in (*operators, *self.dense.operators)
            ],
            "exchange": {
                name: {
                    "nvlink_bytes": each.nvlink_bytes,
                    "ib_bytes": each.ib_bytes,
                    "seconds": each.seconds,
                    "binding": None if each.binding is None else str(each.binding),
                }
                for name, each in self.exchange.items()
            },
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
    rates: LinkRates | None = None,
    rates_name: str = "the cluster's",
    like: PassTime | None = None,
) -> PassTime:
    """Times of a pass of ``batch`` requests per replica (default: :func:`pass_batch` of ``tokens``).

    ``parts`` cuts its rows evenly and times one part: attention work and rows are shared out, weights
    are read in each. ``like`` is a pass of the same scenario and rates: its traffic is scaled to the rows,
    which spares the sums over groups.

    Raises:
        ConfigError: when the model lacks a size, or the hardware a rate.
    """
    batch = batch or pass_batch(scenario, tokens)
    rows = -(-batch.tokens // whole_number("parts", parts))
    rates = rates or LinkRates.of(scenario.cluster)
    cluster = replace(scenario.cluster, nvlink=rates.nvlink, ib=rates.ib)
    sized = with_tokens(scenario.with_phase(batch.phase).with_(cluster=cluster), rows)
    work = layer_work(sized, batch, parts)
    traffic = comm_volume(sized) if like is None else _scaled(like.traffic, sized)
    return PassTime(
        rows,
        layer_time(work.attention, hardware),
        layer_time(work.shared, hardware),
        layer_time(work.experts, hardware),
        layer_time(work.dense, hardware),
        exchange=moe_exchange(traffic, rates),
        traffic=traffic,
        rates_name=rates_name,
        hardware_name=hardware.name,
    )


def _scaled(traffic: CommVolume, scenario: Scenario) -> CommVolume:
    """The traffic of another number of tokens: everything but pulled weights is in proportion."""
    rows = tokens_per_replica(scenario)
    factor = rows / traffic.tokens
    lines = tuple(
        line
        if line.part in _WEIGHTS
        else replace(line, **{name: getattr(line, name) * factor for name in _PROPORTIONAL})
        for line in traffic.lines
    )
    return replace(traffic, scenario=scenario, tokens=rows, lines=lines)
