"""The compiled census against plain loops, closed forms and refusals."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_census import brute_counts

from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.traffic.dispatch import expected_copies
from tracer.traffic.traffic import comm_volume

pytest.importorskip("numba")

from tracer.batch.census.homes import EvenHomes, GivenHomes
from tracer.batch.census.take import take_census
from tracer.batch.picks.draws import DrawnPicks
from tracer.batch.picks.source import ArrayPicks


def scenario_of(
    ep: int, experts: int, top_k: int, gpus_per_node: int = 8, nodes_per_island: int = 1, **mesh: Any
) -> Scenario:
    model = {"layers": 1, "hidden": 16, "heads": 4, "head_dim": 4, "experts": experts, "top_k": top_k}
    return Scenario.from_dict(
        {
            "model": model | {"expert_hidden": 8, "vocab": 8},
            "mesh": {"dp": ep, "ep": ep} | mesh,
            "cluster": {"gpus_per_node": gpus_per_node, "nodes_per_island": nodes_per_island},
        }
    )


def random_picks(rng: np.random.Generator, tokens: int, experts: int, top_k: int, dtype: Any) -> np.ndarray:
    return rng.random((1, tokens, experts)).argsort(-1)[:, :, :top_k].astype(dtype)


SHAPES = [
    # ep, experts, k, GPUs per node, nodes per island
    (16, 32, 2, 8, 1),
    (64, 256, 8, 8, 1),
    (40, 80, 4, 8, 1),  # 5 lanes
    (72, 288, 8, 4, 18),  # one lane of 128 bits: wider than a word
    (144, 288, 8, 4, 18),  # two of them
    (96, 96, 3, 6, 1),  # lanes of 8 bits, 6 used
    (160, 160, 6, 1, 1),  # every GPU an island, three words
    (128, 256, 8, 8, 4),  # lanes of 32 bits, two words
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["even", "shuffled"])
def test_against_plain_loops(shape: tuple[int, int, int, int, int], order: str) -> None:
    ep, experts, top_k, gpus_per_node, nodes_per_island = shape
    scenario = scenario_of(ep, experts, top_k, gpus_per_node, nodes_per_island)
    rng = np.random.default_rng(ep)
    picks = random_picks(rng, 700, experts, top_k, np.int16)
    picks[0, ::50] = -1
    homes: Any = EvenHomes(700, ep)
    sources = np.searchsorted(homes.edges(), np.arange(700), "right") - 1
    if order == "shuffled":
        sources = rng.permutation(sources)
        homes = GivenHomes.of_ranks(scenario, sources)
    census = take_census(scenario, ArrayPicks(picks), homes=homes, threads=2)
    nvlink_domains = np.arange(ep) // (gpus_per_node * nodes_per_island)
    gpu_of = np.arange(experts) // (experts // ep)
    copies, by_nvlink_domain, load = brute_counts(picks, sources, gpu_of, nvlink_domains, experts)
    assert (census.copies == copies).all()
    assert (census.load_by_expert == load).all()
    by_nvlink_domain[np.arange(ep), nvlink_domains] = 0
    if ep % (gpus_per_node * nodes_per_island) == 0:
        assert (census.ib_copies == by_nvlink_domain).all()
    assert census.sent.sum() == census.messages_by_tier()["nvlink"] + census.messages_by_tier()["ib"]


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_a_large_batch_counts_the_same_as_in_pieces(dtype: Any) -> None:
    """Large batches use a kernel compiled for their k and dtype; pieces use the one for all."""
    scenario = scenario_of(64, 256, 8)
    picks = DrawnPicks(1, 600_000, 8, 256).read(0, 0, 600_000).astype(dtype)[None]
    sources = np.searchsorted(EvenHomes(600_000, 64).edges(), np.arange(600_000), "right") - 1
    whole = take_census(scenario, ArrayPicks(picks))
    shuffled = np.random.default_rng(1).permutation(600_000)
    unsorted = take_census(
        scenario,
        ArrayPicks(np.ascontiguousarray(picks[:, shuffled])),
        homes=GivenHomes.of_ranks(scenario, sources[shuffled]),
    )
    total = np.zeros((64, 64), np.int64)
    for start in range(0, 600_000, 200_000):
        part = slice(start, start + 200_000)
        homes = GivenHomes.of_ranks(scenario, sources[part])
        total += take_census(scenario, ArrayPicks(picks[:, part]), homes=homes, threads=1).sent
    assert (whole.sent == total).all()
    assert (unsorted.sent == total).all()
    assert whole.picks == picks.size


@pytest.mark.parametrize("name", ["six-cuts", "six-cuts-pp-inside-dp", "deepseek-v3-prefill-ep32"])
def test_closed_form_within_sampling_error(name: str) -> None:
    """IB and NVLink copies per token against the exact sums; error below 4.5 standard errors."""
    scenario = load_scenario(name).with_(picks=())
    tokens = 20_000
    model = scenario.model
    census = take_census(scenario, DrawnPicks.of_model(model, tokens, seed=7))
    expected = expected_copies(scenario, census.layers[0])
    rows = tokens * len(census.layers)
    for tier, mean in (("ib", expected.ib), ("nvlink", expected.nvlink)):
        # Copies to different islands or GPUs crowd each other out: the sum varies less than a Poisson count.
        assert abs(census.messages_by_tier()[tier] / rows - mean) < 4.5 * np.sqrt(mean / rows)


@pytest.mark.parametrize(
    ("mesh", "cluster"),
    [
        ({"sp": "off", "tp": 2}, {}),
        ({"tp": 2, "etp": 2, "ep": 4}, {}),
        ({"dispatch": "low_latency"}, {}),
        ({"contract": "ag_rs"}, {}),
        ({}, {"gpus_per_node": 3}),
        ({}, {"slots": [*range(32), *range(16), *range(0, 32, 2)]}),
    ],
    ids=["sp off", "etp", "low latency", "ag_rs", "no relay", "replicas"],
)
def test_expected_traffic_is_the_census_of_uniform_picks(
    mesh: dict[str, Any], cluster: dict[str, Any]
) -> None:
    data = load_scenario("six-cuts").to_dict()
    data["picks"], data["token"] = {}, {}
    for key in ("edp", "etp"):
        data["mesh"].pop(key)
    data["mesh"] |= {"pp": 1, "tp": 1, "cp": 1, "dp": 8, "ep": 8} | mesh
    data["cluster"] = {"gpus_per_node": cluster.get("gpus_per_node", 4)}
    if "slots" in cluster:
        data["placement"] = {"slots": cluster["slots"]}
    if "sp" in mesh:
        data["mesh"]["ep"] = 16
    scenario = Scenario.from_dict(data)
    per_rank = 1000
    tokens = per_rank * scenario.mesh.stage_size
    scenario = scenario.with_(token=replace(scenario.token, prompt=per_rank * scenario.mesh.tp))
    census = take_census(scenario, DrawnPicks.of_model(scenario.model, tokens, seed=5))
    line = comm_volume(scenario).axis("ep")
    assert line is not None
    layers, ranks = len(census.layers), scenario.mesh.world_size
    for tier, expected in (("nvlink", line.nvlink_bytes), ("ib", line.ib_bytes)):
        counted = census.bytes_by_tier("dispatch")[tier] + census.bytes_by_tier("combine")[tier]
        assert counted / (layers * ranks) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        ({"dispatch": "low_latency"}, "low latency sends a message for each: nothing is saved"),
        ({"contract": "ag_rs"}, "contract ag_rs moves the same whatever is picked: nothing is saved"),
        ({"contract": "dwdp"}, "contract dwdp moves the same whatever is picked: nothing is saved"),
        ({}, "one copy a GPU saves"),
    ],
)
def test_savings_are_said_only_where_doubles_are_removed(mesh: dict[str, Any], said: str) -> None:
    data = load_scenario("six-cuts").to_dict()
    data["mesh"] |= mesh
    census = take_census(Scenario.from_dict(data), DrawnPicks.of_model(Scenario.from_dict(data).model, 800))
    kept = census.to_dict()["saved"]
    assert said in str(census)
    assert (kept["picks"] > 0) == (mesh.get("contract") != "dwdp")
    if mesh:
        assert (kept["by_gpu"], kept["by_island"]) == (0, 0)
    else:
        assert min(kept.values()) > 0


def test_each_layer_apart_adds_up() -> None:
    scenario = load_scenario("six-cuts")
    census = take_census(scenario, DrawnPicks.of_model(scenario.model, 500), by_layer=True)
    assert sum(census.only(layer).copies for layer in census.layers).tolist() == census.copies.tolist()
    report = census.to_dict(by_layer=True)
    assert sorted(map(int, report["by_layer"])) == list(range(1, 9))
    assert report["imbalance"] == pytest.approx(max(report["load_by_expert"]) * 32 / (500 * 2 * 8))
    with pytest.raises(ConfigError, match=r"layer=9 was not counted apart"):
        census.only(9)


@pytest.mark.parametrize(
    ("picks", "words"),
    [
        (np.full((8, 4, 2), 32), r"picks\[0, 0, 0\]=32 must be an expert from 0 to 31"),
        (np.array([[[0, 1]] * 3 + [[4, -2]]] * 8), r"picks\[0, 3, 1\]=-2 must be an expert"),
        (np.zeros((9, 4, 2), int), r"picks='9 layers' must be one of each of the model's 8 MoE layers"),
        (np.zeros((8, 4, 40), int), r"picks='40 picks per token' are more than the model's 32 experts"),
        (np.zeros((8, 4, 2)), r"picks='float64' must be integers"),
        (np.zeros(8, int), r"picks=\[8\] must be \[layers, tokens, k\]"),
    ],
)
def test_wrong_picks_name_the_element(picks: np.ndarray, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        take_census(load_scenario("six-cuts"), ArrayPicks(picks))


def test_a_repeated_expert_is_refused_when_asked() -> None:
    picks = np.array([[[0, 1], [3, 3]]] * 8)
    with pytest.raises(ConfigError, match=r"picks\[0, 1, 1\]=3 repeats an expert of the same token"):
        take_census(load_scenario("six-cuts"), ArrayPicks(picks), check_repeats=True)


def test_sources_must_be_ranks_of_stage_0() -> None:
    scenario = load_scenario("six-cuts")
    with pytest.raises(ConfigError, match=r"sources\[1\]=16 is not a rank of stage 0"):
        GivenHomes.of_ranks(scenario, np.array([3, 16]))


def test_without_numba_the_extra_is_named() -> None:
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'numba' else find(name, *a)\n"
        "from tracer.batch.census.take import landed_census\n"
        "from tracer.scenario.files import load_scenario\n"
        "try: landed_census(load_scenario('six-cuts'))\nexcept ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'tokentrip[census]'" in done.stdout
