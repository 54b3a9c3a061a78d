"""The plugin in a user's test run, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MESH = """
[cluster]
nodes = 4
gpus_per_node = 8
[model]
layers = 8
hidden = 4096
heads = 32
kv_heads = 8
experts = 32
top_k = 2
vocab = 128000
[mesh]
tp = 2
cp = 2
dp = 4
pp = 2
ep = 16
[token]
replica = 2
position = 40
prompt = 64
[picks]
1 = [5, 27]
2 = [22, 9]
3 = [30, 17]
4 = [3, 12]
5 = [15, 25]
6 = [1, 19]
7 = [9, 27]
8 = [11, 31]
"""
TEST = """
def test_mesh_keeps_tp_inside_a_node(take_trip):
    trip = take_trip("mesh.toml")
    assert trip.log.node_crossings_by_axis["tp"] == 0
    assert (trip.log.gpus_touched, trip.log.node_crossings, trip.log.comm_ops) == (23, 15, 41)
    assert "Trip log: 23/32 GPUs" in str(trip)
"""
HOSTILE = "raise RuntimeError('a module of the user, not of tokentrip')\n"
GOLDEN = """
from pathlib import Path

def test_log(take_trip, golden_trip_log):
    golden_trip_log(take_trip("mesh.toml"), Path(__file__).with_name("log.txt"))
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run with the plugin, as an installed package brings it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:dash", "-p", "pytest_tokentrip", "-q", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_trip_in_a_users_test(tmp_path: Path) -> None:
    (tmp_path / "mesh.toml").write_text(MESH)
    (tmp_path / "test_mesh.py").write_text(TEST)
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_users_own_tracer_and_app_stay_theirs(tmp_path: Path) -> None:
    (tmp_path / "mesh.toml").write_text(MESH)
    (tmp_path / "tracer.py").write_text("mine = 1\n")
    (tmp_path / "app.py").write_text(HOSTILE)
    theirs = "import tracer\n\ndef test_mine():\n    assert tracer.mine == 1\n"
    (tmp_path / "test_a_mesh.py").write_text(TEST)
    (tmp_path / "test_b_mine.py").write_text(theirs + TEST)
    done = run_pytest(tmp_path)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_an_unimportable_tracer_is_never_imported(tmp_path: Path) -> None:
    (tmp_path / "mesh.toml").write_text(MESH)
    for name in ("tracer.py", "app.py", "layouts.py"):
        (tmp_path / name).write_text(HOSTILE)
    (tmp_path / "test_mesh.py").write_text(TEST)
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_golden_logs_are_written_on_request_and_part_at_a_line(tmp_path: Path) -> None:
    (tmp_path / "mesh.toml").write_text(MESH)
    (tmp_path / "test_log.py").write_text(GOLDEN)
    missing = run_pytest(tmp_path)
    assert "pytest --tokentrip-update writes it" in missing.stdout
    assert "1 passed" in run_pytest(tmp_path, "--tokentrip-update").stdout
    assert "1 passed" in run_pytest(tmp_path).stdout
    (tmp_path / "mesh.toml").write_text(MESH.replace("2 = [22, 9]", "2 = [22, 23]"))
    parted = run_pytest(tmp_path)
    assert "parts from its golden log at line 14" in parted.stdout, parted.stdout
    assert "now:" in parted.stdout


def test_a_run_without_trips_loads_no_engine(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    assert not {'tracer', 'layouts', 'app', 'numpy', 'plotly', 'dash'} & set(sys.modules)\n"
    )
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


ASSERTS = """
def test_log(take_trip, assert_trip_log, assert_axis_stays_inside_node):
    trip = take_trip("mesh.toml")
    assert_trip_log(trip, gpus=23, crossings=15, ops=41)
    assert_trip_log(trip, crossings={"ep": 14, "pp": 1, "tp": 0, "cp": 0})
    for axis in ("tp", "cp", "etp"):
        assert_axis_stays_inside_node(trip, axis)
"""


def test_counts_and_axes_hold_on_the_mesh_they_were_written_for(tmp_path: Path) -> None:
    (tmp_path / "mesh.toml").write_text(MESH)
    (tmp_path / "test_log.py").write_text(ASSERTS)
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_failure_shows_the_hop_where_the_two_part(tmp_path: Path) -> None:
    # Node 0's four GPUs: TP pairs stay together, CP's ring and the experts cross sooner.
    small_nodes = MESH.replace("gpus_per_node = 8", "gpus_per_node = 2").replace("nodes = 4", "nodes = 16")
    (tmp_path / "mesh.toml").write_text(small_nodes)
    (tmp_path / "test_log.py").write_text(ASSERTS)
    counts = run_pytest(tmp_path)
    assert "1 failed" in counts.stdout
    assert "node crossings: expected 15, the trip has " in counts.stdout
    assert "they part at hop " in counts.stdout, counts.stdout
    assert "which takes the count from " in counts.stdout
    # The user's own line is shown, not the plugin's.
    assert "assert_trip_log(trip, gpus=23, crossings=15, ops=41)" in counts.stdout
    assert "_engine(" not in counts.stdout
    (tmp_path / "test_log.py").write_text(
        "from pytest_tokentrip import assert_axis_stays_inside_node\n\n"
        "def test_tp(take_trip):\n    assert_axis_stays_inside_node(take_trip('mesh.toml'), 'tp')\n\n"
        "def test_cp(take_trip):\n    assert_axis_stays_inside_node(take_trip('mesh.toml'), 'cp')\n"
    )
    axes = run_pytest(tmp_path)
    assert "1 failed, 1 passed" in axes.stdout
    assert "cp leaves its node at hop 2 (layer 1, kv_exchange): 11⇒9 10⇒8" in axes.stdout.replace(
        "10⇒8 11⇒9", "11⇒9 10⇒8"
    ), axes.stdout


def test_the_assertions_work_beside_a_users_own_tracer(tmp_path: Path) -> None:
    (tmp_path / "mesh.toml").write_text(MESH)
    for name in ("tracer.py", "app.py", "layouts.py"):
        (tmp_path / name).write_text(HOSTILE)
    (tmp_path / "test_log.py").write_text(ASSERTS)
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
