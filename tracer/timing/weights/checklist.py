"""When moving weights is valid at all, as a checklist; what fails says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.model.parameters import count_parameters, expert_bytes
from tracer.model.weights import WeightPart
from tracer.scenario.token import Phase
from tracer.timing.weights.layer import contest

if TYPE_CHECKING:
    from tracer.timing.batch import TimedBatch
    from tracer.timing.weights.group import MoeGroup

BUFFERS = 2


@dataclass(frozen=True, slots=True)
class Check:
    """One condition: whether it holds, and the figures that decide it."""

    name: str
    holds: bool
    why: str

    def __str__(self) -> str:
        return f"[{'x' if self.holds else ' '}] {self.name}: {self.why}"


def dwdp_checklist(
    group: MoeGroup, batch: TimedBatch, *, tp: int = 1, nvlink_domains: int = 1
) -> tuple[Check, ...]:
    """Conditions for DWDP (the source's validity domain), for one pass of ``batch`` a rank.

    ``tp`` is the tensor-parallel size inside the group, ``nvlink_domains`` the NVLink domains it spans.

    Raises:
        ConfigError: for a size the model lacks, or a rate no source states.
    """
    return (
        _phase(batch),
        _fabric(group, nvlink_domains),
        Check("tensor parallelism", tp == 1, f"tp = {tp}; the known implementations need 1"),
        _window(group, batch),
        _memory(group),
        _buffers(group),
    )


def _phase(batch: TimedBatch) -> Check:
    holds = batch.phase is Phase.PREFILL
    why = "a pass has many tokens" if holds else "decode has few tokens per pass, experts stay as large"
    return Check("prefill", holds, f"{batch.phase}: {why}")


def _window(group: MoeGroup, batch: TimedBatch) -> Check:
    found = contest(group, batch)
    why = f"compute {found.dwdp_compute * 1e3:.3g} ms a layer, prefetch {found.prefetch_seconds * 1e3:.3g} ms"
    return Check("compute window", found.window_ratio >= 1, why)


def _fabric(group: MoeGroup, nvlink_domains: int) -> Check:
    rate = f"{group.fabric.bytes_per_s / 1e9:g} GB/s one way"
    if nvlink_domains == 1:
        return Check("one NVLink island", True, rate)
    return Check(
        "one NVLink island", False, f"the group spans {nvlink_domains}: weights would cross at {rate}"
    )


def _memory(group: MoeGroup) -> Check:
    """Whole attention, the kept experts, and two buffers for the rest of a layer, against HBM."""
    need = resident_bytes(group) + BUFFERS * group.remote_bytes
    room = group.hardware.hbm_bytes
    if room is None:
        return Check("memory", False, f"needs {need / 1e9:.4g} GB; no source states the GPU's memory")
    return Check("memory", need <= room, f"weights and buffers {need / 1e9:.4g} GB of {room / 1e9:.4g} GB")


def _buffers(group: MoeGroup) -> Check:
    each = group.remote_bytes / 1e9
    holds = group.kept < group.experts
    why = (
        f"{BUFFERS} buffers of {each:.3g} GB"
        if holds
        else "every rank keeps every expert: plain data parallelism"
    )
    return Check("something to pull", holds, why)


def resident_bytes(group: MoeGroup) -> float:
    """Bytes of weights a rank keeps: everything but experts whole, and its own experts of every layer."""
    counted = count_parameters(group.spec)
    rest = counted.weight_bytes - counted.of(WeightPart.EXPERTS).weight_bytes
    return rest + group.spec.moe_layers * group.kept * expert_bytes(group.spec)
