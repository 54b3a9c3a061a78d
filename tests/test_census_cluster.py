"""The census on a Dask cluster: the same integers, also when a worker dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tracer.errors import ConfigError
from tracer.presets import load_scenario

pytest.importorskip("numba")
distributed = pytest.importorskip("distributed")

from tracer.census.cluster import cluster_census, same  # noqa: E402
from tracer.census.take import take_census  # noqa: E402
from tracer.picks.draws import DrawnPicks  # noqa: E402
from tracer.picks.npy import NpyPicks  # noqa: E402

# Warnings of dask about itself are not this test's business.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_same_to_the_bit_though_a_worker_dies(tmp_path: Path) -> None:
    scenario = load_scenario("six-cuts")
    drawn = DrawnPicks.of_model(scenario.need_model(), 60_000)
    np.save(tmp_path / "picks.npy", np.stack([drawn.read(layer, 0, 60_000) for layer in range(8)]))
    picks = NpyPicks.open(tmp_path / "picks.npy")
    local = take_census(scenario, picks, threads=2)
    assert same(local, take_census(scenario, picks, threads=1))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert same(local, cluster_census(scenario, picks, client, by_layer=True))
        victim = next(iter(client.run(os.getpid).values()))

        def kill() -> None:
            time.sleep(0.05)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        assert same(local, cluster_census(scenario, picks, cluster.scheduler_address, by_layer=True))
        killer.join()


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.census.cluster.CONNECT_SECONDS", 1)
    scenario = load_scenario("six-cuts")
    with pytest.raises(ConfigError, match=r"--scheduler='tcp://127\.0\.0\.1:1' does not answer"):
        cluster_census(scenario, DrawnPicks.of_model(scenario.need_model(), 10), "tcp://127.0.0.1:1")
