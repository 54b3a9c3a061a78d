"""Rates by name: peak, or fitted to measurements; the data file says how each was found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tracer.cluster import Link
from tracer.errors import ConfigError, nearest
from tracer.timing.collectives import busbw_factor
from tracer.timing.fitting import faster
from tracer.timing.links import LinkRates

PEAK = "peak"


@dataclass(frozen=True, slots=True)
class CollectiveFit:
    """A collective of one group size: the faster of ``lines`` carries ``busbw_factor`` x total bytes."""

    kind: str
    ranks: int
    lines: tuple[Link, ...]

    def seconds(self, total_bytes: float) -> float:
        """Seconds of ``total_bytes`` (nccl-tests' S)."""
        return faster(self.lines, busbw_factor(self.kind, self.ranks) * total_bytes)


@dataclass(frozen=True, slots=True)
class Profile:
    """Measured rates of one setting: links (one direction), or whole collectives.

    ``rates`` is None where only collectives were fitted.
    """

    name: str
    source: str
    setting: str
    method: str
    rates: LinkRates | None
    collectives: tuple[CollectiveFit, ...] = ()

    def collective(self, kind: str, ranks: int) -> CollectiveFit:
        """The fit of a collective.

        Raises:
            ConfigError: when it was not fitted.
        """
        for fit in self.collectives:
            if (fit.kind, fit.ranks) == (kind, ranks):
                return fit
        known = [f"{fit.kind}/{fit.ranks}" for fit in self.collectives]
        fix = nearest(f"{kind}/{ranks}", known) if known else "choose another profile"
        raise ConfigError("profile.collective", f"{kind}/{ranks}", f"was not fitted in {self.name}", fix)


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that ship, sorted; ``peak`` (the cluster's own links) is none of them.

    >>> profile_names()[0]
    'h100-nccl'
    """
    return tuple(sorted(_stored()))


def profile(name: object) -> Profile:
    """A profile by name.

    Raises:
        ConfigError: for a name that does not ship, with the nearest that does.
    """
    stored = _stored()
    if not isinstance(name, str) or name not in stored:
        fix = nearest(str(name), [PEAK, *sorted(stored)])
        raise ConfigError("profile", name, "is not a profile that ships", fix)
    return _read(name, stored[name])


def rates_of(name: str, cluster_rates: LinkRates) -> LinkRates:
    """Links of a profile, or the cluster's own for ``peak``.

    Raises:
        ConfigError: for an unknown name, or a profile that has collectives only.
    """
    if name == PEAK:
        return cluster_rates
    found = profile(name)
    if found.rates is None:
        rule = "has times of whole collectives and no link rates"
        raise ConfigError("profile", name, rule, f"try {PEAK!r}, or one of {', '.join(profile_names())}")
    return found.rates


def _stored() -> dict[str, dict[str, Any]]:
    text = (files("tracer") / "data" / "timing" / "profiles.json").read_text(encoding="utf-8")
    stored: dict[str, dict[str, Any]] = json.loads(text)
    return stored


def _read(name: str, entry: dict[str, Any]) -> Profile:
    links = {tier: _link(entry[tier]) for tier in ("nvlink", "ib") if tier in entry}
    collectives = tuple(
        CollectiveFit(each["kind"], each["ranks"], tuple(_link(line) for line in each["lines"]))
        for each in entry.get("collectives", ())
    )
    rates = LinkRates(links["nvlink"], links["ib"]) if links else None
    return Profile(name, entry["source"], entry["setting"], entry["method"], rates, collectives)


def _link(entry: dict[str, float]) -> Link:
    return Link(entry["bytes_per_s"], entry["latency_s"])
