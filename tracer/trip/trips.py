"""The trips of one token or several on one map: where tokens meet, and which link is the busiest.

One token is several with n = 1: pictures, exports and pages take :class:`Trips`, whatever the number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tracer.display import Shown, Writers
from tracer.errors import ConfigError
from tracer.trip.hop import Hop
from tracer.trip.link_loads import LinkLoad, PortLoad, busiest_link, link_loads, port_loads
from tracer.trip.trip import Tally, Trip, TripLog, count_hops, log_of_hops, take_trip

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SCHEMA = 1
MAX_TOKENS = 512
MAX_TOGETHER = 1 << 20
TokenName = int | tuple[int, int]


class MeetingPoint(NamedTuple):
    """A GPU on which several tokens are in one and the same hop; ``tokens`` are indices into the trips."""

    gpu: int
    tokens: tuple[int, ...]


class Step(NamedTuple):
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
    def meetings(self) -> tuple[MeetingPoint, ...]:
        """GPUs that hold pieces of two tokens or more in this hop, ascending."""
        if len(self.hops) == 1:
            return ()
        on_gpu: dict[int, list[int]] = {}
        for token, hop in self.hops:
            for gpu in hop.touched:
                on_gpu.setdefault(gpu, []).append(token)
        return tuple(MeetingPoint(gpu, tuple(held)) for gpu, held in sorted(on_gpu.items()) if len(held) > 1)


@dataclass(frozen=True, slots=True)
class Trips(Shown):
    """Trips of several tokens of one deployment; ``print`` tells them together.

    Copies of different tokens are never merged: bytes and crossings are those of each token's own trip.
    ``tracer/data/schemas/trips.schema.json`` describes the JSON values.
    """

    WRITERS: ClassVar[Writers] = Writers(
        text="tracer.trip.log:trips_text",
        values="tracer.trip.log:trips_to_dict",
        table="tracer.trip.log:trips_table",
        picture="trip",
    )

    scenario: Scenario
    trips: tuple[Trip, ...]
    steps: tuple[Step, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.trips))

    @classmethod
    def of(cls, trips: Trip | Trips) -> Trips:
        """Trips as they are, and one token's trip as trips of one."""
        return trips if isinstance(trips, Trips) else cls(trips.scenario, (trips,))

    @property
    def multi_token(self) -> bool:
        """Whether there is more than one token."""
        return len(self.trips) > 1

    @property
    def links(self) -> tuple[LinkLoad, ...]:
        """What each (source, destination) pair carried, most bytes first."""
        return link_loads((token, hop) for token, trip in enumerate(self.trips) for hop in trip.hops)

    @property
    def busiest(self) -> LinkLoad | None:
        """The first of ``links`` without the others; None where nothing moves."""
        return busiest_link((token, hop) for token, trip in enumerate(self.trips) for hop in trip.hops)

    @property
    def ports(self) -> tuple[PortLoad, ...]:
        """What each GPU's own ports carried, first the one that takes longest at its rate."""
        return port_loads(self.links, self.scenario.cluster)

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
    def tallies(self) -> tuple[Tally, ...]:
        """Totals after each step. Comm ops are each token's own: one that two tokens share counts twice."""
        if not self.multi_token:
            return self.trips[0].tallies
        return tuple(count_hops(([hop for _, hop in step.hops] for step in self.steps), set()))

    @property
    def log(self) -> TripLog:
        """Totals of all tokens, as a trip's log; its comm ops are counted as in ``tallies``."""
        if not self.multi_token:
            return self.trips[0].log
        hops = [hop for trip in self.trips for hop in trip.hops]
        return log_of_hops(self.scenario, hops, self.tallies[-1])

    @property
    def totals(self) -> dict[str, Any]:
        """The log as JSON has it for several tokens: without comm ops, for tokens share collectives."""
        log = self.log.to_dict()
        names = ("gpus_touched", "world_size", "node_crossings", "bytes", "bytes_by_tier", "weight_bytes")
        return {name: log[name] for name in names}


def take_trips(
    scenario: Scenario,
    tokens: Iterable[TokenName],
    recorded: Callable[[Scenario], Scenario] | None = None,
) -> Trips:
    """Follow several tokens of a scenario: prompt positions of its replica, or (replica, position) pairs.

    Picks that the scenario gives are its own token's; the others' are drawn from the seed. ``recorded`` lays
    recorded picks over the scenario of each token.

    Raises:
        ConfigError: for no tokens, one named twice, more than ``MAX_TOKENS``, or as ``take_trip``.
    """
    names = [(scenario.replica, token) if isinstance(token, int) else token for token in tokens]
    _check(names)
    trips: list[Trip] = []
    transfers = 0
    for replica, position in names:
        following = _following(scenario, replica, position)
        trips.append(take_trip(following if recorded is None else recorded(following)))
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
    base = scenario if own else scenario.with_(picks=())
    return base.with_token(replica=replica, position=position)


def _steps(trips: Sequence[Trip]) -> tuple[Step, ...]:
    """Hops of all trips, taken together where layer, stage, kind and part agree; longest trip's order.

    A token that comes round to a stage without a layer on the way sends from it twice: the first such hops
    are taken together, then the second.
    """
    order = sorted(range(len(trips)), key=lambda token: -len(trips[token].hops))
    found: dict[tuple[object, ...], list[tuple[int, Hop]]] = {}
    for token in order:
        seen: Counter[tuple[object, ...]] = Counter()
        for hop in trips[token].hops:
            place = (hop.layer, hop.stage, hop.kind, hop.part)
            found.setdefault((*place, seen[place]), []).append((token, hop))
            seen[place] += 1
    return tuple(Step(tuple(sorted(hops, key=lambda pair: pair[0]))) for hops in found.values())
