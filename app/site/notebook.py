"""A live trip in a notebook: a frame with the explorer of a site that lies on a server."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from app.query.address import flatten
from tracer.errors import ConfigError, whole_number
from tracer.scenario.files import load_scenario, preset_names
from tracer.scenario.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

HEIGHT_PX = 760


@dataclass(frozen=True, slots=True)
class LiveTrip:
    """A trip that a notebook shows as the explorer; ``address`` opens it in a browser."""

    address: str
    height_px: int = HEIGHT_PX

    def __str__(self) -> str:
        """The address: what a terminal shows."""
        return self.address

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.address)}" title="One token\'s trip, live" '
            f'style="width: 100%; border: 0" height="{self.height_px}"></iframe>'
        )


def live_trip(source: str | Path | Scenario, site: str, *, hop: int | None = None) -> LiveTrip:
    """The trip of a scenario in the explorer of a site, at a hop.

    Raises:
        ConfigError: when the site's address is none that a browser opens, or the scenario has a fault.

    >>> live_trip("six-cuts", "https://example.org/site", hop=4).address
    'https://example.org/site/live/?scenario=six-cuts&hop=4'
    """
    if urlsplit(site).scheme not in ("http", "https"):
        fix = "give the address that serves what tokentrip site wrote, as https://example.org/site/"
        raise ConfigError("site", site, "must begin with http:// or https://", fix)
    if isinstance(source, str) and source in preset_names():
        query = {"scenario": source}
    else:
        scenario = source if isinstance(source, Scenario) else load_scenario(source)
        query = {"scenario": "", **flatten(scenario.to_dict())}
    if hop is not None:
        query["hop"] = str(whole_number("hop", hop, at_least=0))
    return LiveTrip(f"{site.rstrip('/')}/live/?{urlencode(query)}")
