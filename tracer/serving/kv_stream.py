"""The K/V hand-over streamed: each layer's K/V leaves when the layer is done, behind the next one's work.

What is left after prefill's last layer is exposed. It is simulated on two streams, compute and a GPU's link,
and stands beside its closed form: the transfers from layer k on cannot start before k is computed, so for the
link that ends last

    exposed = max over k of ( Σ_{l≥k} transfer_l − Σ_{l>k} compute_l ),

which is ``t + (L-1)·max(0, t - c)`` for L layers alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum, format_seconds
from tracer.errors import ConfigError
from tracer.mesh.hardware import hardware_preset
from tracer.timing.pass_time import pass_time
from tracer.timing.schedules.streams import Placed, Task, makespan, run_streams

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.serving.kv_handover import KvHandover

Seconds = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class KvStream:
    """A prompt's prefill and the link that is done last, layer by layer.

    ``compute`` are seconds of each layer (with the pipeline send that precedes a stage's first), ``transfer``
    those of its K/V on that link, 0 where the link has no part in it. ``pool`` and ``rank`` name the GPU.
    """

    pool: str
    rank: int
    compute: Seconds
    transfer: Seconds
    placed: tuple[Placed, ...]
    after_seconds: float
    assumption: str

    @property
    def prefill_seconds(self) -> float:
        """Prefill of the prompt."""
        return exact_sum(self.compute)

    @property
    def exposed_seconds(self) -> float:
        """What the simulation leaves after prefill's last layer."""
        return makespan(self.placed) - self.prefill_seconds

    @property
    def closed_form_seconds(self) -> float:
        """The same by the closed form."""
        return exposed_closed_form(self.compute, self.transfer)

    @property
    def hidden_seconds(self) -> float:
        """What streaming saves against a transfer after prefill."""
        return self.after_seconds - self.exposed_seconds

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        names = ("pool", "rank", "prefill_seconds", "exposed_seconds", "closed_form_seconds")
        found = {name: getattr(self, name) for name in names}
        return found | {"after_prefill_seconds": self.after_seconds, "assumption": self.assumption}

    def __str__(self) -> str:
        return (
            f"layer by layer behind prefill's {format_seconds(self.prefill_seconds)}: "
            f"{format_seconds(self.exposed_seconds)} exposed on the link of {self.pool} GPU {self.rank} "
            f"(closed form {format_seconds(self.closed_form_seconds)}), against "
            f"{format_seconds(self.after_seconds)} after prefill ({self.assumption})"
        )


def exposed_closed_form(compute: Seconds, transfer: Seconds) -> float:
    """Max over k of (Σ_{l≥k} transfer − Σ_{l>k} compute), over layers k whose K/V uses the link.

    >>> exposed_closed_form((3.0, 3.0, 3.0), (1.0, 1.0, 1.0)), exposed_closed_form((1.0,) * 3, (3.0,) * 3)
    (1.0, 7.0)
    """
    sent = list(accumulate(reversed(transfer)))[::-1]
    worked = list(accumulate(reversed(compute)))[::-1]
    each = zip(transfer, sent, worked, compute, strict=True)
    return max([0.0, *(after - (work - own) for send, after, work, own in each if send > 0)])


def kv_stream(moved: KvHandover, hardware: str | None = None) -> KvStream:
    """Stream a whole prompt's hand-over behind prefill on a GPU, or on the one that its cluster names.

    Raises:
        ConfigError: for one position's hand-over, or when the GPU's rates or the model's sizes are not known.
    """
    prefill = moved.pools.prefill
    gpu = hardware_preset(hardware) if hardware else prefill.cluster.gpu
    if moved.position is not None:
        raise ConfigError("position", moved.position, "has no prefill to hide behind", "stream the prompt")
    if gpu is None:
        rule = "is needed to time what hides the K/V's transfer"
        raise ConfigError(
            "cluster.hardware", None, rule, "add it to [cluster], for instance hardware = 'h100'"
        )
    name = hardware or prefill.cluster.hardware or gpu.name
    compute = _compute(moved, gpu)
    link = moved.pools.link
    streams = []
    for pool, rank, sizes in _links(moved):
        transfer = tuple(link.latency_s + size / link.bytes_per_s if size else 0.0 for size in sizes)
        streams.append((exposed_closed_form(compute, transfer), pool, rank, transfer))
    _, pool, rank, transfer = max(streams, key=lambda each: each[0])
    placed = run_streams(_tasks(compute, transfer))
    return KvStream(
        pool,
        rank,
        compute,
        transfer,
        placed,
        moved.seconds,
        _assumption(moved, name),
    )


def stream_or_why(moved: KvHandover) -> tuple[KvStream | None, str | None]:
    """The stream, or None and what is missing for it."""
    try:
        return kv_stream(moved), None
    except ConfigError as error:
        return None, str(error)


def _compute(moved: KvHandover, hardware: Hardware) -> Seconds:
    """Seconds of each layer of the prompt's pass, a stage's first with the send that brings its rows."""
    prefill = moved.pools.prefill
    whole = pass_time(prefill, hardware)
    found, stage = [], 0
    for layer, own in enumerate(whole.layer_seconds, start=1):
        before, stage = stage, prefill.stage_of_layer(layer)
        found.append(own + (whole.send_seconds if stage != before else 0.0))
    return tuple(found)


def _links(moved: KvHandover) -> Iterator[tuple[str, int, tuple[float, ...]]]:
    """Bytes of each layer on each GPU's link: out of prefill, into decode; of links alike the first."""
    layers = moved.pools.prefill.model.layers
    found: dict[tuple[str, int], list[float]] = {}
    for piece in moved.pieces:
        for key in (("prefill", piece.src), ("decode", piece.dst)):
            sizes = found.setdefault(key, [0.0] * layers)
            for layer in piece.layers:
                sizes[layer - 1] += piece.bytes / len(piece.layers)
    seen = set()
    for (pool, rank), sizes in found.items():
        row = tuple(sizes)
        if row not in seen:
            seen.add(row)
            yield pool, rank, row


def _tasks(compute: Seconds, transfer: Seconds) -> Iterator[Task]:
    for layer, (work, send) in enumerate(zip(compute, transfer, strict=True), 1):
        yield Task(f"layer {layer} compute", "compute", work)
        if send:
            yield Task(f"layer {layer} transfer", "link", send, (f"layer {layer} compute",))


def _assumption(moved: KvHandover, hardware: str) -> str:
    link = moved.pools.link
    latency = f" + {link.latency_s * 1e6:g} µs a layer" if link.latency_s else ""
    return (
        f"one prompt on {hardware} at peak; a layer's K/V leaves when the whole layer is done; all GPUs at "
        f"once, each over its own link at {link.bytes_per_s / 1e9:g} GB/s{latency}, which nothing else uses"
    )
