"""The explorer's pages: one row per page has its address, what fills it and the keys it reads.

A page of figures names the function that gives its blocks; the explorer asks for them at ``/api/`` and draws
them. The other pages (the trip, the mesh, compare, learn) have scripts of their own in ``assets``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

Payload = dict[str, Any]
Builder = Callable[[dict[str, str]], Payload]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its word in the navigation, its address, what fills it and the keys that only pages read.

    ``report`` is ``module:function`` of a page of figures, imported when it is asked: a query in, ``title``,
    ``controls`` and ``blocks`` out. ``keys`` are keys of the address beside those of a scenario.
    ``one_mesh`` pages show one scenario, and link to each other with it. A ``folded`` page is a part of
    another one: it has an address, and no place in the navigation.
    """

    name: str
    path: str
    report: str = ""
    keys: tuple[str, ...] = ()
    one_mesh: bool = True
    folded: bool = False

    @property
    def word(self) -> str:
        """The name in small letters: that of its script, and of its data under ``/api/``."""
        return self.name.lower()

    @property
    def title(self) -> str:
        """What a tab of the browser says."""
        if self.path == "/":
            return "tokentrip: follow one token through a GPU mesh"
        return f"{self.name} · tokentrip"

    def build(self, query: dict[str, str]) -> Payload:
        """The blocks of a page of figures."""
        module, function = self.report.split(":")
        payload: Payload = getattr(import_module(module), function)(query)
        return payload


PAGES = (
    Page("Trip", "/", keys=("hop", "rows", "speed", "rank", "follow")),
    Page("Numbers", "/numbers", "app.reports.hop_numbers:hop_numbers_report", ("hop",), folded=True),
    Page("Mesh", "/mesh"),
    Page("Traffic", "/traffic", "app.reports.traffic.traffic:traffic_report", ("tokens", "against")),
    Page(
        "Batch", "/batch", "app.reports.batch.batch:batch_report", ("tokens", "popularity", "skew", "slots")
    ),
    Page(
        "Time",
        "/time",
        "app.reports.time.time:time_report_blocks",
        ("timed", "tokens", "micro_batches", "hardware", "rates", "profile"),
    ),
    Page("Roofline", "/roofline", "app.reports.roofline:roofline_report", ("hardware", "tokens")),
    Page("Model", "/model", "app.reports.model:model_report", ("of", "kv")),
    Page("Decode", "/decode", "app.reports.decode.decode:decode_report", ("decode", "loads")),
    Page("Compare", "/compare", keys=("a", "b"), one_mesh=False),
    Page(
        "Run",
        "/run",
        "app.reports.run.run:run_report",
        ("recording", "held", "run_rank", "run_group"),
        one_mesh=False,
    ),
    Page("Learn", "/learn", keys=("chapter", "seed_of_quiz"), one_mesh=False),
)
PAGE_KEYS = ("scenario", *dict.fromkeys(key for page in PAGES for key in page.keys))
"""Keys of an address that are no keys of a scenario file."""


def page_at(path: str) -> Page | None:
    """The page at a path."""
    return next((page for page in PAGES if page.path == path), None)
