"""What a page or a command draws and writes: the trips of the tokens that it names, one or more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.query.address import scenario_of
from app.query.token_names import read_token_names
from tracer.errors import ConfigError
from tracer.trip.trip import Trip, take_trip
from tracer.trip.trips import Trips, take_trips

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

FOLLOW = "follow"
ONE_TOKEN = "name one token, or show the log, the counts or a picture"
"""What helps where a table of hops is asked of several tokens."""


def trips_of(query: Mapping[str, str]) -> Trips:
    """The trip that a page's query names; with ``follow=0,5,9`` those of several tokens.

    Raises:
        ConfigError: for what is wrong with the scenario; whatever is wrong with the tokens names ``follow``.
    """
    scenario = scenario_of(query)
    names = query.get(FOLLOW, "")
    try:
        return follow(scenario, names or None, FOLLOW)
    except ConfigError as error:
        if not names or error.field == FOLLOW:
            raise
        about = "" if error.field == "tokens" else f"is refused: {error.field}={error.got!r} "
        rule = f"{about}{error.rule}"
        raise ConfigError(FOLLOW, names, rule, error.fix) from error


def follow(scenario: Scenario, names: str | None, field: str = "--tokens") -> Trips:
    """Trips of the tokens that a text names, or without one of the scenario's own token.

    Raises:
        ConfigError: naming ``field`` for what does not read, and as ``take_trips``.
    """
    if names is None:
        return Trips.of(take_trip(scenario))
    trips = take_trips(scenario, read_token_names(names, scenario.replica, field))
    return trips if trips.multi_token else Trips.of(trips.trips[0])


def one_trip(trips: Trips, field: str, what: str, fix: str) -> Trip:
    """The trip of one token, for what cannot tell several.

    Raises:
        ConfigError: naming ``field`` when there are several.
    """
    if trips.multi_token:
        raise ConfigError(field, what, f"cannot hold {len(trips.trips)} tokens", fix)
    return trips.trips[0]


def as_asked(trips: Trips) -> Trip | Trips:
    """What is printed and written as JSON: one token's own trip, or the trips of several."""
    return trips if trips.multi_token else trips.trips[0]
