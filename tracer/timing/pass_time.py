"""One forward pass of a scenario: what every layer computes and sends, and how long each part takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracer.errors import whole_number
from tracer.expected_moe import dispatched_rows
from tracer.expected_traffic import ExpectedTraffic, expected_traffic, with_tokens
from tracer.plan import Contract
from tracer.timing.batch import Batch
from tracer.timing.dispatch_time import ExchangeTime, moe_exchange
from tracer.timing.links import LinkRates
from tracer.timing.operators import (
    ExpertLoad,
    Operator,
    attention_operators,
    expert_load,
    expert_operator,
    ffn_operator,
)
from tracer.timing.overlap import MoeTimes
from tracer.timing.roofline import LayerTime, layer_time
from tracer.weight_format import WeightFormat
from tracer.weight_matrices import Part

if TYPE_CHECKING:
    from tracer.hardware import Hardware
    from tracer.scenario import Scenario

_SMALLEST = 1e-12


@dataclass(frozen=True, slots=True)
class PassTime:
    """Times of one pass of ``tokens`` new tokens a replica, all replicas alike, seconds on one GPU.

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
    traffic: ExpectedTraffic
    rates_name: str
    hardware_name: str

    def axis_seconds(self, axis: str, *parts: str) -> float:
        """Seconds a layer of an axis in some parts of the model."""
        return sum(line.seconds for line in self.traffic.lines if line.axis == axis and line.part in parts)

    @property
    def attention_seconds(self) -> float:
        """Attention of a layer with its TP and CP traffic."""
        traffic = self.axis_seconds("tp", "attention") + self.axis_seconds("cp", "attention")
        return self.attention.seconds + traffic

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
    def moe_layer_seconds(self) -> float:
        """One MoE layer, its parts one after the other."""
        moved = sum(each.seconds for each in self.exchange.values())
        moved += self.axis_seconds("tp", "shared_expert", "moe", "moe_gather")
        moved += self.axis_seconds("ep", "weight_pull")
        return self.attention_seconds + self.shared.seconds + self.experts.seconds + moved

    @property
    def dense_layer_seconds(self) -> float:
        """One dense layer."""
        return self.attention_seconds + self.dense.seconds + self.axis_seconds("tp", "ffn")

    @property
    def send_seconds(self) -> float:
        """One pipeline send."""
        return self.axis_seconds("pp", "pipeline")

    @property
    def stage_seconds(self) -> tuple[float, ...]:
        """Seconds of each stage's layers, without sends."""
        scenario, done, stages = self.traffic.scenario, 0, []
        model = scenario.need_model()
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
        return sum(stages) + (len(stages) - 1) * self.send_seconds

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


def pass_time(
    scenario: Scenario,
    hardware: Hardware,
    *,
    tokens: int | None = None,
    rates: LinkRates | None = None,
    rates_name: str = "the cluster's",
) -> PassTime:
    """Times of a pass; ``tokens`` are new tokens a replica (default: the prompt; decode: one request).

    More tokens than a prompt are several prompts of its length, fewer are one short prompt. Decode
    computes one token of each of ``tokens`` requests, whose context is the scenario's prompt.

    Raises:
        ConfigError: when the model lacks a size, or the hardware a rate.
    """
    decode = scenario.phase == "decode"
    tokens = whole_number("tokens", tokens if tokens is not None else 1 if decode else scenario.token.prompt)
    prompt = scenario.token.prompt
    batch = Batch.decoding(tokens, prompt) if decode else _prompts(tokens, prompt)
    rates = rates or LinkRates.of(scenario.cluster)
    cluster = replace(scenario.cluster, nvlink=rates.nvlink, ib=rates.ib)
    sized = with_tokens(replace(scenario, cluster=cluster), tokens)
    attention, shared, experts, dense = (layer_time(each, hardware) for each in _work(sized, batch))
    return PassTime(
        tokens,
        attention,
        shared,
        experts,
        dense,
        exchange=moe_exchange(sized, sized.landing.padded, rates),
        traffic=expected_traffic(sized),
        rates_name=rates_name,
        hardware_name=hardware.name,
    )


def _prompts(tokens: int, prompt: int) -> Batch:
    """``tokens`` as whole prompts: as many as fit, a little shorter or longer where they do not divide."""
    sequences = max(1, round(tokens / prompt))
    return Batch.prompts(-(-tokens // sequences), sequences)


def _work(scenario: Scenario, batch: Batch) -> tuple[tuple[Operator, ...], ...]:
    """Operators of one GPU: attention, shared expert, routed experts, dense FFN."""
    model, mesh = scenario.need_model(), scenario.mesh
    tp, cp, unstated = mesh.size_of("tp"), mesh.size_of("cp"), WeightFormat(scenario.dtype.weights)
    rows = dispatched_rows(scenario, scenario.landing.padded)
    attention = tuple(_shared_rows(each, cp) for each in attention_operators(model, batch, tp, unstated))
    shared: tuple[Operator, ...] = ()
    experts: tuple[Operator, ...] = ()
    dense: tuple[Operator, ...] = ()
    if model.moe_layers:
        experts = (_sliced(expert_operator(model, _load(scenario, rows), unstated), mesh.size_of("etp")),)
        if model.shared_experts:
            split = tp if scenario.plan.shared_tp else 1
            shared = (ffn_operator(model, Part.SHARED, rows * split, split, unstated),)
    if model.moe_layers < model.layers:
        split = scenario.dense_tp
        dense = (ffn_operator(model, Part.DENSE, batch.tokens / (cp * (tp // split)), split, unstated),)
    return attention, shared, experts, dense


def _shared_rows(operator: Operator, cp: int) -> Operator:
    """A CP rank's part of an operator over a replica's rows; weights are whole on each."""
    return replace(operator, flops=operator.flops / cp, row_bytes=operator.row_bytes / cp)


def _sliced(operator: Operator, etp: int) -> Operator:
    """An expert operator cut over ``etp`` ranks: all rows, a slice of the weights."""
    return replace(operator, flops=operator.flops / etp, weight_bytes=operator.weight_bytes / etp)


def _load(scenario: Scenario, rows: float) -> ExpertLoad:
    """Experts and pairs of one rank: its share of the group's rows, or with DWDP its own rows alone."""
    model, mesh = scenario.need_model(), scenario.mesh
    if scenario.plan.contract == Contract.DWDP:
        return expert_load(model, rows)
    group = rows * mesh.size_of("ep") * mesh.size_of("etp")
    return expert_load(model, group, 1 / mesh.size_of("ep"))
