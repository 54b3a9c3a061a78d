"""Whole passes of DeepSeek-V3 as others measured them, beside ours; nothing here was used in a fit."""

from __future__ import annotations

from functools import cache
from typing import Any

from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset
from tracer.proof.published.comparison import PublishedComparison, Row
from tracer.proof.published.measurements import published
from tracer.scenario.scenario import Scenario
from tracer.scenario.token import Phase
from tracer.timing.basis import Rates
from tracer.timing.batch import TimedBatch
from tracer.timing.pass_time import PassTime, pass_time
from tracer.timing.throughput import Throughput, half_beside_communication, throughput

_ASSUMES = (
    "loads even, picks limited to 4 of 8 groups, small kernels as quantise kernels of as many bytes, 20 of "
    "132 SMs while normal dispatch runs, low-latency copies on the compute stream, "
    "two-batch overlap, no scheduler, no MTP; an H800's FP8 taken as an H100's"
)


def compare_published_passes(rates: Rates = Rates.CALIBRATED) -> PublishedComparison:
    """Tokens a second and node of prefill and decode: DeepSeek's profile, and SGLang on 96 H100."""
    data = published("passes")["rows"]
    return _compared(
        f"DeepSeek-V3 passes: {rates} rates",
        "DeepSeek's published profile (balanced experts), and SGLang's 4 + 9 nodes (its own loads but one)",
        data,
        rates,
    )


def compare_overview() -> PublishedComparison:
    """DeepSeek's production averages, which hold nights, uneven loads and waiting too."""
    data = published("passes")["overview"]
    return _compared(
        "DeepSeek in production",
        "averages of a day; prompts and batches are not stated",
        data,
        Rates.CALIBRATED,
    )


def _compared(title: str, setting: str, data: list[dict[str, Any]], rates: Rates) -> PublishedComparison:
    rows = tuple(
        Row(
            entry["name"],
            entry["tokens_per_s_node"],
            max(each.tokens_per_s_node for each in _served(**_key(entry), rates=rates)),
            "tok/s/node",
            f"{'balanced' if entry['balanced'] else 'its own loads'}, EP{entry['ep']}",
        )
        for entry in data
    )
    sources = "; ".join(dict.fromkeys(entry["source"] for entry in data))
    return PublishedComparison(title, sources, setting, f"{rates} rates; {_ASSUMES}", rows)


def compare_overlap(rates: Rates = Rates.CALIBRATED) -> PublishedComparison:
    """Throughput with two-batch overlap over that without, as SGLang measured it at three batches."""
    data = published("passes")["overlap"]
    rows = []
    for entry in data:
        alone, together = _served(**_key(entry), rates=rates)
        rows.append(Row(entry["name"], entry["speedup"], alone.seconds / together.seconds, "ratio"))
    return PublishedComparison(
        f"Two-batch overlap: {rates} rates",
        "; ".join(dict.fromkeys(entry["source"] for entry in data)),
        "SGLang on H100: prefill EP32, decode EP72; prompts of the prefill batch are not stated (here 4,096)",
        f"{rates} rates; {_ASSUMES}",
        tuple(rows),
    )


def same_sign(compared: PublishedComparison) -> bool:
    """Whether every predicted speed-up gains where the published one does, and loses where it does."""
    return all((row.predicted > 1) == (row.published > 1) for row in compared.rows)


def _key(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("gpu", "phase", "ep", "slots", "requests", "length")}


@cache
def _served(
    gpu: str, phase: str, ep: int, slots: int, requests: int, length: int, rates: Rates
) -> tuple[Throughput, ...]:
    """One batch at a time, and two overlapped."""
    scenario, hardware = _scenario(gpu, Phase(phase), ep, slots, length), hardware_preset(gpu)
    decode = phase == Phase.DECODE
    batch = TimedBatch.decoding(requests, length) if decode else TimedBatch.prompts(length, requests)
    whole = pass_time(scenario, hardware, batch=batch, rates=rates)
    half: PassTime = pass_time(scenario, hardware, batch=batch, parts=2, rates=rates, like=whole)
    return throughput(whole, batch, half_beside_communication(half, low_latency=decode))


def _scenario(gpu: str, phase: Phase, ep: int, slots: int, length: int) -> Scenario:
    """Attention data-parallel on every GPU, one expert-parallel group over all of them."""
    model = model_preset("deepseek-v3")
    told: dict[str, Any] = {
        "phase": str(phase),
        "cluster": {"hardware": gpu, "nodes": ep // hardware_preset(gpu).gpus_per_node},
        "model": {"preset": "deepseek-v3"},
        "mesh": {"dp": ep, "ep": ep},
        "dtype": {"dispatch": "fp8"},
        "token": {"prompt": length},
    }
    extra = slots - model.need("experts", "count the redundant slots")
    return Scenario.from_dict(told | ({"placement": {"redundant": extra}} if extra else {}))
