"""Several tokens on one map: each token's own trip, where they meet, and which link is the busiest.

What each link carried: pairs of GPUs, and each GPU's own links in each direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from tracer.display import Shown, Writers
from tracer.errors import ConfigError
from tracer.trip.hop import Hop, HopKind
from tracer.trip.trip import Trip, take_trip

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.scenario.scenario import Scenario


_Link = tuple[int, int, str]
_Carried = tuple[list[int], dict[int, None]]


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """What went from one GPU to another: bytes, transfers, and the tokens (indices) they belong to."""

    src: int
    dst: int
    tier: str
    bytes: int
    transfers: int
    tokens: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"tokens": list(self.tokens)}


@dataclass(frozen=True, slots=True)
class PortLoad:
    """What one GPU's link of a tier carried in one direction, and the seconds that takes at its rate."""

    gpu: int
    tier: str
    direction: str
    bytes: int
    transfers: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


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
        if hop.kind is HopKind.WEIGHT_PULL:
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
        PortLoad(gpu, tier, direction, size, count, size / cluster.link(tier).bytes_per_s)
        for (gpu, tier, direction), (size, count) in found.items()
    )
    return tuple(sorted(loads, key=lambda load: (-load.seconds, load.gpu, load.tier, load.direction)))


SCHEMA = 1
MAX_TOKENS = 512
MAX_TOGETHER = 1 << 20
TokenName = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Meeting:
    """A GPU on which several tokens are in one and the same hop; ``tokens`` are indices into the trips."""

    gpu: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A hop of the itinerary with every token that takes it: (token index, its hop) pairs."""

    hops: tuple[tuple[int, Hop], ...]

    @property
    def hop(self) -> Hop:
        """The first token's hop: all have the same layer, stage, kind and part."""
        return self.hops[0][1]

    @property
    def tokens(self) -> tuple[int, ...]:
        """Indices of the tokens that take this hop."""
        return tuple(token for token, _ in self.hops)

    @property
    def busiest(self) -> LinkLoad | None:
        """The link that carries most bytes in this hop; pulled weights are left out."""
        return busiest_link(self.hops)

    @property
    def meetings(self) -> tuple[Meeting, ...]:
        """GPUs that hold pieces of two tokens or more in this hop, ascending."""
        on_gpu: dict[int, list[int]] = {}
        for token, hop in self.hops:
            for gpu in hop.touched:
                on_gpu.setdefault(gpu, []).append(token)
        return tuple(Meeting(gpu, tuple(held)) for gpu, held in sorted(on_gpu.items()) if len(held) > 1)


@dataclass(frozen=True, slots=True)
class SharedTally:
    """Running totals of all tokens after a step, as ``Trips.totals`` sums them."""

    gpus_touched: int
    node_crossings: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Trips(Shown):
    """Trips of several tokens of one deployment; ``print`` tells them together.

    ``links`` are loads of (source, destination) pairs and ``ports`` of each GPU's links, the busiest
    first: by bytes, and by seconds at the link's rate. Copies of different tokens are never merged.
    ``tracer/data/schemas/trips.schema.json`` describes the JSON values.
    """

    WRITERS: ClassVar[Writers] = Writers(
        text="tracer.trip.several_text:trips_text",
        values="tracer.trip.several_text:trips_to_dict",
        table="tracer.trip.several_text:trips_table",
        picture="trip",
    )

    scenario: Scenario
    trips: tuple[Trip, ...]
    steps: tuple[Step, ...] = field(init=False, repr=False)
    links: tuple[LinkLoad, ...] = field(init=False, repr=False)
    ports: tuple[PortLoad, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        moves = [(token, hop) for token, trip in enumerate(self.trips) for hop in trip.hops]
        object.__setattr__(self, "steps", _steps(self.trips))
        object.__setattr__(self, "links", link_loads(moves))
        object.__setattr__(self, "ports", port_loads(self.links, self.scenario.cluster))

    @property
    def tokens_by_gpu(self) -> dict[int, tuple[int, ...]]:
        """Tokens that touched each GPU, by GPU."""
        found: dict[int, list[int]] = {}
        for token, trip in enumerate(self.trips):
            for gpu in trip.touched:
                found.setdefault(gpu, []).append(token)
        return {gpu: tuple(found[gpu]) for gpu in sorted(found)}

    @property
    def touched(self) -> tuple[int, ...]:
        """GPUs that any token touched, ascending."""
        return tuple(self.tokens_by_gpu)

    @property
    def tallies(self) -> tuple[SharedTally, ...]:
        """Totals after each step; the last one's are those of ``totals``."""
        touched: set[int] = set()
        crossings = total = 0
        found = []
        for step in self.steps:
            for _, hop in step.hops:
                touched |= hop.touched
                crossings += hop.crossings
                if hop.is_comm_op:
                    total += sum(transfer.bytes for transfer in hop.transfers)
            found.append(SharedTally(len(touched), crossings, total))
        return tuple(found)

    @property
    def totals(self) -> dict[str, Any]:
        """Sums over the tokens; comm ops are not summed, for tokens share collectives."""
        logs = [trip.log for trip in self.trips]
        return {
            "gpus_touched": len(self.touched),
            "world_size": self.scenario.mesh.world_size,
            "node_crossings": sum(log.node_crossings for log in logs),
            "bytes": sum(log.bytes for log in logs),
            "bytes_by_tier": {
                tier: sum(log.bytes_by_tier[tier] for log in logs) for tier in logs[0].bytes_by_tier
            },
            "weight_bytes": sum(log.weight_bytes for log in logs),
        }


def take_trips(scenario: Scenario, tokens: Iterable[TokenName]) -> Trips:
    """Follow several tokens of a scenario: prompt positions of its replica, or (replica, position) pairs.

    Picks that the scenario gives are its own token's; the others' are drawn from the seed.

    Raises:
        ConfigError: for no tokens, one named twice, more than ``MAX_TOKENS``, or as ``take_trip``.
    """
    names = [(scenario.replica, token) if isinstance(token, int) else token for token in tokens]
    _check(names)
    trips: list[Trip] = []
    transfers = 0
    for replica, position in names:
        trips.append(take_trip(_following(scenario, replica, position)))
        transfers += sum(len(hop.transfers) for hop in trips[-1].hops)
        if transfers > MAX_TOGETHER:
            rule = f"make more than the {MAX_TOGETHER:,} transfers that trips hold together"
            raise ConfigError("tokens", f"{len(names)} tokens", rule, f"follow fewer than {len(trips)}")
    return Trips(scenario, tuple(trips))


def _check(names: Sequence[tuple[int, int]]) -> None:
    if not 1 <= len(names) <= MAX_TOKENS:
        rule = f"must be 1 to {MAX_TOKENS} tokens"
        raise ConfigError("tokens", f"{len(names)} tokens", rule, "name a few of them")
    seen = set()
    for name in names:
        if name in seen:
            rule = f"names position {name[1]} of replica {name[0]} twice"
            raise ConfigError("tokens", f"{len(names)} tokens", rule, "name each once")
        seen.add(name)


def _following(scenario: Scenario, replica: int, position: int) -> Scenario:
    """The scenario with another token; picks given for its own token are not the other's."""
    own = (replica, position) == (scenario.replica, scenario.position)
    base = scenario if own else replace(scenario, picks=())
    return base.with_token(replica=replica, position=position)


def _steps(trips: Sequence[Trip]) -> tuple[Step, ...]:
    """Hops of all trips, taken together where layer, stage, kind and part agree; longest trip's order."""
    order = sorted(range(len(trips)), key=lambda token: -len(trips[token].hops))
    found: dict[tuple[object, ...], list[tuple[int, Hop]]] = {}
    for token in order:
        for hop in trips[token].hops:
            found.setdefault((hop.layer, hop.stage, hop.kind, hop.part), []).append((token, hop))
    return tuple(Step(tuple(sorted(hops, key=lambda pair: pair[0]))) for hops in found.values())
