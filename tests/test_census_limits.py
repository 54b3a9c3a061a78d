"""What a census refuses and notes, at the very size where it begins to."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from census_cases import tables
from plain_census import Batch, assert_census, plain_census

from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario

pytest.importorskip("numba")

from tracer.batch.census.counts import Counts
from tracer.batch.census.homes import EvenHomes, GivenHomes
from tracer.batch.census.layout import CensusLayout
from tracer.batch.census.run import part_of
from tracer.batch.census.take import landed_batch, landed_census, take_census
from tracer.batch.picks.source import ArrayPicks


def scenario_of(mesh: dict[str, Any], model: dict[str, Any] | None = None, **parts: Any) -> Scenario:
    return Scenario.from_dict(tables(mesh, model, **parts))


def picks_of(layers: int, tokens: int = 4) -> np.ndarray:
    return np.random.default_rng(1).random((layers, tokens, 12)).argsort(-1)[:, :, :3]


@pytest.mark.parametrize(
    ("name", "enough", "words"),
    [
        (
            "MAX_CENSUS_RANKS",
            8,
            r"mesh='8 ranks' has 2 stages of 4 ranks; .* take fewer replicas, such as dp 2",
        ),
        ("MAX_SQUARE_CELLS", 32, r"mesh='8 ranks' has 2 stages of 4 ranks"),
        ("MAX_COUNT_BYTES", 4 * 64 * 8 * 2, r"would need 0\.0 GB of counts"),
        ("MAX_TABLE_BYTES", 2 * 2 * 2 * 13 * 8, r"placement\.slots='0\.0 GB of tables' is more than"),
    ],
)
def test_the_largest_census_and_one_byte_less(
    name: str, enough: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = scenario_of({"dp": 4, "ep": 2, "pp": 2})
    batch = Batch(scenario, ((0, 1), (3, 2)), picks_of(2, 2))
    monkeypatch.setattr(f"tracer.batch.census.layout.{name}", enough)
    assert_census(batch.counted(), plain_census(batch))
    monkeypatch.setattr(f"tracer.batch.census.layout.{name}", enough - 1)
    with pytest.raises(ConfigError, match=words):
        batch.counted()


@pytest.mark.parametrize(
    ("ranks", "node", "lane_bits", "lanes", "words"),
    [(12, 4, 4, 16, 1), (68, 66, 128, 2, 4), (68, 8, 8, 16, 2), (66, 1, 1, 128, 2), (6, 5, 8, 8, 1)],
)
def test_bits_are_as_many_as_the_largest_island_needs(
    ranks: int, node: int, lane_bits: int, lanes: int, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lane is the next power of two; lanes fill whole words; counts have a column for each bit and lane."""
    experts = {"experts": ranks}
    scenario = scenario_of({"dp": ranks, "ep": ranks}, experts, cluster={"gpus_per_node": node})
    monkeypatch.setattr("tracer.batch.census.layout.MAX_COUNT_BYTES", ranks * words * 64 * 8)
    layout = CensusLayout.of(scenario)
    assert (layout.lane_bits, layout.lanes, layout.words) == (lane_bits, lanes, words)
    counts = Counts.zeros(layout, 5)
    assert counts.gpus.shape == (ranks, words * 64)
    assert (counts.nvlink_domains.shape, counts.hist.shape) == ((ranks, lanes), (ranks, 5))
    assert not layout.targets(1).tied
    monkeypatch.setattr("tracer.batch.census.layout.MAX_COUNT_BYTES", ranks * words * 64 * 8 - 1)
    with pytest.raises(ConfigError, match=r"would need 0\.0 GB of counts"):
        CensusLayout.of(scenario)


def test_fewer_replicas_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dispatch group of 12 ranks takes 3 replicas of 4."""
    scenario = scenario_of({"tp": 2, "cp": 2, "dp": 6, "etp": 2, "ep": 6})
    monkeypatch.setattr("tracer.batch.census.layout.MAX_CENSUS_RANKS", 23)
    with pytest.raises(ConfigError, match=r"mesh='24 ranks' has 1 stages .* such as dp 3: dispatch groups"):
        CensusLayout.of(scenario)


def test_tables_of_replicas_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each source has tables: 24 slots and one of no expert, of the masks' one word and the EP ranks."""
    slots = {"kind": "table", "slots": [*range(12), *range(12)]}
    nodes = {"gpus_per_node": 1}
    scenario = scenario_of({"dp": 4, "ep": 4}, placement=slots, cluster=nodes)
    layout = CensusLayout.of(scenario)
    monkeypatch.setattr("tracer.batch.census.layout.MAX_TABLE_BYTES", 4 * 25 * 2 * 8)
    targets = layout.targets(1)
    assert targets.tied
    assert targets.counts.tolist() == [1, 2]
    assert (targets.ep_ranks.shape, targets.kinds.shape) == ((4, 25), (4, 13))
    monkeypatch.setattr("tracer.batch.census.layout.MAX_TABLE_BYTES", 4 * 25 * 2 * 8 - 1)
    with pytest.raises(ConfigError, match=r"placement\.slots='0\.0 GB of tables' is more than"):
        layout.targets(1)


def test_tables_of_groups_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two groups: 13 slots, of the masks' one word and the EP ranks."""
    layout = CensusLayout.of(scenario_of({"dp": 4, "ep": 2}))
    monkeypatch.setattr("tracer.batch.census.layout.MAX_TABLE_BYTES", 2 * 13 * 2 * 8)
    targets = layout.targets(1)
    assert (targets.ep_ranks.shape, targets.kinds.shape) == ((2, 13), (2, 13))
    monkeypatch.setattr("tracer.batch.census.layout.MAX_TABLE_BYTES", 2 * 13 * 2 * 8 - 1)
    with pytest.raises(ConfigError, match=r"placement\.slots='0\.0 GB of tables' is more than"):
        layout.targets(1)


def test_tables_of_all_layers_together_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers with placements of their own: masks and EP ranks of 2 groups of 13 slots each."""
    placement = {"kind": "table", "slots": [*range(12)], "slots_by_layer": {"2": [*range(11, -1, -1)]}}
    scenario = scenario_of({"dp": 4, "ep": 2}, placement=placement)
    monkeypatch.setattr("tracer.batch.census.layout.MAX_TABLE_BYTES", 2 * 2 * 2 * 13 * 8)
    assert take_census(scenario, ArrayPicks(picks_of(2))).picks == 2 * 4 * 3
    monkeypatch.setattr("tracer.batch.census.layout.MAX_TABLE_BYTES", 2 * 2 * 2 * 13 * 8 - 1)
    with pytest.raises(ConfigError, match=r"placement\.slots='0\.0 GB of tables' is more than"):
        take_census(scenario, ArrayPicks(picks_of(2)))


def test_a_matrix_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    census = take_census(scenario_of({"dp": 4, "ep": 4}), ArrayPicks(picks_of(2)))
    monkeypatch.setattr("tracer.batch.census.result.MAX_MATRIX_RANKS", 4)
    assert census.sent.shape == (4, 4)
    monkeypatch.setattr("tracer.batch.census.result.MAX_MATRIX_RANKS", 3)
    with pytest.raises(ConfigError, match=r"world_size=4 is too many ranks for a matrix of at most 3"):
        _ = census.sent
    assert census.gpu_load.sum() == picks_of(2).size


def test_a_landed_batch_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 replicas of 16 tokens, 2 layers, 3 picks."""
    scenario = scenario_of({"dp": 2, "ep": 2})
    monkeypatch.setattr("tracer.batch.census.take.MAX_LANDED_PICKS", 2 * 16 * 2 * 3)
    assert landed_batch(scenario)[0].shape == (2, 32, 3)
    monkeypatch.setattr("tracer.batch.census.take.MAX_LANDED_PICKS", 2 * 16 * 2 * 3 - 1)
    with pytest.raises(ConfigError, match=r"on every replica are 32 tokens, too many"):
        landed_batch(scenario)


def test_a_landed_census_is_of_the_tokens_own_draws() -> None:
    scenario = scenario_of({"tp": 2, "cp": 2, "dp": 3, "ep": 12})
    tokens = tuple((replica, position) for replica in range(3) for position in range(16))
    picks = np.array([
        [scenario.with_token(replica=r, position=p).layer_picks()[n] for r, p in tokens] for n in (1, 2)
    ])  # fmt: skip
    assert_census(landed_census(scenario), plain_census(Batch(scenario, tokens, picks)))
    apart = landed_census(scenario, by_layer=True)
    assert [part.layers for part in apart.parts] == [(1,), (2,)]


@pytest.mark.parametrize(
    ("layers", "notes"),
    [
        (3, ()),
        (5, ("picks of 2 dense layers are passed over",)),
        (2, ("picks are of the first 2 of 3 MoE layers",)),
    ],
)
def test_layers_are_matched(layers: int, notes: tuple[str, ...]) -> None:
    model = {"layers": 5, "dense_layers": [1, 3]}
    scenario = scenario_of({"dp": 4, "ep": 4}, model, cluster={"gpus_per_node": 2})
    picks = picks_of(layers)
    mine = picks[[1, 3, 4]] if layers == 5 else picks
    batch = Batch(scenario, ((0, 0), (1, 1), (2, 2), (3, 3)), mine)
    census = take_census(scenario, ArrayPicks(picks))
    assert census.notes == notes
    assert census.layers == (2, 4, 5)[:layers]
    assert_census(census, plain_census(batch))


def test_as_many_picks_as_experts_and_one_more() -> None:
    scenario = scenario_of({"dp": 4, "ep": 4})
    every = np.broadcast_to(np.arange(12), (2, 4, 12))
    assert take_census(scenario, ArrayPicks(every)).picks == every.size
    with pytest.raises(ConfigError, match=r"picks='13 picks per token' are more than the model's 12 experts"):
        take_census(scenario, ArrayPicks(np.zeros((2, 4, 13), int)))


@pytest.mark.parametrize("sources", [np.array([4]), np.array([-1]), np.array([0, 3, 9])], ids=str)
def test_homes_that_are_no_ranks_of_stage_0(sources: np.ndarray) -> None:
    scenario = scenario_of({"dp": 4, "ep": 4, "pp": 2})
    with pytest.raises(ConfigError, match=rf"sources\[{len(sources) - 1}\]={sources[-1]} is not a rank"):
        GivenHomes.of_ranks(scenario, sources)


def test_a_home_beyond_a_world_of_one() -> None:
    with pytest.raises(ConfigError, match=r"sources\[0\]=1 is not a rank of stage 0"):
        GivenHomes.of_ranks(scenario_of({}), np.array([1]))


@pytest.mark.parametrize("sources", [np.array([[0]]), np.array([0.0])], ids=["two axes", "floats"])
def test_homes_are_integers(sources: Any) -> None:
    with pytest.raises(ConfigError, match=r"sources='.*' must be integers \[tokens\]"):
        GivenHomes.of_ranks(scenario_of({"dp": 4}), sources)


def test_homes_are_as_many_as_tokens() -> None:
    scenario = scenario_of({"dp": 4, "ep": 4})
    homes = GivenHomes.of_ranks(scenario, np.arange(3))
    with pytest.raises(ConfigError, match=r"sources='3 entries' must give the rank of each of the 4 tokens"):
        take_census(scenario, ArrayPicks(picks_of(2)), homes=homes)


@pytest.mark.parametrize("tokens", [1, 3, 4, 7, 14])
def test_even_homes_in_any_block(tokens: int) -> None:
    homes = EvenHomes(tokens, 4)
    share, extra = divmod(tokens, 4)
    assert len(homes.edges()) == 5
    of_token = np.repeat(np.arange(4), [share + (rank < extra) for rank in range(4)])
    for start in range(tokens):
        for stop in range(start + 1, tokens + 1):
            runs = homes.runs(start, stop)
            assert runs.scattered is None
            assert runs.starts[0] == 0
            assert np.repeat(runs.sources, np.diff(runs.starts)).tolist() == of_token[start:stop].tolist()
            assert homes.positions(start, stop).tolist() == list(range(start, stop))


@pytest.mark.parametrize("changes", [8, 9])
def test_given_homes_are_runs_until_they_change_too_often(changes: int) -> None:
    """Twice as many changes as ranks are still walked as they come."""
    places = np.arange(changes + 1) % 4
    homes = GivenHomes(places, 4)
    runs = homes.runs(0, changes + 1)
    assert (runs.scattered is None) == (changes == 8)
    expected = places if changes == 8 else np.sort(places)
    assert np.repeat(runs.sources, np.diff(runs.starts)).tolist() == expected.tolist()
    assert homes.positions(2, 5).tolist() == [2, 3, 4]
    assert replace(homes, prompt_positions=places).positions(3, 6).tolist() == [3, 0, 1]


def test_the_progress_of_several_walks_is_one() -> None:
    told: list[tuple[int, int]] = []
    third = part_of(lambda done, of: told.append((done, of)), 2, 4)
    third(0, 5)
    third(5, 5)
    assert told == [(10, 20), (15, 20)]


def test_interrupted_part_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C while it waits: what was begun is counted, and the note says how much; else it is raised."""
    scenario = scenario_of({"dp": 4, "ep": 4})
    picks = picks_of(2, 40)
    monkeypatch.setattr("tracer.batch.census.run.BLOCK_PICKS", 12)
    told: list[tuple[int, int]] = []
    whole = take_census(scenario, ArrayPicks(picks), progress=lambda done, of: told.append((done, of)))
    assert told == [(done, 20) for done in range(1, 21)]
    assert whole.notes == ()

    reached = threading.Event()

    def slow(done: int, of: int) -> None:
        if done >= 7:
            reached.set()
            time.sleep(0.1)

    def interrupted(futures: list[Any]) -> None:
        reached.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr("tracer.batch.census.run.wait", interrupted)
    part = take_census(scenario, ArrayPicks(picks), partial=True, progress=slow)
    counted = part.picks // 12
    assert part.notes == (f"PARTIAL: it was interrupted, and {counted} of 20 blocks of picks were counted",)
    assert 7 <= counted < 20
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        take_census(scenario, ArrayPicks(picks), progress=slow)
