"""Dispatch, combine and TP's collectives of a layer by measured calls."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.model.dtype import Dtype
from tracer.scenario.plan import Contract, DispatchMode, Sp
from tracer.timing import estimate
from tracer.timing.calibration.answer import Estimate, one_after_the_other
from tracer.timing.dispatch_time import DISPATCH, ExchangeTime
from tracer.timing.measured.compute import scaled_estimate
from tracer.traffic.moe import RowBytes, dispatched_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracer.mesh.hardware import Hardware
    from tracer.scenario.scenario import Scenario
    from tracer.traffic.line import AxisTraffic
    from tracer.traffic.traffic import CommVolume

FEWER_COPIES = 0.98
"""Below this share of a uniform router's copies between nodes, a dispatch is scaled by what is sent."""


def linked(hardware: Hardware, scenario: Scenario) -> Hardware:
    """The hardware with the cluster's own links, and NVLink domains as its nodes."""
    cluster = scenario.cluster
    links = (cluster.nvlink.bytes_per_s, cluster.ib.bytes_per_s)
    own = (hardware.nvlink_bytes_per_s, hardware.ib_bytes_per_s)
    return replace(
        hardware,
        name=hardware.name if links == own else f"{hardware.name} with the cluster's links",
        nvlink_bytes_per_s=cluster.nvlink.bytes_per_s,
        ib_bytes_per_s=cluster.ib.bytes_per_s,
        gpus_per_node=cluster.gpus_per_nvlink_domain,
        gpus_per_nvlink_domain=cluster.gpus_per_nvlink_domain,
    )


def measured_exchange(
    scenario: Scenario,
    traffic: CommVolume,
    peak: Mapping[str, ExchangeTime],
    gpu: Hardware,
    imbalance: float = 1.0,
) -> dict[str, ExchangeTime]:
    """Dispatch and combine with estimates beside their bytes; at peak where no measured call fits.

    The GPU that gets ``imbalance`` times the mean of the picks waits for as many more bytes.
    """
    found = {name: _exchange(scenario, traffic, name, each, gpu) for name, each in peak.items()}
    if imbalance == 1.0 or scenario.plan.contract is not Contract.EP:
        return found
    return {name: _of_busiest(each, imbalance) for name, each in found.items()}


def _of_busiest(exchange: ExchangeTime, imbalance: float) -> ExchangeTime:
    """An exchange whose bytes at the busiest GPU are ``imbalance`` times the mean."""
    known = exchange.estimate
    if known is None:
        return exchange
    floor = known.floor_seconds * imbalance
    seconds = known.seconds + floor - known.floor_seconds
    basis = f"{known.basis}, bytes of the busiest GPU {imbalance:.3g} times the mean"
    return replace(exchange, estimate=Estimate(seconds, basis, None, floor))


def _exchange(
    scenario: Scenario, traffic: CommVolume, name: str, peak: ExchangeTime, gpu: Hardware
) -> ExchangeTime:
    rows = dispatched_rows(scenario, traffic.tokens)
    members = scenario.mesh.group(scenario.home, ("etp", "ep"))
    try:
        if scenario.plan.contract is Contract.AG_RS:
            found = _gathered(scenario, name, rows, members, gpu)
        else:
            found = _dispatched(scenario, name, rows, members, peak, gpu)
    except ConfigError:
        return peak
    return replace(peak, estimate=found)


def _domains(scenario: Scenario, members: Sequence[int]) -> int:
    return len({scenario.cluster.nvlink_domain_of(rank) for rank in members})


def _gathered(scenario: Scenario, name: str, rows: float, members: Sequence[int], gpu: Hardware) -> Estimate:
    """All rows to all by an all-gather, and their sums back by a reduce-scatter."""
    size = RowBytes.of(scenario)
    each = size.dispatch if name == DISPATCH else size.combine
    kind = "all_gather" if name == DISPATCH else "reduce_scatter"
    nbytes = max(1, ceil(rows * len(members) * each))
    return estimate.collective(gpu, kind, len(members), nbytes, _domains(scenario, members))


def _dispatched(
    scenario: Scenario, name: str, rows: float, members: Sequence[int], peak: ExchangeTime, gpu: Hardware
) -> Estimate:
    """DeepEP's kernels; uniform picks, fewer copies where the router limits nodes."""
    model, low = scenario.model, scenario.plan.dispatch is DispatchMode.LOW_LATENCY
    nodes, always = _domains(scenario, members), len(scenario.always_picked)
    if len(members) % nodes:
        raise ConfigError("mesh.ep", len(members), "is spread unevenly over nodes", "spread it evenly")
    picks = model.need("top_k", "time a dispatch") + always
    experts = len(members) * ceil((model.need("experts", "time a dispatch") + always) / len(members))
    sent = scenario.dtype.dispatch if name == DISPATCH else scenario.dtype.combine
    dtype = "fp8" if sent is Dtype.FP8 else "bfloat16"
    ask = estimate.dispatch if name == DISPATCH else estimate.combine
    setting = (nodes, len(members) // nodes, max(1, ceil(rows)), model.need("hidden", "time a dispatch"))
    found = ask(gpu, "low_latency" if low else "normal", *setting, picks, experts, dtype)
    if nodes == 1 or not model.top_groups or not found.floor_seconds:
        return found
    share = peak.seconds / found.floor_seconds
    return scaled_estimate(found, share, "nodes that the router limits") if share < FEWER_COPIES else found


def measured_axes(scenario: Scenario, traffic: CommVolume, gpu: Hardware) -> dict[tuple[str, str], Estimate]:
    """TP's collectives by axis and part; other axes stay on their links at peak."""
    found = {}
    for line in traffic.lines:
        if line.axis == Axis.TP and line.bytes:
            try:
                found[line.axis, line.part] = _tp(scenario, line, gpu)
            except ConfigError:
                continue
    return found


def _tp(scenario: Scenario, line: AxisTraffic, gpu: Hardware) -> Estimate:
    """An all-gather and a reduce-scatter with sequence parallelism, else an all-reduce."""
    members = scenario.mesh.group(scenario.home, ("tp",))
    tp, domains = len(members), _domains(scenario, members)
    if not line.formula.startswith(("2·(tp-1)/tp", "(tp-1)/tp")):
        raise ConfigError("traffic.part", line.part, "is not one of TP's collectives", "leave it at peak")
    collectives = 2 if line.formula.startswith("2") else 1
    nbytes = max(1, ceil(line.bytes * tp / ((tp - 1) * collectives)))
    if line.part == "moe_gather":
        kinds = ["all_gather"]
    elif scenario.plan.sp is Sp.MEGATRON:
        kinds = ["all_gather", "reduce_scatter"][-collectives:]
    else:
        kinds = ["all_reduce"]
    return one_after_the_other([estimate.collective(gpu, kind, tp, nbytes, domains) for kind in kinds])
