"""What each link carried: pairs of GPUs, and each GPU's own ports in each direction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from tracer.mesh.cluster import Tier
from tracer.trip.hop import WEIGHT_KINDS, Hop

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster


_Link = tuple[int, int, str]
_Carried = tuple[list[int], dict[int, None]]


class LinkLoad(NamedTuple):
    """What went from one GPU to another: bytes, transfers, and the tokens (indices) they belong to."""

    src: int
    dst: int
    tier: str
    bytes: int
    transfers: int
    tokens: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return self._asdict() | {"tokens": list(self.tokens)}


class PortLoad(NamedTuple):
    """What one GPU's link of a tier carried in one direction, and the seconds that takes at its rate."""

    gpu: int
    tier: str
    direction: str
    bytes: int
    transfers: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return self._asdict()


def link_loads(hops: Iterable[tuple[int, Hop]]) -> tuple[LinkLoad, ...]:
    """Loads of all pairs from (token index, hop) pairs, most bytes first; pulled weights are left out."""
    loads = (_load(link, carried) for link, carried in _carried(hops).items())
    return tuple(sorted(loads, key=lambda load: (-load.bytes, load.src, load.dst)))


def busiest_link(hops: Iterable[tuple[int, Hop]]) -> LinkLoad | None:
    """The first of :func:`link_loads` without the others; None where nothing moves."""
    found = _carried(hops)
    if not found:
        return None
    link = min(found, key=lambda link: (-sum(found[link][0]), link[0], link[1]))
    return _load(link, found[link])


def _carried(hops: Iterable[tuple[int, Hop]]) -> dict[_Link, _Carried]:
    """Bytes of each transfer and the tokens, by link."""
    found: dict[_Link, _Carried] = {}
    for token, hop in hops:
        if hop.kind in WEIGHT_KINDS:
            continue
        for move in hop.transfers:
            sizes, tokens = found.setdefault((move.src, move.dst, move.tier), ([], {}))
            sizes.append(move.bytes)
            tokens[token] = None
    return found


def _load(link: _Link, carried: _Carried) -> LinkLoad:
    (src, dst, tier), (sizes, tokens) = link, carried
    return LinkLoad(src, dst, str(tier), sum(sizes), len(sizes), tuple(tokens))


def port_loads(links: Iterable[LinkLoad], cluster: Cluster) -> tuple[PortLoad, ...]:
    """Loads of every GPU's links, the one that takes longest first.

    Seconds are bytes / bandwidth of one direction; latency is left out.
    """
    found: dict[tuple[int, str, str], list[int]] = {}
    for link in links:
        for gpu, direction in ((link.src, "out"), (link.dst, "in")):
            total = found.setdefault((gpu, link.tier, direction), [0, 0])
            total[0] += link.bytes
            total[1] += link.transfers
    loads = (
        PortLoad(gpu, tier, direction, size, count, size / cluster.link(Tier(tier)).bytes_per_s)
        for (gpu, tier, direction), (size, count) in found.items()
    )
    return tuple(sorted(loads, key=lambda load: (-load.seconds, load.gpu, load.tier, load.direction)))
