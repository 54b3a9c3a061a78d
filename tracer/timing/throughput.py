"""Tokens per second of whole passes: of a GPU and a node, time to first token, and time per output token.

A pass is one prefill of its batch, or one decode step. With stages, several batches follow one another
through the pipeline. Two-batch overlap replaces every MoE layer by two halves on two streams, and counts
only where it gains. No queue, no scheduler and no speculative decoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum
from tracer.errors import whole_number
from tracer.scenario.token import Phase
from tracer.timing.basis import Rates
from tracer.timing.schedules.overlap import MoeTimes, overlap_two

if TYPE_CHECKING:
    from tracer.timing.batch import TimedBatch
    from tracer.timing.pass_time import PassTime
    from tracer.timing.roofline import LayerTime
    from tracer.timing.schedules.decode_pipeline import DecodePipeline
    from tracer.timing.schedules.pipeline import Pipeline

LEAST_WIRE = 1e-9
COMMUNICATION_SMS, SMS = 20, 132
"""SMs that dispatch and combine take while they run beside compute (DeepSeek-V3 report, section 3.2.2)."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a replica serves: ``batches`` batches alike in ``seconds``, on ``gpus`` GPUs.

    ``token_seconds`` is the time to first token in prefill (a prompt's whole pass, no queue) and the time
    per output token in decode. ``overlap`` says how the seconds were had.
    """

    phase: Phase
    batch: TimedBatch
    batches: int
    seconds: float
    token_seconds: float
    gpus: int
    gpus_per_node: int
    overlap: bool

    @property
    def tokens_per_s_gpu(self) -> float:
        """Tokens a second of one GPU: input tokens in prefill, output tokens in decode."""
        return self.batch.tokens * self.batches / self.seconds / self.gpus

    @property
    def tokens_per_s_node(self) -> float:
        """The same of a whole node."""
        return self.tokens_per_s_gpu * self.gpus_per_node

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        latency = "tpot_seconds" if self.phase is Phase.DECODE else "ttft_seconds"
        return {
            "phase": str(self.phase),
            "requests_per_replica": self.batch.sequences,
            "new_tokens": self.batch.new,
            "context": self.batch.past + self.batch.new,
            "batches": self.batches,
            "two_batch_overlap": self.overlap,
            latency: self.token_seconds,
            "tokens_per_s_gpu": self.tokens_per_s_gpu,
            "tokens_per_s_node": self.tokens_per_s_node,
        }

    def __str__(self) -> str:
        decode = self.phase is Phase.DECODE
        latency = "TPOT" if decode else "TTFT"
        what = (
            f"{self.batch.sequences:,} requests a replica of {self.batch.past:,} tokens of context"
            if decode
            else f"{self.batch.sequences:,} prompt(s) of {self.batch.new:,} tokens per replica"
        )
        several = f", {self.batches} such batches in the pipeline" if self.batches > 1 else ""
        how = "two-batch overlap" if self.overlap else "one batch at a time"
        return (
            f"{self.phase} throughput, {how}: {self.tokens_per_s_gpu:,.0f} tok/s per GPU, "
            f"{self.tokens_per_s_node:,.0f} per node; {latency} {self.token_seconds * 1e3:,.1f} ms "
            f"({what}{several})"
        )


def half_beside_communication(half: PassTime, *, low_latency: bool) -> MoeTimes | None:
    """A half batch's MoE layer while the other half's communication runs.

    The normal dispatch and combine hold 20 of 132 SMs, which arithmetic lacks for as long as they run: work
    bound by it then takes 132/112 of its time, work bound by memory as long as alone. Low-latency kernels
    hold no SM while bytes travel, but what they copy on the GPU itself runs on the compute stream: the
    other half waits for it. Peak rates know no SMs.
    """
    times = half.moe_times
    if times is None or half.rates is Rates.PEAK:
        return times
    if low_latency:
        return _with_copies(half, times)
    attention, shared = _bound(half.attention) + _bound_of_kinds(half), _bound(half.shared)
    experts = _bound(half.experts)
    more = _slower(times, attention + shared + experts)
    return MoeTimes(
        times.attention + more * attention,
        times.dispatch,
        times.shared + more * shared,
        times.experts + more * experts,
        times.combine,
    )


def _with_copies(half: PassTime, times: MoeTimes) -> MoeTimes:
    """Sends and receives moved to the compute stream: before what they serve, or after what they end."""
    if not half.copies.operators:
        return times
    copies = [each.seconds for each in half.copies.operators]
    # No more than all of a measured exchange is copies.
    there = min(1.0, (times.dispatch - LEAST_WIRE) / (copies[0] + copies[1]))
    back = min(1.0, (times.combine - LEAST_WIRE) / (copies[2] + copies[3]))
    sent, got, returned, added = (
        share * each for share, each in zip((there, there, back, back), copies, strict=True)
    )
    return MoeTimes(
        times.attention + sent + added,
        times.dispatch - sent - got,
        times.shared,
        times.experts + got + returned,
        times.combine - returned - added,
    )


def _slower(times: MoeTimes, bound: float) -> float:
    """The share by which ``bound`` seconds of arithmetic grow: all of it while communication never ends.

    In ``communication`` seconds, work falls behind by 20/132 of what of it is bound by arithmetic.
    """
    if not bound:
        return 0.0
    behind = times.communication * COMMUNICATION_SMS / SMS * bound / times.compute
    return min(SMS / (SMS - COMMUNICATION_SMS) - 1, behind / bound)


def _bound(layer: LayerTime) -> float:
    """Seconds of operators bound by arithmetic."""
    return exact_sum(each.seconds for each in layer.operators if each.bound == "compute")


def _bound_of_kinds(half: PassTime) -> float:
    """The same of mixers of several kinds, on average over the layers."""
    layers = half.traffic.scenario.model.layers
    return exact_sum(len(kind.layers) * _bound(kind.mixer) for kind in half.kinds) / layers


def overlapped_seconds(whole: PassTime, half: MoeTimes) -> float | None:
    """Seconds of a one-stage pass, LM head included, with MoE layers as two halves; None where none can."""
    model, times = whole.traffic.scenario.model, whole.moe_times
    if times is None or whole.traffic.scenario.mesh.stages > 1:
        return None
    found = overlap_two(times, half, layers=model.moe_layers)
    return whole.seconds + whole.head.seconds - model.moe_layers * whole.moe_layer_seconds + found.seconds


def throughput(
    whole: PassTime,
    batch: TimedBatch,
    half: MoeTimes | None = None,
    pipeline: Pipeline | None = None,
    decode: DecodePipeline | None = None,
    *,
    chunked: bool = False,
) -> tuple[Throughput, ...]:
    """Of one batch at a time, and where halves are given and no pipeline is in the way, of two.

    ``chunked`` says that ``pipeline`` carries ``batch`` once, in chunks.

    Raises:
        ConfigError: for a batch without tokens.
    """
    scenario = whole.traffic.scenario
    whole_number("throughput.tokens", batch.tokens)
    gpus, node = scenario.mesh.replica_size * scenario.mesh.stages, scenario.cluster.gpus_per_node

    alone = whole.seconds + whole.head.seconds

    def of(batches: int, seconds: float, token: float, overlap: bool = False) -> Throughput:
        return Throughput(batch.phase, batch, batches, seconds, token, gpus, node, overlap)

    if decode is not None:
        groups = decode.groups
        return (of(groups, decode.seconds_per_token, decode.seconds_per_token),)
    if pipeline is not None and chunked:
        return (of(1, pipeline.makespan, pipeline.makespan),)
    if pipeline is not None:
        return (of(pipeline.micro_batches, pipeline.makespan, alone),)
    found = [of(1, alone, alone)]
    together = None if half is None else overlapped_seconds(whole, half)
    if together is not None:
        found.append(of(1, together, together, overlap=True))
    return tuple(found)
