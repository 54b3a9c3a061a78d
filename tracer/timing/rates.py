"""Link rates by name: peak, or fitted to measurements; the data file says how each was found.

A fit is least squares of relative errors: every row weighs the same whatever its size, so t = Σ x_j·c_j is
solved for c with each row divided by its measured t. A latency or an inverse rate that comes out negative is
set to 0 and the rest solved again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracer.data import FOLDER
from tracer.errors import ConfigError, finite_number, nearest
from tracer.mesh.cluster import Link
from tracer.timing.collectives import busbw_factor
from tracer.trip.clock import LinkRates


def relative_fit(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> tuple[float, ...]:
    """Coefficients c ≥ 0 that bring Σ_j columns[j]·c_j nearest to ``seconds`` in relative error.

    Raises:
        ConfigError: for columns of another length than ``seconds``, or a time that is not above 0.
    """
    import numpy as np

    times = np.array([finite_number("fit.seconds", value, unit="seconds") for value in seconds])
    table = np.array(columns, dtype=np.float64).T
    if table.shape[:1] != times.shape:
        raise ConfigError("fit.columns", f"{table.shape[0]} rows", f"must be {len(times)} rows", "mend them")
    weighted = table / times[:, None]
    kept = list(range(table.shape[1]))
    while True:
        found = np.linalg.lstsq(weighted[:, kept], np.ones(len(times)), rcond=None)[0]
        if (found >= 0).all() or len(kept) == 1:
            break
        kept.pop(int(found.argmin()))
    result = np.zeros(table.shape[1])
    result[kept] = np.maximum(found, 0)
    return tuple(result.tolist())


def fit_link(payload_bytes: Sequence[float], seconds: Sequence[float]) -> Link:
    """The link whose latency + bytes / bandwidth comes nearest.

    Raises:
        ConfigError: as :func:`relative_fit`, or when time does not grow with the bytes.
    """
    sizes = [finite_number("fit.bytes", value, zero=True) for value in payload_bytes]
    latency, inverse = relative_fit([[1.0] * len(sizes), sizes], seconds)
    if inverse <= 0:
        raise ConfigError("fit.seconds", "times", "must grow with the bytes", "give more sizes")
    return Link(1 / inverse, latency)


def fit_two_lines(payload_bytes: Sequence[float], seconds: Sequence[float]) -> tuple[Link, Link]:
    """Two links of which the faster counts: a protocol for small messages, and one for large.

    Rows are split at every size in turn and each side fitted; the split whose worst relative error is
    smallest wins. Rows must be in order of size, three at least a side. A split of which one side does not
    grow with the bytes, as noise does it, is passed over; if every one is, a single line serves both.

    Raises:
        ConfigError: for fewer than six rows, or times that do not grow with the bytes at all.
    """
    if len(payload_bytes) < 6:
        raise ConfigError("fit.bytes", f"{len(payload_bytes)} rows", "must be at least 6", "give more sizes")
    rows = list(zip(payload_bytes, seconds, strict=True))

    def lines(split: int) -> tuple[Link, Link]:
        head, tail = zip(*rows[:split], strict=True), zip(*rows[split:], strict=True)
        return (fit_link(*map(list, head)), fit_link(*map(list, tail)))

    def worst(pair: tuple[Link, Link]) -> float:
        return max(abs(faster(pair, size) / time - 1) for size, time in rows)

    found = []
    for split in range(3, len(rows) - 2):
        try:
            found.append(lines(split))
        except ConfigError:  # noise: this side of the split does not grow with the bytes
            continue
    if not found:
        whole = fit_link(*map(list, zip(*rows, strict=True)))
        return whole, whole
    return min(found, key=worst)


def faster(lines: Sequence[Link], payload_bytes: float) -> float:
    """Seconds of the fastest of several links."""
    return min(line.latency_s + payload_bytes / line.bytes_per_s for line in lines)


PEAK, SCHEMA = "peak", 1


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

    def to_dict(self) -> dict[str, Any]:
        """JSON values, which :func:`read_profile` reads."""
        links = {} if self.rates is None else {"nvlink": self.rates.nvlink, "ib": self.rates.ib}
        return {
            "schema": SCHEMA,
            "name": self.name,
            "source": self.source,
            "setting": self.setting,
            "method": self.method,
            **{tier: _link_dict(link) for tier, link in links.items()},
            "collectives": [
                {"kind": each.kind, "ranks": each.ranks, "lines": [_link_dict(line) for line in each.lines]}
                for each in self.collectives
            ],
        }


def read_profile(text: str, where: str) -> Profile:
    """A profile that was saved as JSON; ``where`` names the file in errors.

    Raises:
        ConfigError: for another form, a rate that is not above 0 or a latency below it.
    """
    rule, fix = "is no saved profile", "save one with --save-profile"
    try:
        stored = json.loads(text)
        found = _read(str(stored["name"]), stored)
    except (json.JSONDecodeError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError("profile", where, f"{rule} ({type(error).__name__}: {error})", fix) from error
    links = [line for each in found.collectives for line in each.lines]
    links += [] if found.rates is None else [found.rates.nvlink, found.rates.ib]
    for link in links:
        finite_number("profile.bytes_per_s", link.bytes_per_s)
        finite_number("profile.latency_s", link.latency_s, zero=True)
    return found


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


def rates_of(name: str | Profile, cluster_rates: LinkRates) -> LinkRates:
    """Links of a profile, or the cluster's own for ``peak``.

    Raises:
        ConfigError: for an unknown name, or a profile that has collectives only.
    """
    if name == PEAK:
        return cluster_rates
    found = name if isinstance(name, Profile) else profile(name)
    if found.rates is None:
        rule = "has times of whole collectives and no link rates"
        raise ConfigError("profile", name, rule, f"try {PEAK!r}, or one of {', '.join(profile_names())}")
    return found.rates


def _stored() -> dict[str, dict[str, Any]]:
    text = (FOLDER / "timing" / "profiles.json").read_text(encoding="utf-8")
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


def _link_dict(link: Link) -> dict[str, float]:
    return {"bytes_per_s": link.bytes_per_s, "latency_s": link.latency_s}


def _link(entry: dict[str, float]) -> Link:
    return Link(entry["bytes_per_s"], entry["latency_s"])
