"""Whether an exported picture is still what the engine would draw, and what changed when it is not."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.exports.formats import format_of
from app.exports.pixel_stamp import PIXELS
from app.exports.stamp import Stamp, digest_of, read_stamp, totals_of
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trips import Trips

_MAX_SHOWN = 6


def picture_differences(path: Path) -> list[str]:
    """What changed since a picture was exported; empty when it is up to date.

    Raises:
        ConfigError: when the file cannot be read or carries no scenario, or its source is gone.
    """
    from tracer.scenario.files import read_bytes, read_text

    suffix = path.suffix.lower()
    pixels = suffix in PIXELS
    content = read_bytes(path, "--check") if pixels else read_text(path, "--check")
    stamp, bare = read_stamp(content, suffix, str(path))
    drawn, scenarios, log = _drawn_now(path.with_suffix(".svg") if pixels else path, stamp)
    edited = digest_of(bare) != stamp.digest
    if digest_of(drawn) == (stamp.drawn_from if pixels else digest_of(bare)) and not (pixels and edited):
        return []
    found = [
        *_changed("", stamp.scenario, scenarios[0].to_dict()),
        *_changed("decode", stamp.decode, scenarios[-1].to_dict() if stamp.decode else None),
        *_changed("log", stamp.log, log),
    ]
    if edited:
        found.append("the picture itself was edited after it was exported")
    return found or ["another version of tokentrip draws it differently"]


def _drawn_now(path: Path, stamp: Stamp) -> tuple[str | bytes, list[Scenario], dict[str, Any]]:
    """The picture, the scenarios it shows and its totals, as the engine has them now."""
    scenario = current_scenario(stamp.source, stamp.scenario, path.parent)
    if stamp.decode is not None:
        from app.exports import pool_picture
        from tracer.serving.kv_handover import kv_handover_of

        decode = current_scenario(stamp.decode_source, stamp.decode, path.parent)
        moved = kv_handover_of(scenario, decode, whole=stamp.whole)
        return pool_picture.draw_pools(moved, path), [scenario, decode], pool_picture.handover_totals(moved)
    trips = _trips(stamp, scenario)
    return format_of(path)(trips, stamp.hop), [trips.scenario], totals_of(trips)


def _trips(stamp: Stamp, scenario: Scenario) -> Trips:
    """The trips of the stamp's tokens, or of the scenario's own."""
    from tracer.trip.trip import take_trip
    from tracer.trip.trips import Trips, take_trips

    if stamp.tokens is None:
        return Trips.of(take_trip(scenario))
    return take_trips(scenario, [(replica, position) for replica, position in stamp.tokens])


def current_scenario(source: str | None, tables: dict[str, Any], folder: Path) -> Scenario:
    """The scenario as its source says now: a preset, a file beside the picture, else as it was stamped."""
    from tracer.scenario.files import SUFFIXES, load_scenario
    from tracer.scenario.scenario import Scenario

    if source is None:
        return Scenario.from_dict(tables)
    if Path(source).suffix.lower() not in SUFFIXES:
        return load_scenario(source)
    for place in (folder / source, Path(source)):
        if isfile(place):
            return load_scenario(place)
    raise ConfigError(
        "--check", source, "was this picture's scenario and is gone", "restore it, or export anew"
    )


def _changed(prefix: str, old: Any, new: Any) -> list[str]:
    """``key: old → new`` for each value that differs, the first few."""
    rows = list(_walk(prefix, old, new))
    more = len(rows) - _MAX_SHOWN
    return rows[:_MAX_SHOWN] + ([f"and {more} more"] if more > 0 else [])


def _walk(prefix: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _walk(f"{prefix}.{key}".lstrip("."), old.get(key), new.get(key))
    elif old != new:
        yield f"{prefix}: {old} → {new}"
