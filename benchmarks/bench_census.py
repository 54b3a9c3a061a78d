"""The census: against a Python loop, numpy and memory; its peak memory; and two Dask workers against one.

Top-8 of 256, EP64 on 8 nodes, int16 picks; every contender counts copies by GPU, copies by island and
loads by expert. Each ratio's two sides take turns; a slow side gets a part of the picks, and its time is
scaled to all of them. Every turn is a few milliseconds and the best of many counts, so that a busy machine
disturbs both sides alike.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.ratios import Ratio, interleave
from tracer.batch.census.counts import Counts
from tracer.batch.census.homes import EvenHomes, GivenHomes
from tracer.batch.census.run import CensusPlan, count_blocks
from tracer.batch.census.take import plan_census
from tracer.batch.picks.draws import DrawnPicks
from tracer.batch.picks.source import ArrayPicks
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario

RANKS, NODE, EXPERTS, TOP_K = 64, 8, 256, 8
TOKENS = 1 << 20
NUMPY_SHARE, LOOP_SHARE = 1 << 6, 1 << 11
FILE_PICKS = 2_000_000_000
SCENARIO = "deepseek-v3-ep64"


def make_picks(tokens: int) -> np.ndarray:
    """``[1, tokens, 8]`` int16, a drawn run of tokens over and over."""
    drawn = DrawnPicks(1, 1 << 16, TOP_K, EXPERTS).read(0, 0, 1 << 16)
    return np.tile(drawn, (-(-tokens // len(drawn)), 1))[None, :tokens]


def prepared(picks: np.ndarray, homes: EvenHomes | GivenHomes | None = None) -> CensusPlan:
    return plan_census(load_scenario(SCENARIO), ArrayPicks(picks), homes)[0]


def census(walk: CensusPlan, threads: int = 2) -> Counts:
    """The counts, tables standing ready as they do for the others; the fold into relays is left out."""
    layers = tuple(walk.key_of)
    totals = [Counts.zeros(walk.layout, walk.tables[0].slots)]
    count_blocks(walk, walk.blocks(layers), slot_of=lambda _: 0, totals=totals, threads=threads)
    return totals[0]


def double_loop(picks: np.ndarray, sources: np.ndarray) -> object:
    """Tokens and picks in plain Python, indexed as such simulations index them."""
    copies = [[0] * RANKS for _ in range(RANKS)]
    nvlink_domains = [[0] * (RANKS // NODE) for _ in range(RANKS)]
    load = [0] * EXPERTS
    for token in range(len(picks)):
        source, gpus, nodes = sources[token], set(), set()
        for column in range(TOP_K):
            expert = picks[token, column]
            load[expert] += 1
            gpu = expert // (EXPERTS // RANKS)
            gpus.add(gpu)
            nodes.add(gpu // NODE)
        for gpu in gpus:
            copies[source][gpu] += 1
        for node in nodes:
            nvlink_domains[source][node] += 1
    return copies, nvlink_domains, load


def numpy_sort(picks: np.ndarray, sources: np.ndarray) -> object:
    """Sort each token's GPUs, keep the first of equals, bincount by pair; the same by node."""
    gpus = np.sort(picks // (EXPERTS // RANKS), axis=1)
    found = []
    for ids, count in ((gpus, RANKS), (gpus // NODE, RANKS // NODE)):
        first = np.ones(ids.shape, bool)
        first[:, 1:] = ids[:, 1:] != ids[:, :-1]
        pairs = (sources[:, None] * count + ids)[first]
        found.append(np.bincount(pairs, minlength=RANKS * count))
    return *found, np.bincount(picks.ravel(), minlength=EXPERTS)


def against_plain_ways() -> Iterator[Ratio]:
    picks = make_picks(TOKENS)
    walk = prepared(picks)
    sources = np.repeat(np.arange(RANKS), TOKENS // RANKS)
    census(walk)
    rate = f"{TOKENS * TOP_K / 1e6:.0f} M picks"
    for name, baseline, share, bound in (
        ("a Python double loop", double_loop, LOOP_SHARE, 600.0),
        ("numpy sort + bincount", numpy_sort, NUMPY_SHARE, 30.0),
    ):
        part, homes = picks[0, : TOKENS // share], sources[::share][: TOKENS // share]
        found = interleave(
            f"census of {rate}, against {name}",
            lambda: census(walk),
            lambda baseline=baseline, part=part, homes=homes: baseline(part, homes),  # type: ignore[misc]
            rounds=200,
            baseline_rounds=40,
            at_least=bound,
        )
        yield replace(found, baseline_s=found.baseline_s * share)
    words = picks.reshape(-1).view(np.int64)
    yield interleave(
        f"census of {rate}, against reading them from memory once",
        lambda: census(walk),
        lambda: words.max(),
        rounds=60,
        at_most=20.0,
    )


def wider() -> Scenario:
    """The same model over twice the GPUs."""
    tables = load_scenario(SCENARIO).to_dict()
    tables["mesh"] |= {"dp": 2 * RANKS, "ep": 2 * RANKS, "edp": None}
    tables["cluster"]["nodes"] = None
    return Scenario.from_dict(tables | {"placement": None})


def other_shapes() -> Iterator[Ratio]:
    """Unsorted sources against sorted ones; 128 GPUs (two words) against 64."""
    picks = make_picks(TOKENS)
    sources = np.random.default_rng(0).integers(0, RANKS, TOKENS)
    walk = prepared(picks)
    unsorted = prepared(picks, GivenHomes.of_ranks(load_scenario(SCENARIO), sources))
    wide = plan_census(wider(), ArrayPicks(picks), None)[0]
    for name, other in (("unsorted sources", unsorted), ("128 GPUs, two words a mask", wide)):
        census(other)
        yield interleave(
            f"census with {name}, against the plain one",
            lambda other=other: census(other),  # type: ignore[misc]
            lambda: census(walk),
            rounds=40,
            at_most=8.0,
        )


PEAK = """
import resource, sys
from pathlib import Path
from tracer.batch.census.take import take_census
from tracer.batch.picks.npy import NpyPicks
from tracer.scenario.files import load_scenario
census = take_census(load_scenario({scenario!r}), NpyPicks.open(Path({path!r})), threads=2)
assert census.picks == {picks}, census.picks
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def write_file(path: Path) -> int:
    """A ``.npy`` of about 2 * 10^9 picks over the model's MoE layers; how many there are."""
    layers = load_scenario(SCENARIO).model.moe_layers
    tokens = -(-FILE_PICKS // (layers * TOP_K))
    layer = make_picks(tokens)[0]
    header = {"descr": "<i2", "fortran_order": False, "shape": (layers, tokens, TOP_K)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(layers):
            file.write(layer.tobytes())
    return layers * tokens * TOP_K


def peak_memory(path: Path, picks: int) -> Ratio:
    """Largest resident size of a fresh process that streams the file."""
    code = PEAK.format(scenario=SCENARIO, path=str(path), picks=picks)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak = int(done.stdout) * 1024 / 1e9
    return Ratio(f"peak memory of {picks / 1e9:.2f}e9 picks, against 1 GB", peak, 1.0, 1.0, True, "GB", 1.0)


def two_workers(path: Path, picks: int) -> Ratio:
    """The same file on one Dask worker and on two, one thread each."""
    from distributed import Client, LocalCluster

    from tracer.batch.census.cluster import cluster_census, same
    from tracer.batch.picks.npy import NpyPicks

    scenario, source = load_scenario(SCENARIO), NpyPicks.open(path)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        LocalCluster(n_workers=1, **options) as one,
        LocalCluster(n_workers=2, **options) as two,
        Client(one) as single,
        Client(two) as double,
    ):
        assert same(cluster_census(scenario, source, single), cluster_census(scenario, source, double))
        return interleave(
            f"census of {picks / 1e9:.2f}e9 picks, two Dask workers against one",
            lambda: cluster_census(scenario, source, double),
            lambda: cluster_census(scenario, source, single),
            rounds=12,
            at_least=1.5,
        )


def run() -> Iterator[Ratio]:
    yield from against_plain_ways()
    yield from other_shapes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picks.npy"
        picks = write_file(path)
        yield peak_memory(path, picks)
        yield two_workers(path, picks)
