"""Taking a census: a scenario and a batch of picks in, the counted traffic out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.batch.census.counts import Counts
from tracer.batch.census.homes import EvenHomes, GivenHomes, TokenHomes
from tracer.batch.census.layout import CensusLayout, check_table_bytes
from tracer.batch.census.result import Census, CensusPart
from tracer.batch.census.run import CensusPlan, LayerTables, Progress, count_blocks
from tracer.batch.census.traffic import stage_traffic
from tracer.batch.picks.source import WithShared
from tracer.errors import ConfigError, whole_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tracer.batch.picks.source import PickSource
    from tracer.scenario.scenario import Scenario

PARTIAL = "PARTIAL: it was interrupted, and"
MAX_LANDED_PICKS = 1 << 18


def take_census(
    scenario: Scenario,
    picks: PickSource,
    *,
    homes: TokenHomes | None = None,
    by_layer: bool = False,
    threads: int = 2,
    check_repeats: bool = False,
    progress: Progress | None = None,
    partial: bool = False,
) -> Census:
    """Count every pick of a batch.

    ``homes`` says where tokens start; without it they are split evenly and in order over stage 0's ranks.
    Picks have one layer for each MoE layer of the model, or for each layer (dense ones are passed over);
    fewer are taken for the first MoE layers, and a note says so. ``by_layer`` keeps layers apart;
    ``check_repeats`` refuses a token that names an expert twice. With ``partial`` an interrupt (Ctrl+C) ends
    the count early, and the census says in its notes that it is partial.

    Raises:
        ConfigError: for picks, homes or sizes that do not fit, or when numba is not installed.
    """
    need_numba()
    whole_number("threads", threads)
    walk, layers, notes = plan_census(scenario, picks, homes, check_repeats=check_repeats)
    slots = slots_of(walk, layers, by_layer=by_layer)
    totals = [Counts.zeros(walk.layout, walk.tables[walk.key_of[group[0]]].slots) for group in slots]
    where = {layer: slot for slot, group in enumerate(slots) for layer in group}
    blocks = walk.blocks(layers)
    done = count_blocks(
        walk,
        blocks,
        slot_of=lambda block: where[block.layer],
        totals=totals,
        threads=threads,
        progress=progress,
        partial=partial,
    )
    return finish(walk, slots, totals, (*partial_note(done, len(blocks)), *notes))


def partial_note(done: int, blocks: int) -> tuple[str, ...]:
    """The note of a census that was interrupted; none for a whole one."""
    if done == blocks:
        return ()
    return (f"{PARTIAL} {done:,} of {blocks:,} blocks of picks were counted",)


def need_numba() -> None:
    """Refuse to start without the compiler of the kernel.

    Raises:
        ConfigError: naming the extra to install.
    """
    from importlib.util import find_spec

    if find_spec("numba") is None:
        raise ConfigError(
            "census", "numba", "is not installed, and the census is compiled with it",
            "pip install 'tokentrip[census]'",
        )  # fmt: skip


def plan_census(
    scenario: Scenario, picks: PickSource, homes: TokenHomes | None, *, check_repeats: bool = False
) -> tuple[CensusPlan, tuple[int, ...], tuple[str, ...]]:
    """(walk, layers of the model in the order of the picks, notes).

    Raises:
        ConfigError: for picks that do not fit the model or the homes.
    """
    layout = CensusLayout.of(scenario)
    layers, picks, notes = _match_layers(layout, picks)
    model = scenario.model
    if picks.top_k > (model.experts or 0):
        raise ConfigError(
            "picks", f"{picks.top_k} picks per token", f"are more than the model's {model.experts} experts",
            "check the order of the axes: [layers, tokens, k]",
        )  # fmt: skip
    if scenario.always_picked:
        picks = WithShared(picks, tuple(scenario.always_picked))
    if homes is None:
        homes = EvenHomes(picks.tokens, layout.sources)
    if homes.tokens != picks.tokens:
        raise ConfigError(
            "sources", f"{homes.tokens} entries", f"must give the rank of each of the {picks.tokens} tokens",
            "give one per token",
        )  # fmt: skip
    keys: dict[tuple[int, int], int] = {}
    tables: list[LayerTables] = []
    key_of = {}
    for layer in layers:
        key = (layout.stage_of(layer), id(scenario.placement_of(layer)))
        if key not in keys:
            keys[key] = len(tables)
            targets = layout.targets(layer)
            tables.append(LayerTables(targets, layout.tables(layer, targets)))
            check_table_bytes(sum(table.bytes for table in tables))
        key_of[layer] = keys[key]
    return CensusPlan(layout, picks, homes, key_of, tuple(tables), check_repeats), layers, notes


def _match_layers(
    layout: CensusLayout, picks: PickSource
) -> tuple[tuple[int, ...], PickSource, tuple[str, ...]]:
    """The model's layers that the picks are of; those of dense layers are dropped."""
    from tracer.batch.picks.source import ChosenLayers

    moe, every = layout.moe_layers, layout.scenario.model.layers
    if not moe:
        raise ConfigError("model.experts", None, "is needed to count picks", "give the model experts")
    if picks.layers == len(moe):
        return moe, picks, ()
    if picks.layers == every:
        chosen = ChosenLayers(picks, tuple(layer - 1 for layer in moe))
        return moe, chosen, (f"picks of {every - len(moe)} dense layers are passed over",)
    if picks.layers < len(moe):
        return (
            moe[: picks.layers],
            picks,
            (f"picks are of the first {picks.layers} of {len(moe)} MoE layers",),
        )
    raise ConfigError(
        "picks", f"{picks.layers} layers", f"must be one of each of the model's {len(moe)} MoE layers",
        f"give {len(moe)}, or {every} with the dense layers; the axes are [layers, tokens, k]",
    )  # fmt: skip


def slots_of(walk: CensusPlan, layers: tuple[int, ...], *, by_layer: bool) -> list[tuple[int, ...]]:
    """Layers that are counted together: those that share tables, or each alone."""
    if by_layer:
        return [(layer,) for layer in layers]
    return [tuple(layer for layer in layers if walk.key_of[layer] == key) for key in range(len(walk.tables))]


def finish(
    walk: CensusPlan, slots: list[tuple[int, ...]], totals: list[Counts], notes: tuple[str, ...]
) -> Census:
    """Fold the counts into a census."""
    layout = walk.layout
    parts = tuple(
        CensusPart(
            group,
            layout.stage_of(group[0]),
            stage_traffic(layout, walk.tables[walk.key_of[group[0]]].targets, counts, group),
        )
        for group, counts in zip(slots, totals, strict=True)
    )
    layers = tuple(sorted(layer for group in slots for layer in group))
    return Census(layout.scenario, walk.picks.tokens, walk.picks.top_k, layers, parts, notes)


def landed_census(scenario: Scenario, *, by_layer: bool = False, threads: int = 2) -> Census:
    """The census of one prompt on every replica, each token with the picks its own trip would draw.

    Raises:
        ConfigError: as :func:`take_census`.
    """
    picks, homes = landed_batch(scenario)
    from tracer.batch.picks.source import ArrayPicks

    return take_census(scenario, ArrayPicks(picks), homes=homes, by_layer=by_layer, threads=threads)


def landed_batch(scenario: Scenario) -> tuple[NDArray[np.int64], GivenHomes]:
    """(picks ``[MoE layers, replicas * prompt, k]`` int64, homes) of one prompt on every replica.

    Raises:
        ConfigError: above ``MAX_LANDED_PICKS``.
    """
    import numpy as np

    from tracer.scenario.routing import draw_picks

    model = scenario.model
    tokens = scenario.mesh.dp * scenario.token.prompt
    if tokens * model.moe_layers * (model.top_k or 0) > MAX_LANDED_PICKS:
        rule = f"on every replica are {tokens:,} tokens, too many to draw one by one"
        raise ConfigError("token.prompt", scenario.token.prompt, rule, "say how many: --tokens 100000")
    top_k = model.need("top_k", "draw picks")
    drawn = [
        [
            (*picks, *[-1] * (top_k - len(picks)))  # picks of experts without weights are left out
            for picks in draw_picks(
                model, model.moe_layers, seed=scenario.seed, replica=replica, position=position
            )
        ]
        for replica in range(scenario.mesh.dp)
        for position in range(scenario.token.prompt)
    ]
    return np.array(drawn, np.int64).transpose(1, 0, 2), GivenHomes.landed(scenario)
