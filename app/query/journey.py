"""What is drawn and written: one token's trip, or several tokens' trips on one map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.query.address import scenario_of
from app.query.token_names import read_token_names
from tracer.errors import ConfigError
from tracer.trip.log import log_line
from tracer.trip.several import Trips, take_trips
from tracer.trip.several_text import totals_line
from tracer.trip.trip import Trip, take_trip

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

Journey = Trip | Trips
FOLLOW = "follow"
UNTABLED = "name one token, or show the log, the counts or a picture"
"""What helps where a table of hops is asked of several tokens."""


def journey_of(query: Mapping[str, str]) -> Journey:
    """The trip that a page's query names; with ``follow=0,5,9`` those of several tokens.

    Raises:
        ConfigError: for what is wrong with the scenario; whatever is wrong with the tokens names ``follow``.
    """
    scenario = scenario_of(query)
    names = query.get(FOLLOW, "")
    try:
        return follow(scenario, names, FOLLOW) if names else take_trip(scenario)
    except ConfigError as error:
        if not names or error.field == FOLLOW:
            raise
        about = "" if error.field == "tokens" else f"is refused: {error.field}={error.got!r} "
        rule = f"{about}{error.rule}"
        raise ConfigError(FOLLOW, names, rule, error.fix) from error


def follow(scenario: Scenario, names: str, field: str = "--tokens") -> Journey:
    """Trips of the tokens that a text names; of one token, its own trip.

    Raises:
        ConfigError: naming ``field`` for what does not read, and as ``take_trips``.
    """
    trips = take_trips(scenario, read_token_names(names, scenario.replica, field))
    return trips if len(trips.trips) > 1 else trips.trips[0]


def hop_count(journey: Journey) -> int:
    """How many hops there are to draw: the trip's own, or the steps that tokens take together."""
    return len(journey.steps if isinstance(journey, Trips) else journey.hops)


def totals_text(journey: Journey) -> str:
    """The totals in one line."""
    if isinstance(journey, Trips):
        return totals_line(journey)
    return log_line(journey.log, journey.scenario.cluster.domain_word)


def one_trip(journey: Journey, field: str, what: str, fix: str) -> Trip:
    """The trip of one token, for what cannot tell several.

    Raises:
        ConfigError: naming ``field`` when there are several.
    """
    if isinstance(journey, Trips):
        raise ConfigError(field, what, f"cannot hold {len(journey.trips)} tokens", fix)
    return journey
