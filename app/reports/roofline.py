"""Roofline: tokens per expert against batch, and intensity against the roofs of the chosen GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query.address import scenario_of
from app.reports.blocks import (
    Block,
    alert,
    chart,
    choice_control,
    counts,
    heading,
    note,
    number_control,
    table,
)
from app.reports.numbers import short, whole_of
from layouts.charts.lines import Curve, lines_figure
from layouts.charts.roofline import roofline_figure
from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.mesh.hardware import hardware_preset, hardware_preset_names
from tracer.model.parameters import part_format
from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart
from tracer.scenario.step import mesh_line
from tracer.serving.phases import phase_table
from tracer.timing.measured.compute import all_experts
from tracer.timing.operators import rate_of
from tracer.timing.roofline import RoofPoint, expert_points, expert_roof, ridge

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.scenario.scenario import Scenario
    from tracer.timing.calibration.answer import Estimate

BATCHES = tuple(1 << power for power in range(21))


def roofline_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for values that are no scenario, GPU or batch.
    """
    scenario = scenario_of(query)
    name = query.get("hardware") or scenario.cluster.hardware or "h100"
    own = scenario.cluster.gpu
    hardware = own if own is not None and not query.get("hardware") else hardware_preset(name)
    asked = whole_of(query, "tokens", None, most=1 << 30)
    try:
        marked = _phases(scenario) | ({f"{asked:,} tokens": asked} if asked else {})
        blocks = _blocks(scenario, hardware, marked)
    except ConfigError as error:
        # The controls stay: another GPU may have the figure that this one lacks.
        blocks = [alert(error)]
    choices = [(each, each) for each in hardware_preset_names()]
    return {
        "title": mesh_line(scenario),
        "controls": [
            choice_control("hardware", "GPU", name.lower(), choices),
            number_control("tokens", "Mark a batch (tokens of all GPUs)", asked, least=1),
        ],
        "blocks": blocks,
    }


def _phases(scenario: Scenario) -> dict[str, int]:
    """Tokens that a step of prefill and of decode brings to the experts, by the engine's own count."""
    row = next(row for row in phase_table(scenario).rows if row.axis == Axis.EP)
    if "tokens" not in row.prefill.figures:
        rule = "is needed for a roofline of expert GEMMs"
        raise ConfigError("model.experts", None, rule, "choose a scenario with experts, such as six-cuts")
    return {
        "prefill": int(row.prefill.figures["tokens"]),
        "decode": int(row.decode.figures["tokens"]),
    }


def _blocks(scenario: Scenario, hardware: Hardware, marked: dict[str, int]) -> list[Block]:
    model, unstated = scenario.model, WeightFormat(scenario.dtype.weights)
    rate = rate_of(part_format(model, WeightPart.EXPERTS, unstated))
    batches = expert_points(model, hardware, BATCHES, unstated)
    own = {
        f"{name}: {tokens:,} tokens": expert_points(model, hardware, (tokens,), unstated)
        for name, tokens in marked.items()
    }
    roof = expert_roof(model, hardware, unstated)
    needed = "never" if roof.batch_with_rows is None else f"{roof.batch_with_rows:,} tokens"
    sums = [
        (f"ridge of {hardware.name}", f"{ridge(hardware, rate):,.0f} FLOP/B"),
        ("tokens per expert at the ridge", f"{roof.tokens_per_expert:,.0f}"),
        ("batch at the ridge, weights alone", f"{roof.batch:,.0f} tokens"),
        ("batch at the ridge, rows too", needed),
    ]
    marks = [(name, point) for name, points in own.items() for point in points]
    shown = [*marks, *((f"{point.tokens:,}", point) for point in batches)]
    found = [_measured(scenario, hardware, point.tokens) for _, point in shown]
    rows = [[name, *_row(point, each)[1:]] for (name, point), each in zip(shown, found, strict=True)]
    figure = roofline_figure(hardware, {"batches of 1 to 1,048,576 tokens": batches, **own}, rate)
    return [
        counts("Where expert GEMMs leave the memory roof", sums),
        heading("Intensity against the roofs"),
        chart("Roofline of the expert GEMMs, prefill and decode marked", figure, height=420),
        heading("Tokens an expert against batch"),
        chart("Tokens of an expert that is hit, against the batch", _load_figure(batches, own), height=340),
        table("Batches", HEADS, rows, marked=range(len(own))),
        note("Tokens of all GPUs that share the experts; uniform picks. " + _basis(found)),
    ]


HEADS = (
    "batch", "tokens per expert hit", "experts hit", "FLOP/B", "attainable TFLOP/s", "bound by",
    "by measured kernels, TFLOP/s",
)  # fmt: skip


def _row(point: RoofPoint, found: Estimate | None) -> list[str]:
    load = point.load
    measured = "not measured" if found is None else f"{point.flops / found.seconds / 1e12:,.4g}"
    return [
        f"{point.tokens:,}",
        short(load.tokens_per_expert),
        f"{load.hit:,.4g} of {load.experts:,.4g}",
        short(point.intensity),
        f"{point.flops_per_s / 1e12:,.4g}",
        point.bound,
        measured,
    ]


def _measured(scenario: Scenario, hardware: Hardware, tokens: int) -> Estimate | None:
    """The routed experts on one GPU that holds them all, by measured kernels; None where there are none."""
    try:
        return all_experts(scenario, tokens, hardware)
    except ConfigError:
        return None


def _basis(found: list[Estimate | None]) -> str:
    """What the measured column rests on, and how wrong it is."""
    known = [each for each in found if each is not None]
    if not known:
        return "No kernel for these experts was measured."
    said = "; ".join(dict.fromkeys(each.basis for each in known))
    errors = [each.error for each in known if each.error is not None]
    error = f"median error {max(errors):.1%} where one is known" if errors else "no error is known"
    return (
        f"Attainable is the data sheet's peak, which no kernel reaches. By measured kernels: {said}; "
        f"{error}; routing, permutation and the weighted sum are inside."
    )


def _load_figure(batches: tuple[RoofPoint, ...], own: dict[str, tuple[RoofPoint, ...]]) -> Any:
    lines = [Curve("uniform picks", *_load_line(batches), "var(--soft)")]
    colours = ("var(--token)", "var(--kv)", "var(--strong-tp)")
    for (name, points), colour in zip(own.items(), colours, strict=False):
        lines.append(Curve(name, *_load_line(points), colour, marks=True))
    return lines_figure(lines, "batch (tokens)", "tokens of an expert that is hit", logarithmic=True)


def _load_line(points: tuple[RoofPoint, ...]) -> tuple[list[float], list[float]]:
    return [point.tokens for point in points], [point.load.tokens_per_expert for point in points]
