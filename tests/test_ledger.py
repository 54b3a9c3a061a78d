"""The checked figures: every verdict is borne out, and a wrong one would be noticed."""

from __future__ import annotations

import pytest

from tracer.proof.ledger import moe_deployment, moe_inference, simulation, six_cuts, weights_move
from tracer.proof.ledger.line import Check, Verdict, near
from tracer.proof.ledger.report import MODULES, ledger, ledger_markdown, ledger_report

CHECKS = [check for module in MODULES for check in module.CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_line(check: Check) -> None:
    line = check()
    assert line.holds, line.computed
    assert line.stated
    assert line.computed


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (six_cuts.trip_logs, "2/0/1 · 4/0/3 · 7/2/5 · 11/6/20 · 12/7/21 · 23/15/41"),
        (six_cuts.ib_share, "0.7581; 0.3790·Td; 0.6653·Td"),
        (six_cuts.relative_times, "EP 6.82, PP 1.125 and 4.50"),
        (moe_inference.combinations, "409,663,695,276,000 ≈ 4.10e+14"),
        (moe_deployment.hybrid, "2.71 remote copies per token against 3.97"),
        (moe_inference.fabric, "13.76 MB, 110 Gb/s; V3 has 58 MoE layers: 13.30 MB"),
        (simulation.link_times, "1.04 ms and 9.4 ms"),
        (simulation.skewed_loads, "1570 and 842; ratio of means 1.533 (34.8% lost)"),
        (weights_move.unit, "643 TB/s in 429 µs, 643 GB/s in 429 ms"),
    ],
)
def test_values_that_the_documentation_quotes(check: Check, words: str) -> None:
    assert words in check().computed


def test_every_verdict_occurs_and_the_report_holds() -> None:
    lines = ledger()
    assert {line.verdict for line in lines} == set(Verdict)
    assert ledger_report(lines)["holds"]
    assert len(lines) == len(CHECKS)
    table = ledger_markdown(lines)
    assert table.count("\n### ") + table.startswith("### ") == len({line.source for line in lines})


def test_rounding_tells_a_wrong_figure() -> None:
    assert near(0.3790, 0.38, 2)
    assert not near(4.0966e14, 4.3e14, 2)
