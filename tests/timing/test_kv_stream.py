"""K/V streamed behind prefill: the simulation is the closed form, and the bytes are the last trip's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import decode_pool

from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.serving.kv_handover import KvHandover, kv_handover, kv_handover_of
from tracer.serving.kv_stream import _tasks, exposed_closed_form, kv_stream, stream_or_why
from tracer.serving.pools import Pools
from tracer.timing.pass_time import pass_time
from tracer.timing.schedules.streams import makespan, run_streams

SECONDS = st.floats(0.0, 100.0, allow_subnormal=False)


def moved(prefill: dict[str, Any] | None = None, **mesh: int) -> KvHandover:
    table = load_scenario("six-cuts").to_dict()
    for name, values in (prefill or {}).items():
        table[name] |= values
    return kv_handover(Pools.join(Scenario.from_dict(table), decode_pool(**mesh)))


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=12))
def test_the_simulation_is_the_closed_form(layers: list[tuple[float, float]]) -> None:
    compute, transfer = (tuple(column) for column in zip(*layers, strict=True))
    simulated = makespan(run_streams(_tasks(compute, transfer))) - sum(compute)
    assert simulated == pytest.approx(exposed_closed_form(compute, transfer), abs=1e-9)
    assert max(0.0, transfer[-1]) - 1e-9 <= simulated <= sum(transfer) + 1e-9


@given(SECONDS, st.floats(0.01, 100.0), st.integers(1, 80))
def test_layers_alike_leave_one_transfer_and_what_each_exceeds_a_layers_work(
    compute: float, transfer: float, layers: int
) -> None:
    expected = transfer + (layers - 1) * max(0.0, transfer - compute)
    assert exposed_closed_form((compute,) * layers, (transfer,) * layers) == pytest.approx(expected)


@pytest.mark.parametrize("mesh", [{}, {"tp": 4, "cp": 1, "dp": 8, "pp": 1, "ep": 32}])
def test_a_fast_link_leaves_the_last_layer_open(mesh: dict[str, int]) -> None:
    trip = moved(**mesh)
    stream = kv_stream(trip)
    assert stream.exposed_seconds == pytest.approx(stream.closed_form_seconds)
    assert stream.exposed_seconds == pytest.approx(stream.transfer[-1])
    assert stream.transfer[-1] == pytest.approx(max(trip_last_layer(trip).values()) / 50e9)
    assert stream.prefill_seconds == pytest.approx(pass_time(trip.pools.prefill, hardware("h100")).seconds)
    assert stream.hidden_seconds == pytest.approx(trip.seconds - stream.exposed_seconds)


def hardware(name: str) -> Any:
    from tracer.mesh.hardware import hardware_preset

    return hardware_preset(name)


def trip_last_layer(trip: KvHandover) -> dict[tuple[str, int], float]:
    """Bytes of the last layer on each link that has any."""
    found: dict[tuple[str, int], float] = {}
    for piece in trip.pieces:
        if 8 in piece.layers:
            for key in (("out", piece.src), ("in", piece.dst)):
                found[key] = found.get(key, 0.0) + piece.bytes / len(piece.layers)
    return found


def test_a_slow_link_is_bound_by_its_bytes_and_a_latency_counts_in_each_layer() -> None:
    slow = {"cluster": {"ib_bytes_per_s": 1e6, "ib_latency_s": 1e-3}}
    trip = moved(slow, tp=1, cp=1, dp=32, pp=1, ep=32)
    stream = kv_stream(trip)
    assert (stream.pool, stream.rank) == ("decode", 1)
    first = stream.compute[0]
    assert stream.exposed_seconds == pytest.approx(first + 8e-3 + trip.bytes / 1e6 - stream.prefill_seconds)
    assert trip.seconds == pytest.approx(1e-3 + trip.bytes / 1e6)
    assert "1000 µs a layer" in stream.assumption


def test_the_time_command_streams_to_a_decode_pool() -> None:
    words = ["time", "six-cuts", "--decode", "six-cuts-decode", "--hardware", "b200"]
    done = CliRunner().invoke(tokentrip, words, catch_exceptions=False)
    trip = kv_handover_of(load_scenario("six-cuts"), load_scenario("six-cuts-decode"), whole=True)
    assert f"K/V to the decode pool: {kv_stream(trip, 'b200')}" in done.output
    assert "one prompt on b200 at peak" in done.output
    told = json.loads(CliRunner().invoke(tokentrip, [*words, "--json"], catch_exceptions=False).output)
    assert told["kv_stream"] == kv_stream(trip, "b200").to_dict()


def test_what_cannot_be_streamed_says_why() -> None:
    bare = moved({"cluster": {"hardware": None}})
    assert stream_or_why(bare)[0] is None
    assert "cluster.hardware is not given and is needed to time what hides the K/V's transfer" in str(bare)
    one = kv_handover(moved().pools, 40)
    with pytest.raises(ConfigError, match="position=40 has no prefill to hide behind"):
        kv_stream(one)
    assert one.to_dict()["streamed"] is None
    told = moved().to_dict()["streamed"]
    assert told["exposed_seconds"] == pytest.approx(told["closed_form_seconds"])
