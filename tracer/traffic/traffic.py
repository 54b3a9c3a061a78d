"""Closed forms: what each axis sends per GPU and layer, with the formula, before anything is run.

T is the padded prompt of a replica, in decode the padded new tokens of its step (one per request), d the
hidden size; every replica has as many, and the router picks uniformly. The forms are section 7 of the
counting rules; each agrees with a census, and with the sum of all tokens' trips. The table prints them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum, format_bytes, format_seconds, left, text_table
from tracer.mesh.axes import Axis
from tracer.mesh.group_kinds import place_kinds
from tracer.model.dtype import BYTES
from tracer.scenario.plan import Contract, Embedding, SharedTp, Sp, TpAlgo
from tracer.scenario.step import mesh_line, pass_words, rows_words, tokens_per_replica
from tracer.traffic.attention import attention_lines, head_lines
from tracer.traffic.gathers import gather_lines
from tracer.traffic.line import AxisTraffic, crossing_share, layers_by_stage, plain_line
from tracer.traffic.moe import moe_line
from tracer.traffic.routing import routing_lines
from tracer.trip.hop import Part
from tracer.trip.hops.moves import row_elements
from tracer.trip.kinds import has_ffn, mixes_tokens, not_modelled

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


SCHEMA = 1
ASSUMES = "peak link rates, no latency, the two tiers overlapped, no overlap with compute, uniform picks"


@dataclass(frozen=True, slots=True)
class CommVolume:
    """Every line of a scenario's expected traffic; ``print`` shows a table."""

    scenario: Scenario
    tokens: int
    lines: tuple[AxisTraffic, ...]

    def axis(self, name: str) -> AxisTraffic | None:
        """The first line of an axis: attention's for tp, the MoE block's for ep; None when it is silent."""
        return next((line for line in self.lines if line.axis == name), None)

    @property
    def ib_bytes_per_pass(self) -> float:
        """Bytes a GPU sends between NVLink domains in one forward pass, on average."""
        return exact_sum(line.ib_bytes * line.times for line in self.lines) / self.scenario.mesh.stages

    @property
    def nvlink_bytes_per_pass(self) -> float:
        """Bytes a GPU sends inside its NVLink domain in one forward pass, on average."""
        return exact_sum(line.nvlink_bytes * line.times for line in self.lines) / self.scenario.mesh.stages

    @property
    def seconds_per_pass(self) -> float:
        """Time of all hops of one forward pass through every stage, one after the other."""
        return exact_sum(line.seconds * line.times for line in self.lines)

    def ratio_to_tp(self, line: AxisTraffic) -> float | None:
        """A line's time over TP's in attention; None without TP traffic."""
        base = self.axis(Axis.TP)
        return None if base is None or base.seconds == 0 else line.seconds / base.seconds

    def to_dict(self) -> dict[str, Any]:
        """JSON values: one entry per axis, its first line's figures on top and every line in ``parts``.

        ``tracer/data/schemas/traffic.schema.json`` describes them.
        """
        axes: dict[str, Any] = {}
        for line in self.lines:
            entry = line.to_dict() | {"ratio_to_tp": self.ratio_to_tp(line)}
            axes.setdefault(line.axis, entry | {"parts": []})["parts"].append(entry)
        if "pp" in axes:
            pp = axes["pp"]
            layers_a_chunk = self.scenario.model.layers / len(self.scenario.chunks)
            ratio = pp["ratio_to_tp"]
            pp["ratio_to_tp_per_send"] = ratio
            pp["ratio_to_tp_per_layer"] = None if ratio is None else ratio / layers_a_chunk
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.name,
            "phase": self.scenario.phase,
            "tokens_per_replica": self.tokens,
            "hidden": self.scenario.model.hidden,
            "assumes": ASSUMES,
            "axes": axes,
            "per_pass": {
                "nvlink_bytes": self.nvlink_bytes_per_pass,
                "ib_bytes": self.ib_bytes_per_pass,
                "seconds": self.seconds_per_pass,
            },
        }

    def __str__(self) -> str:

        return traffic_text(self)


def comm_volume(scenario: Scenario) -> CommVolume:
    """Closed forms of a scenario in its phase, averaged over its GPUs.

    Raises:
        ConfigError: when the model lacks a size, or the mesh is too large to list its groups.
    """
    model = scenario.model
    tokens = tokens_per_replica(scenario)
    moe = model.moe_layers
    lines: list[AxisTraffic] = []
    if scenario.mesh.tp > 1:
        lines += _tp_lines(scenario, tokens)
    lines += attention_lines(scenario, tokens)
    if moe:
        found = moe_line(scenario, tokens)
        lines += [] if found is None else [found]
        lines += routing_lines(scenario, tokens)
    if sends := stage_sends(scenario):
        lines.append(_pp_line(scenario, tokens, sends))
    lines += head_lines(scenario, tokens)
    lines += gather_lines(scenario)
    return CommVolume(scenario, tokens, tuple(lines))


def _tp_lines(scenario: Scenario, tokens: int) -> list[AxisTraffic]:
    """TP's sums and gathers: attention, then whatever else is split over it."""
    model, plan = scenario.model, scenario.plan
    mixing = layers_by_stage(scenario, lambda layer: mixes_tokens(model, layer))
    moe = layers_by_stage(scenario, model.is_moe)
    dense = layers_by_stage(scenario, lambda layer: has_ffn(model, layer) and not model.is_moe(layer))
    lines = [_tp_line(scenario, tokens, "attention", mixing, 2)] if sum(mixing) else []
    if sum(dense) and scenario.dense_tp > 1:
        lines.append(_tp_line(scenario, tokens, "ffn", dense, 2))
    if sum(moe) and plan.shared_tp is SharedTp.OWN and model.shared_experts:
        lines.append(_tp_line(scenario, tokens, "shared_expert", moe, 2))
    if sum(moe) and plan.contract is Contract.TP:
        lines.append(_tp_line(scenario, tokens, "moe", moe, 2))
    if sum(moe) and plan.contract is not Contract.TP and plan.sp is Sp.BEFORE_DISPATCH:
        lines.append(_tp_line(scenario, tokens, "moe_gather", moe, 1))
    if plan.embedding is Embedding.VOCAB_PARALLEL:
        first = [1] + [0] * (scenario.mesh.stages - 1)
        lines.append(_tp_line(scenario, tokens, "embedding", first, 1 if plan.sp is Sp.MEGATRON else 2))
    return lines


def _tp_line(scenario: Scenario, tokens: int, part: str, layers: list[int], collectives: int) -> AxisTraffic:
    """All-gather and reduce-scatter of T/cp rows (2 collectives), or one of the two; layers by stage."""
    tp, cp = scenario.mesh.tp, scenario.mesh.cp
    hidden = row_elements(scenario, Part.MOE if part == "moe" else None)
    lead = f"{collectives}·" if collectives > 1 else ""
    return plain_line(
        scenario.cluster,
        "tp",
        part,
        elements=collectives * (tp - 1) * tokens * hidden / (tp * cp),
        element_bytes=_tp_bytes(scenario, collectives),
        ib_share=crossing_share(scenario, (Axis.TP,), layers, ring=scenario.plan.tp_algo is TpAlgo.RING),
        formula=f"{lead}(tp-1)/tp·(T/cp)·d",
        numbers=f"{lead}{tp - 1}/{tp}·({tokens}/{cp})·{hidden}",
        times=sum(layers),
    )


def _tp_bytes(scenario: Scenario, collectives: int) -> float:
    """Bytes of an element: of a gather and a sum on average, where the gather has a dtype of its own."""
    dtype = scenario.dtype
    if scenario.plan.sp is not Sp.MEGATRON or collectives == 1:
        return BYTES[dtype.activations]
    return (BYTES[dtype.gathered] + BYTES[dtype.activations]) / 2


def stage_sends(scenario: Scenario) -> list[tuple[int, int]]:
    """(from stage, to stage) of every boundary between layers that a token crosses."""
    stages = [chunk.stage for chunk in scenario.chunks]
    return [(here, there) for here, there in pairwise(stages) if here != there]


def _pp_line(scenario: Scenario, tokens: int, sends: list[tuple[int, int]]) -> AxisTraffic:
    """Rows a GPU sends to the next stage, once a stage boundary."""
    mesh, cp = scenario.mesh, scenario.mesh.cp
    hidden = scenario.model.need("hidden", "size a row")
    split = scenario.plan.sp is Sp.MEGATRON
    parts = cp * (mesh.tp if split else 1)
    return plain_line(
        scenario.cluster,
        "pp",
        "pipeline",
        elements=tokens * hidden / parts,
        element_bytes=BYTES[scenario.dtype.activations],
        ib_share=_sends_over_ib(scenario, sends),
        formula="(T/(cp·tp))·d per stage boundary" if split else "(T/cp)·d per stage boundary",
        numbers=f"({tokens}/{parts})·{hidden}",
        times=len(sends),
        per="stage boundary",
    )


def _sends_over_ib(scenario: Scenario, sends: list[tuple[int, int]]) -> float:
    """Share of the sends between stages, each GPU's alike, that cross NVLink domains."""
    mesh, domain_of = scenario.mesh, scenario.cluster.nvlink_domain_of
    pairs, crossing = Counter(sends), 0
    for place, count in place_kinds(mesh, scenario.cluster).items():
        domains = [domain_of(mesh.rank_in_stage(stage, place)) for stage in range(mesh.stages)]
        crossing += count * sum(
            times for (here, there), times in pairs.items() if domains[here] != domains[there]
        )
    return crossing / (mesh.stage_size * len(sends))


HEADINGS = ("axis", "part", "per", "elements", "of Td", "bytes", "NVLink", "IB", "time", "x TP", "formula")


def traffic_rows(traffic: CommVolume) -> list[list[str]]:
    """One row per line, in the order of :data:`HEADINGS`."""
    unit = traffic.tokens * (traffic.scenario.model.hidden or 1)
    rows = []
    for line in traffic.lines:
        ratio = traffic.ratio_to_tp(line)
        rows.append(
            [
                line.axis,
                line.part,
                line.per,
                f"{line.elements:,.0f}",
                f"{line.elements / unit:.3g}",
                format_bytes(line.bytes),
                format_bytes(line.nvlink_bytes),
                format_bytes(line.ib_bytes),
                format_seconds(line.seconds) + (f" ({line.tier})" if line.tier else ""),
                "-" if ratio is None else f"{ratio:.3g}",
                f"{line.formula} = {line.numbers}",
            ]
        )
    return rows


def traffic_footer(traffic: CommVolume) -> list[str]:
    """What the figures assume, and the sums of one forward pass."""
    cluster, step = traffic.scenario.cluster, pass_words(traffic.scenario)
    sizes = (traffic.nvlink_bytes_per_pass, traffic.ib_bytes_per_pass)
    nvlink, ib = (format_bytes(size) for size in sizes)
    return [
        f"Sent per GPU in {rows_words(traffic.scenario, traffic.tokens)}. "
        f"NVLink {cluster.nvlink.bytes_per_s / 1e9:g} GB/s, IB {cluster.ib.bytes_per_s / 1e9:g} GB/s a GPU, "
        "one direction.",
        f"Assumes {ASSUMES}.",
        f"One {step}, averaged over all GPUs: {nvlink} on NVLink, {ib} over IB, "
        f"{format_seconds(traffic.seconds_per_pass)} when hops follow one another.",
        *(f"Not modelled: {text}." for text in not_modelled(traffic.scenario)),
    ]


def traffic_text(traffic: CommVolume) -> str:
    """The whole report in columns."""
    columns = [left(heading, gap=2 * bool(place)) for place, heading in enumerate(HEADINGS)]
    lines = text_table(columns, traffic_rows(traffic))
    return "\n".join([mesh_line(traffic.scenario), "", *lines, "", *traffic_footer(traffic)])
