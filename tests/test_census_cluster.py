"""The census on a Dask cluster: the same integers, also when a worker dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario

pytest.importorskip("numba")
distributed = pytest.importorskip("distributed")

from tracer.batch.census.cluster import cluster_census, same  # noqa: E402
from tracer.batch.census.homes import GivenHomes  # noqa: E402
from tracer.batch.census.take import take_census  # noqa: E402
from tracer.batch.picks.draws import DrawnPicks  # noqa: E402
from tracer.batch.picks.npy import NpyPicks  # noqa: E402

# Warnings of dask about itself are not this test's business.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def two_workers() -> Iterator[distributed.Client]:
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, **options) as cluster, distributed.Client(cluster) as client:
        yield client


def test_the_same_to_the_bit_though_a_worker_dies(tmp_path: Path, two_workers: distributed.Client) -> None:
    scenario, client = load_scenario("six-cuts"), two_workers
    drawn = DrawnPicks.of_model(scenario.model, 60_000)
    np.save(tmp_path / "picks.npy", np.stack([drawn.read(layer, 0, 60_000) for layer in range(8)]))
    picks = NpyPicks.open(tmp_path / "picks.npy")
    local = take_census(scenario, picks, threads=2)
    assert same(local, take_census(scenario, picks, threads=1))
    assert same(local, cluster_census(scenario, picks, client, by_layer=True))
    victim = next(iter(client.run(os.getpid).values()))

    def kill() -> None:
        time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    address = client.scheduler_info()["address"]
    assert same(local, cluster_census(scenario, picks, address, by_layer=True))
    killer.join()


@pytest.mark.parametrize("small_bytes", [0, 1 << 30])
def test_a_walk_goes_along_with_tasks_or_is_one(
    small_bytes: int, two_workers: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracer.batch.census.cluster.SMALL_WALK_BYTES", small_bytes)
    scenario = load_scenario("six-cuts")
    picks = DrawnPicks.of_model(scenario.model, 5_000)
    homes = GivenHomes.of_ranks(scenario, np.arange(5_000) % 16)
    found = cluster_census(scenario, picks, two_workers, homes=homes)
    assert same(found, take_census(scenario, picks, homes=homes))


def test_an_interrupted_count_is_named_partial(two_workers: distributed.Client) -> None:
    scenario = load_scenario("six-cuts")
    picks = DrawnPicks.of_model(scenario.model, 20_000)

    def give_up(done: int, blocks: int) -> None:
        if done >= blocks // 2:
            raise KeyboardInterrupt

    part = cluster_census(scenario, picks, two_workers, progress=give_up, partial=True)
    whole = cluster_census(scenario, picks, two_workers)
    assert part.notes[0].startswith("PARTIAL: it was interrupted, and ")
    assert "of 8 blocks" in part.notes[0]
    assert not any("PARTIAL" in note for note in whole.notes)
    assert 0 < part.load_by_expert.sum() < whole.load_by_expert.sum()
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        cluster_census(scenario, picks, two_workers, progress=give_up)


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.batch.census.cluster.CONNECT_SECONDS", 1)
    scenario = load_scenario("six-cuts")
    with pytest.raises(ConfigError, match=r"--scheduler='tcp://127\.0\.0\.1:1' does not answer"):
        cluster_census(scenario, DrawnPicks.of_model(scenario.model, 10), "tcp://127.0.0.1:1")
