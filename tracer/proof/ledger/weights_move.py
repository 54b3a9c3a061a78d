"""Figures of "DWDP" (weights move instead of tokens) that are arithmetic; ``times`` has those on time."""

from __future__ import annotations

from tracer.model.configs.presets import model_preset
from tracer.proof.ledger.line import Check, LedgerLine, Verdict, near

SOURCE = "DWDP: weights move instead of tokens"
DEP4_TOTAL, DWDP4_TOTAL = 1319.85, 1131.58
COMMUNICATION, SYNCHRONISATION, COPY = 126.74, 161.85, 429.0


def unit() -> LedgerLine:
    """The breakdown table's unit."""
    model = model_preset("deepseek-v3")
    parameters = 3 * (model.hidden or 0) * (model.expert_hidden or 0) * (model.experts or 0)
    # NVFP4: 4 bits per weight and one FP8 scale for 16 of them.
    layer = parameters * (0.5 + 1 / 16)
    remote = model.moe_layers * 0.75 * layer
    micro, milli = remote / (COPY * 1e-6), remote / (COPY * 1e-3)
    return LedgerLine(
        SOURCE,
        'breakdown table in "µs" (429 copy, 1319.85 iteration)',
        Verdict.WRONG,
        f"{model.moe_layers} layers × ¾ × {layer / 1e9:.2f} GB = {remote / 1e9:.0f} GB: "
        f"{micro / 1e12:.0f} TB/s in 429 µs, {milli / 1e9:.0f} GB/s in 429 ms",
        near(layer / 1e9, 6.34, 3) and near(remote / 1e9, 276, 3) and near(milli / 1e9, 643, 3),
        "must be ms: 643 of NVLink's 900 GB/s",
    )


def gains() -> LedgerLine:
    """Gross and realised gain."""
    gross = (COMMUNICATION + SYNCHRONISATION) / DEP4_TOTAL
    realised = 1 - DWDP4_TOTAL / DEP4_TOTAL
    return LedgerLine(
        SOURCE,
        "gross 21.86 %, realised 14.26 %",
        Verdict.REPRODUCES,
        f"{gross:.2%}, {realised:.2%}",
        abs(gross - 0.2186) < 1e-4 and near(realised, 0.1426, 4),
        "from the table's own rows",
    )


def prefill_only() -> LedgerLine:
    """506k against 329k."""
    ratio = 506 / 329
    return LedgerLine(
        SOURCE,
        "SGLang 1.16–1.92×, 506k against 329k = 1.54×",
        Verdict.PUBLISHED,
        f"506/329 = {ratio:.2f}",
        near(ratio, 1.54, 3),
        "prefill only: never to be read as end to end",
    )


CHECKS: tuple[Check, ...] = (unit, gains, prefill_only)
