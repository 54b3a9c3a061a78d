"""Tokens against weights over prompt length, and what waiting for the longest sequence costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.reports.blocks import Block, chart, heading, note, table
from layouts.charts.lines import Curve, lines_figure
from tracer.display import format_seconds
from tracer.timing.batch import TimedBatch
from tracer.timing.rates import rates_of
from tracer.timing.report import contract_group, gpu_of
from tracer.timing.weights.crossover import crossover_prompt
from tracer.timing.weights.layer import contest
from tracer.timing.weights.rendezvous import waiting_share
from tracer.trip.clock import LinkRates

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.timing.report import TimeReport
    from tracer.timing.weights.chooser import Choice
    from tracer.timing.weights.group import MoeGroup
    from tracer.timing.weights.layer import LayerContest

PROMPTS = tuple(1 << power for power in range(7, 21))
SPREADS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def contract_blocks(scenario: Scenario, report: TimeReport, named: str | None, profile: str) -> list[Block]:
    """What the chooser says, and a layer under both contracts over prompt length."""
    choice = report.choice
    gpu = gpu_of(scenario, named)
    if choice is None or gpu is None:
        return []
    rates = rates_of(profile, LinkRates.of(scenario.cluster))
    group = contract_group(scenario, gpu, rates)
    return [
        heading("Tokens against weights"),
        note(f"Contract {choice.contract}: {choice.reason}."),
        table("What speaks for moving weights", ["check", "holds", "why"], _checks(choice), prose=True),
        *(_over_prompts(group) if group else []),
    ]


def _checks(choice: Choice) -> list[list[str]]:
    return [[check.name, "yes" if check.holds else "no", check.why] for check in choice.checks]


def _over_prompts(group: MoeGroup) -> list[Block]:
    """One prompt per rank, from 128 to 1,048,576 tokens."""
    found = [contest(group, TimedBatch.prompts(length)) for length in PROMPTS]
    lines = [
        Curve("tokens move", PROMPTS, [each.dep_seconds for each in found], "var(--token)"),
        Curve("weights move", PROMPTS, [each.dwdp_seconds for each in found], "var(--kv)", dash="dash"),
        Curve(
            "the pull alone", PROMPTS, [each.prefetch_seconds for each in found], "var(--soft)", dash="dot"
        ),
    ]
    first = crossover_prompt(group)
    said = "no prompt up to 4 M tokens" if first is None else f"a prompt of {first:,} tokens"
    figure = lines_figure(lines, "prompt of a rank (tokens)", "seconds a MoE layer", logarithmic=True)
    return [
        chart("A MoE layer when tokens move and when weights move, over prompt length", figure, height=360),
        table("Tokens against weights", HEADS, map(_row, PROMPTS, found)),
        note(f"One prompt a rank, {group.ranks} ranks: weights win from {said}."),
    ]


HEADS = ("prompt", "tokens move", "weights move", "the pull", "stall", "weights faster by")


def _row(length: int, found: LayerContest) -> list[str]:
    times = (found.dep_seconds, found.dwdp_seconds, found.prefetch_seconds, found.stall_seconds)
    return [f"{length:,}", *map(format_seconds, times), f"{found.speedup:.3g}×"]


def straggler_blocks(scenario: Scenario) -> list[Block]:
    """Waiting of a dispatch group whose sequences differ in length."""
    ranks = scenario.mesh.dispatch_size
    if not scenario.model.moe_layers or ranks < 2:
        return []
    found = [waiting_share(ranks, spread) for spread in SPREADS]
    line = Curve(f"{ranks} ranks", SPREADS, [each.share for each in found], "var(--ib)")
    rows = [[f"{each.cv:.0%}", f"{each.share:.1%}"] for each in found]
    figure = lines_figure(
        [line], "deviation of the ranks' tokens over their mean", "share of time waiting", share=True
    )
    return [
        heading("Stragglers: everyone waits for the longest"),
        chart("Share of time waiting, over how much sequences differ", figure, height=280),
        table("Stragglers", ["deviation / mean", "waiting"], rows),
        note(f"The mean of the longest of {ranks} lengths against one: lengths normal, cut off at 0."),
    ]
