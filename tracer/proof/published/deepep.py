"""DeepEP's published dispatch and combine beside ours, at peak and at fitted rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracer.display import exact_sum
from tracer.errors import ConfigError, one_of
from tracer.mesh.cluster import Cluster, Link, Tier
from tracer.mesh.hardware import hardware_preset
from tracer.mesh.mesh import Mesh
from tracer.model.dtype import Dtype, Dtypes, dispatch_row_bytes
from tracer.model.spec import ModelSpec
from tracer.proof.published.comparison import PublishedComparison, Row
from tracer.proof.published.measurements import published
from tracer.scenario.deployment import Deployment
from tracer.scenario.scenario import Scenario
from tracer.scenario.token import Token
from tracer.timing import estimate
from tracer.timing.dispatch_time import batch_exchange
from tracer.timing.rates import PEAK, rates_of, relative_fit
from tracer.traffic.chance import HitChance
from tracer.traffic.dispatch import DispatchCopies, expected_copies
from tracer.trip.clock import LinkRates

SETS = ("deepep_normal", "deepep_low_latency", "deepep_v2")
_H100_LINKS = "an H100's NVLink, which the source does not name"


@dataclass(frozen=True, slots=True)
class DeepepRow:
    """One published dispatch or combine: its seconds, and the expected copies of a row."""

    name: str
    seconds: float
    rows: int
    row_bytes: int
    copies: DispatchCopies
    low_latency: bool

    def predicted(self, rates: LinkRates) -> float:
        """Our seconds, tiers overlapped."""
        return batch_exchange(
            self.copies, self.rows, self.row_bytes, rates, low_latency=self.low_latency
        ).seconds


def peak_rates(name: str) -> LinkRates:
    """Peak links of the hardware of a set: H800; the second version's GPU is unnamed and taken as H100."""
    hardware = hardware_preset("h100" if name == "deepep_v2" else "h800")
    why = "compare with a measurement"
    return LinkRates(
        Link(hardware.need("nvlink_bytes_per_s", why)), Link(hardware.need("ib_bytes_per_s", why))
    )


def exchanges(name: str) -> tuple[DeepepRow, ...]:
    """Every row of a set, dispatch and combine apart, with the time its bandwidth or latency means.

    Raises:
        ConfigError: for a set that is not DeepEP's.
    """
    one_of("published", name, SETS)
    return tuple(_exchanges(name, published(name)))


def _exchanges(name: str, data: dict[str, Any]) -> Iterator[DeepepRow]:
    low = name == "deepep_low_latency"
    for entry in data["rows"]:
        scenario = _scenario(data, entry["ep"])
        copies = expected_copies(scenario, 1)
        for what in ("dispatch", "combine"):
            size = _row_bytes(data["hidden"], what, low)
            seconds = (
                entry[f"{what}_us"] * 1e-6
                if low
                else data["tokens"] * _counted_copies(scenario) * size / (entry[f"{what}_GBps"] * 1e9)
            )
            label = f"EP{entry['ep']} {what}"
            yield DeepepRow(label, seconds, data["tokens"], size, copies, low)


def _row_bytes(hidden: int, what: str, low_latency: bool) -> int:
    return dispatch_row_bytes(hidden, "fp8", low_latency=low_latency) if what == "dispatch" else 2 * hidden


def _scenario(data: dict[str, Any], ep: int) -> Scenario:
    """The measured mesh: ``ep`` ranks with their own tokens, and groups that are nodes where they limit."""
    nodes = ep // data["gpus_per_node"]
    kept = min(nodes, data.get("kept_groups", nodes))
    limited = kept < nodes
    model = ModelSpec(
        layers=1,
        hidden=data["hidden"],
        heads=1,
        experts=data["experts"],
        top_k=data["top_k"],
        expert_groups=nodes if limited else None,
        top_groups=kept if limited else None,
    )
    deployment = Deployment(
        cluster=Cluster(ep, data["gpus_per_node"]),
        mesh=Mesh.build(dp=ep, ep=ep),
        model=model,
        dtype=Dtypes(dispatch=Dtype.FP8),
    )
    return Scenario(deployment, Token(prompt=1))


def _counted_copies(scenario: Scenario) -> float:
    """Copies a row that DeepEP's GB/s count: distinct nodes with the own one; one node: distinct GPUs."""
    model, mesh, cluster = scenario.model, scenario.mesh, scenario.cluster
    chance = HitChance.of_model(model)
    placement = scenario.placement_of(1)
    ranks = range(mesh.world_size)
    if cluster.nvlink_domains == 1:
        return exact_sum(chance.of_set(placement.experts_of(rank)) for rank in ranks)
    sets = [
        [
            e
            for rank in ranks
            if cluster.nvlink_domain_of(rank) == nvlink_domain
            for e in placement.experts_of(rank)
        ]
        for nvlink_domain in range(cluster.nvlink_domains)
    ]
    return exact_sum(chance.of_set(held) for held in sets)


def compare_deepep(name: str, profile: str = PEAK) -> PublishedComparison:
    """A set beside our times in µs, at peak rates or at a profile's.

    Raises:
        ConfigError: for an unknown set or profile.
    """
    data, peak = published(name), peak_rates(name)
    rates = rates_of(profile, peak)
    if name == "deepep_v2":
        rates = LinkRates(peak.nvlink, rates.ib)
    rows = tuple(
        Row(each.name, each.seconds * 1e6, each.predicted(rates) * 1e6, "µs") for each in exchanges(name)
    )
    return PublishedComparison(
        f"DeepEP, {name.removeprefix('deepep_').replace('_', ' ')}: {profile} rates",
        data["source"],
        f"{data['setting']}; {data['hardware']}",
        _assumptions(name, profile),
        rows,
    )


def compare_deepep_calibrated(name: str) -> PublishedComparison:
    """A set beside :func:`tracer.timing.estimate.dispatch` and ``combine``; none of its rows was fitted.

    The measured tables are of H100 nodes; an H800 is answered by them over its own NVLink. Where a
    router keeps to some nodes, the time is scaled by the bytes that are then sent.

    Raises:
        ConfigError: for a set that is not DeepEP's.
    """
    data, peak = published(name), peak_rates(name)
    low = name == "deepep_low_latency"
    gpu = hardware_preset("h100" if name == "deepep_v2" else "h800")
    rows = []
    for each in exchanges(name):
        ask = estimate.dispatch if each.name.endswith("dispatch") else estimate.combine
        dtype = "fp8" if each.name.endswith("dispatch") else "bfloat16"
        nodes = int(each.name.split()[0].removeprefix("EP")) // data["gpus_per_node"]
        setting = (
            nodes,
            data["gpus_per_node"],
            data["tokens"],
            data["hidden"],
            data["top_k"],
            data["experts"],
        )
        found = ask(gpu, "low_latency" if low else "normal", *setting, dtype)
        limited = nodes > data.get("kept_groups", nodes)
        share = each.predicted(peak) / found.floor_seconds if limited else 1.0
        rows.append(Row(each.name, each.seconds * 1e6, found.seconds * share * 1e6, "µs"))
    words = "H100 as the source names no GPU" if name == "deepep_v2" else "transfer by data sheet from H100"
    return PublishedComparison(
        f"DeepEP, {name.removeprefix('deepep_').replace('_', ' ')}: calibrated",
        data["source"],
        f"{data['setting']}; {data['hardware']}",
        f"fits of SGLang's DeepEP tables, {words}; nothing fitted on these rows",
        tuple(rows),
    )


def _assumptions(name: str, profile: str) -> str:
    common = "uniform picks, tiers overlapped, own copies not sent"
    if profile == PEAK:
        return f"{common}; peak rates, no latency" + (f"; {_H100_LINKS}" if name == "deepep_v2" else "")
    if name == "deepep_v2":
        return f"{common}; IB as the profile was fitted, on none of these rows; {_H100_LINKS}"
    return f"{common}; rates fitted on these very rows"


def fit_exchange_rates(name: str) -> LinkRates:
    """Rates fitted to a set: relative least squares over its rows, each charged to the tier that binds.

    Normal kernels: no latency, NVLink from the rows that NVLink binds, IB from the rest. Low latency: one
    latency for all rows beside the two rates. Which tier binds is settled by repeating from peak rates
    until it no longer changes.

    Raises:
        ConfigError: for a set of another kind, or one that never settles.
    """
    rates, rows = peak_rates(name), exchanges(name)
    for _ in range(20):
        bound = [_binding(row, rates) for row in rows]
        rates = _fit(rows, bound)
        if bound == [_binding(row, rates) for row in rows]:
            return rates
    raise ConfigError("fit", name, "does not settle which tier binds", "fit fewer rows")


def _binding(row: DeepepRow, rates: LinkRates) -> str | None:
    return batch_exchange(row.copies, row.rows, row.row_bytes, rates, low_latency=row.low_latency).binding


def _fit(rows: tuple[DeepepRow, ...], bound: list[str | None]) -> LinkRates:
    columns: dict[str, list[float]] = {Tier.NVLINK: [], Tier.IB: []}
    for row, tier in zip(rows, bound, strict=True):
        free = LinkRates(Link(1.0), Link(1.0))
        sent = batch_exchange(row.copies, row.rows, row.row_bytes, free, low_latency=row.low_latency)
        columns[Tier.NVLINK].append(sent.nvlink_bytes if tier == Tier.NVLINK else 0.0)
        columns[Tier.IB].append(sent.ib_bytes if tier == Tier.IB else 0.0)
    low = rows[0].low_latency
    table = [*columns.values(), *([[1.0] * len(rows)] if low else [])]
    nvlink, ib, *latency = relative_fit(table, [row.seconds for row in rows])
    wait = latency[0] if low else 0.0
    return LinkRates(Link(1 / nvlink, wait), Link(1 / ib, wait))
