"""A census by plain loops over the hops that each token takes, to hold the compiled one against."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.scenario.scenario import Scenario
from tracer.trip.hop import Part, Role, Where
from tracer.trip.hops.moves import tp_ranks
from tracer.trip.hops.routes import expert_messages, routes
from tracer.trip.itinerary import Rider, itinerary

if TYPE_CHECKING:
    from tracer.batch.census.homes import GivenHomes
    from tracer.batch.census.result import Census
    from tracer.trip.hop import Hop

MOE_KINDS = {
    "ep": ("dispatch", "combine"),
    "ag_rs": ("dispatch", "combine"),
    "tp": ("all_gather", "all_reduce", "reduce_scatter"),
    "dwdp": ("weight_pull",),
}
OUTWARD = (Role.ROW, Role.DISPATCH, Role.FORWARD)
MATRICES = ("sent", "returned", "copies", "pulled_bytes")
FIELDS = (*MATRICES, "ib_copies", "relayed", "gpu_load", "load_by_expert", "straight")


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens as (replica, position), and their picks ``[MoE layers, tokens, k]``; -1 is none."""

    scenario: Scenario
    tokens: tuple[tuple[int, int], ...]
    picks: np.ndarray

    def home_ranks(self) -> list[int]:
        """Stage-0 rank of each token."""
        mesh, landing = self.scenario.mesh, self.scenario.landing
        places = [landing.place_of(position) for _, position in self.tokens]
        return [
            mesh.rank(tp=tp, cp=cp, dp=replica, pp=0)
            for (replica, _), (cp, tp) in zip(self.tokens, places, strict=True)
        ]

    def homes(self) -> GivenHomes:
        """The same for the census."""
        from tracer.batch.census.homes import GivenHomes

        found = GivenHomes.of_ranks(self.scenario, np.array(self.home_ranks()))
        return replace(found, prompt_positions=np.array([position for _, position in self.tokens]))

    def counted(self, **asked: Any) -> Census:
        """The census, asked for what :func:`tracer.batch.census.take.take_census` takes besides."""
        from tracer.batch.census.take import take_census
        from tracer.batch.picks.source import ArrayPicks

        return take_census(self.scenario, ArrayPicks(self.picks), homes=self.homes(), **asked)

    def moe_layers(self) -> list[int]:
        """Numbers of the MoE layers, from 1."""
        model = self.scenario.model
        return [layer for layer in range(1, model.layers + 1) if model.is_moe(layer)]


@dataclass(slots=True)
class Plain:
    """What a census says of one layer, by the census's own names."""

    scenario: Scenario
    arrays: dict[str, Any] = field(init=False)
    bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    picks: int = 0

    def __post_init__(self) -> None:
        world, model = self.scenario.mesh.world_size, self.scenario.model
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(MATRICES, (world, world))
        shapes["ib_copies"] = (world, self.scenario.cluster.nvlink_domains)
        shapes["relayed"] = shapes["gpu_load"] = (world,)
        shapes["load_by_expert"] = ((model.experts or 0) + len(self.scenario.always_picked),)
        self.arrays = {name: np.zeros(shape, np.int64) for name, shape in shapes.items()} | {"straight": 0}

    def add_hop(self, hop: Hop) -> None:
        """Add the transfers of one token's hop of a MoE block."""
        pulled: Counter[tuple[int, int]] = Counter()
        for t in hop.transfers:
            if t.role == Role.WEIGHTS:
                pulled[t.src, t.dst] += t.bytes
                continue
            outward = t.role in OUTWARD
            self.arrays["sent" if outward else "returned"][t.src, t.dst] += 1
            self.bytes["dispatch" if outward else "combine", str(t.tier)] += t.bytes
            self.arrays["relayed"][t.src] += t.role == Role.FORWARD
            if outward and t.tier == "ib" and self.scenario.plan.contract != "tp":
                self.arrays["ib_copies"][t.src, self.scenario.cluster.nvlink_domain_of(t.dst)] += 1
        for pair, size in pulled.items():
            self.arrays["pulled_bytes"][pair] = size

    def add_work(self, where: Where) -> None:
        """Add which GPUs work on one token's row, and how often."""
        scenario, contract = self.scenario, self.scenario.plan.contract
        alone = scenario.plan.sp != "off" or contract == "tp"
        for source in [where.home] if alone else tp_ranks(scenario, where.home):
            self.picks += len(where.picks)
            np.add.at(self.arrays["load_by_expert"], list(where.picks), 1)
            if contract in ("ep", "ag_rs"):
                ranks = [rank for _, rank in expert_messages(scenario, where, source)]
            else:
                group = tp_ranks(scenario, where.home) if contract == "tp" else [source]
                ranks = group * len(where.picks)
            np.add.at(self.arrays["gpu_load"], ranks, 1)
            self.arrays["copies"][source, sorted(set(ranks))] += 1
            if contract == "ep" and scenario.plan.dispatch == "high_throughput":
                found = routes(scenario, where, source)
                self.arrays["straight"] += sum(len(route.gpus) for route in found if route.fallback)


def plain_census(batch: Batch) -> dict[int, Plain]:
    """What every token's own hops add up to, by layer; a token without picks in a layer takes none there."""
    layers, scenario = batch.moe_layers(), batch.scenario
    found = {layer: Plain(scenario) for layer in layers[: len(batch.picks)]}
    kinds = MOE_KINDS[str(scenario.plan.contract)]
    for number, ((_, position), home) in enumerate(zip(batch.tokens, batch.home_ranks(), strict=True)):
        chosen = {}
        for layer, rows in zip(layers, batch.picks, strict=False):
            named = tuple(expert for expert in rows[number].tolist() if expert >= 0)
            chosen[layer] = (*named, *scenario.always_picked) if named else ()
        # Weights are pulled once, as for position 0: which replica that is goes by position.
        at = 0 if scenario.plan.contract == "dwdp" else position
        for build, where in itinerary(scenario, Rider(at, home, to_head=False, picks=chosen)):
            if chosen.get(where.layer) and where.part == Part.MOE:
                hop = build(scenario, where)
                if hop.kind in kinds:
                    found[where.layer].add_hop(hop)
        for layer, picks in chosen.items():
            if picks:
                found[layer].add_work(_work_of(scenario, layer, position, home, picks))
    return found


def _work_of(scenario: Scenario, layer: int, position: int, home: int, picks: tuple[int, ...]) -> Where:
    """The MoE block of a layer, whether or not it communicates."""
    stage = next(n for n, runs in enumerate(scenario.stage_runs) if any(layer in run for run in runs))
    return Where(layer, stage, position, scenario.mesh.moved(home, "pp", stage), Part.MOE, picks)


def assert_census(census: Census, plain: dict[int, Plain]) -> None:
    """Fail where a census and the plain sums of its layers part."""
    layers = [plain[layer] for layer in census.layers]
    for name in FIELDS:
        total = sum(layer.arrays[name] for layer in layers)
        assert np.array_equal(getattr(census, name), total), name
    moved: Counter[tuple[str, str]] = sum((layer.bytes for layer in layers), Counter())
    for direction in ("dispatch", "combine"):
        expected = {tier: moved[direction, tier] for tier in ("nvlink", "ib")}
        assert census.bytes_by_tier(direction) == expected, direction
    assert census.picks == sum(layer.picks for layer in layers)
