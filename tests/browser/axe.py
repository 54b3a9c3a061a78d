"""Ask axe-core what is wrong with a page for people who use a keyboard or a screen reader."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / ".tools" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def sticks_out_or_is_small(page: Page) -> list[str]:
    """What is wider than the page, and text under 12 px."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    script = """[...document.querySelectorAll('#explorer *')].filter(e =>
        [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) &&
        parseFloat(getComputedStyle(e).fontSize) < 12).map(e => e.outerHTML.slice(0, 80))"""
    small: list[str] = page.evaluate(script)
    return ([f"{wide} px too wide"] if wide else []) + small


WIDTHS = [(360, 768), (1280, 1920)]
"""Pages are opened at the first of each pair and widened to the second."""


def problems_in_both_schemes(page: Page) -> list[str]:
    """As :func:`serious_problems`, in light and then in dark; a page is loaded once for both."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_timeout(300)
        found += [f"{scheme}: {problem}" for problem in serious_problems(page)]
    return found


def serious_problems(page: Page) -> list[str]:
    """One line for each serious or critical finding on the page as it is now."""
    if not AXE.exists():
        reason = "no axe-core: sh scripts/ensure_axe.sh fetches it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{item['impact']}: {item['id']}: {item['help']}: {node['html'][:120]}"
        for item in found["violations"]
        if item["impact"] in SERIOUS
        for node in item["nodes"][:3]
    ]
