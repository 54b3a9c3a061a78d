"""Every axis order of a mesh, ranked by what crosses NVLink domains and by time, with one line why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum, format_bytes, left, right, text_table
from tracer.errors import ConfigError
from tracer.mesh.axes import DENSE_AXES
from tracer.mesh.mesh import Mesh
from tracer.scenario.plan import Contract
from tracer.scenario.step import pass_words
from tracer.traffic.traffic import CommVolume, comm_volume

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SCHEMA = 1
MAX_RANKED = 1 << 19
MAX_PAIRED = 1 << 22


@dataclass(frozen=True, slots=True)
class RankedOrder:
    """One order: bytes a GPU sends over IB and NVLink in a forward pass, seconds of it, and why."""

    order: str
    same_as: tuple[str, ...]
    ib_bytes: float
    nvlink_bytes: float
    seconds: float
    why: str
    rank_by_time: int = 0
    is_given: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The order as JSON values."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"same_as": list(self.same_as)}


@dataclass(frozen=True, slots=True)
class Orders:
    """All orders, least IB bytes first (then by time, the given order, name), and those the mesh refuses."""

    scenario: Scenario
    ranked: tuple[RankedOrder, ...]
    refused: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/orders.schema.json`` describes them."""
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.name,
            "phase": self.scenario.phase,
            "orders": [entry.to_dict() for entry in self.ranked],
            "refused": [{"order": order, "why": why} for order, why in self.refused],
        }

    def __str__(self) -> str:
        rows = [
            (
                "*" if entry.is_given else "",
                place,
                entry.order,
                format_bytes(entry.ib_bytes),
                f"{entry.seconds * 1e6:,.1f}",
                entry.rank_by_time,
                entry.why,
            )
            for place, entry in enumerate(self.ranked, 1)
        ]
        own = f"* the scenario's own order. Per GPU and {pass_words(self.scenario)}."
        notes = [f"refused: {order}: {why}" for order, why in self.refused]
        return "\n".join([*text_table(_COLUMNS, rows), own, *notes])


_COLUMNS = (
    left("", 2, gap=0),
    right("#", 2, gap=0),
    left("order", 12),
    right("over IB", 10, gap=0),
    right("time (µs)", 12),
    right("by time", 7),
    left("why"),
)


def distinct_orders(mesh: Mesh) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Orders that lay ranks out differently, each with the others that equal it.

    Axes of size 1 may stand anywhere; the order named puts them last.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for names in permutations(DENSE_AXES):
        found.setdefault(tuple(n for n in names if mesh.size_of(n) > 1), []).append("-".join(names))
    for large, orders in found.items():
        small = tuple(name for name in DENSE_AXES if name not in large)
        first = "-".join((*large, *small))
        yield first, tuple(order for order in orders if order != first)


def swapped(order: str, one: str, other: str) -> str:
    """An order with two of its axes in each other's place.

    >>> swapped("tp-cp-dp-pp", "dp", "pp")
    'tp-cp-pp-dp'
    """
    places = {one: other, other: one}
    return "-".join(places.get(name, name) for name in order.split("-"))


def with_order(scenario: Scenario, order: str) -> Scenario:
    """The same sizes laid out in another order; a token named by GPU keeps its replica and position.

    Raises:
        ConfigError: when the mesh refuses the order.
    """
    mesh = scenario.mesh
    sizes = {name: mesh.size_of(name) for name in ("tp", "cp", "dp", "pp", "ep", "etp", "edp")}
    moved = Mesh.build(order, **sizes, expert_order=mesh.expert_order, strict=mesh.strict)
    token = scenario.token
    token = replace(token, gpu=None, replica=scenario.replica, position=scenario.position, slot=scenario.slot)
    return scenario.with_(mesh=moved, token=token)


def check_rankable(scenario: Scenario) -> None:
    """Refuse a mesh whose orders take long to rank.

    Raises:
        ConfigError: above ``MAX_RANKED`` ranks, or ``MAX_PAIRED`` ranks times experts, over all orders.
    """
    mesh, experts = scenario.mesh, scenario.model.experts or 0
    orders = sum(1 for _ in distinct_orders(mesh))
    pulls = scenario.plan.contract is Contract.DWDP
    partners = mesh.world_size if pulls else mesh.dispatch_size
    if orders * partners * experts > MAX_PAIRED:
        raise ConfigError(
            "model.experts",
            experts,
            f"on each of {partners:,} ranks in {orders} orders are too many pairs to rank the orders by",
            "ask for one order: tokentrip traffic SCENARIO --order tp-cp-pp-dp",
        )
    if orders * mesh.world_size > MAX_RANKED:
        raise ConfigError(
            "world_size",
            mesh.world_size,
            f"in each of {orders} orders is more than the {MAX_RANKED:,} ranks that a ranking lays out",
            "ask for one order: tokentrip traffic SCENARIO --order tp-cp-pp-dp",
        )


def rank_orders(scenario: Scenario) -> Orders:
    """Every order of the dense axes, by bytes across NVLink domains; ``rank_by_time`` ranks the time.

    Raises:
        ConfigError: when there are too many ranks, or the traffic cannot be computed at all.
    """
    check_rankable(scenario)
    entries: list[RankedOrder] = []
    refused: list[tuple[str, str]] = []
    own = "-".join(scenario.mesh.dense.names)
    for order, others in distinct_orders(scenario.mesh):
        try:
            moved = with_order(scenario, order)
        except ConfigError as error:
            refused.append((order, error.rule))
            continue
        traffic = comm_volume(moved)
        entries.append(
            RankedOrder(
                order,
                others,
                traffic.ib_bytes_per_pass,
                traffic.nvlink_bytes_per_pass,
                traffic.seconds_per_pass,
                _why(traffic),
                is_given=own in (order, *others),
            )
        )
    return Orders(scenario, _ranked(entries), tuple(refused))


def _ranked(entries: list[RankedOrder]) -> tuple[RankedOrder, ...]:
    """Sorted by IB bytes, each with its place by time; times equal to 9 digits share a place."""
    times = sorted({float(f"{entry.seconds:.9g}") for entry in entries})
    placed = [
        replace(entry, rank_by_time=times.index(float(f"{entry.seconds:.9g}")) + 1) for entry in entries
    ]
    return tuple(
        sorted(
            placed,
            key=lambda e: (float(f"{e.ib_bytes:.9g}"), float(f"{e.seconds:.9g}"), not e.is_given, e.order),
        )
    )


def _why(traffic: CommVolume) -> str:
    """Which axes stay inside an NVLink domain, and what share of the others' bytes crosses."""
    word = traffic.scenario.cluster.domain_word
    inside, outside = [], []
    for axis in ("tp", "cp", "ep", "pp"):
        lines = [line for line in traffic.lines if line.axis == axis]
        if not lines:
            continue
        if not any(line.ib_bytes for line in lines):
            inside.append(axis)
        else:
            ib = exact_sum(line.times * line.ib_bytes for line in lines)
            share = ib / (ib + exact_sum(line.times * line.nvlink_bytes for line in lines))
            often = ib / traffic.scenario.mesh.stages
            outside.append((often, f"{axis} sends {share:.0%} over IB ({format_bytes(often)})"))
    kept = f"{', '.join(inside)} inside a {word}" if inside else f"no axis stays inside a {word}"
    crossing = "; ".join(text for _, text in sorted(outside, reverse=True))
    return f"{kept}; {crossing}" if crossing else kept
