"""Virtual stages: which layers a GPU holds, and what the token's way round costs in sends, memory, time."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from oracle import OracleWeights
from oracle.keepers import Keepers
from oracle.walk import without_nulls

from layouts import build_scene
from tracer import ConfigError, Scenario, take_trip
from tracer.memory.fits import check_fits
from tracer.memory.kv_owners import kv_owners
from tracer.memory.residency import residency_of
from tracer.serving.kv_handover import kv_handover
from tracer.serving.pools import Pools
from tracer.timing.report import time_report
from tracer.timing.schedules.pipeline import pipeline_bubble
from tracer.timing.schedules.virtual_stages import run_chunks
from tracer.traffic.traffic import comm_volume

MODEL = {
    "layers": 80, "hidden": 64, "heads": 8, "kv_heads": 8, "head_dim": 8, "vocab": 96, "dense_hidden": 128,
}  # fmt: skip
ROUND = {"pp": 4, "chunks": 4}
BACK = {"pp": 4, "chunks": 2, "chunk_order": "v_shape"}


def scenario(mesh: dict[str, Any], layers: int = 80, **tables: Any) -> Scenario:
    """A dense model of some layers on a mesh."""
    return Scenario.from_dict({"model": {**MODEL, "layers": layers}, "mesh": mesh, **tables})


def sends(deployment: Scenario) -> list[tuple[int, int]]:
    """(from, to) of each pipeline send of the token."""
    hops = [hop for hop in take_trip(deployment).hops if hop.kind == "pp_send"]
    return [(transfer.src, transfer.dst) for hop in hops for transfer in hop.transfers]


def test_eighty_layers_over_four_stages_of_four_chunks() -> None:
    found = scenario(ROUND)
    assert found.stage_runs[0] == (range(1, 6), range(21, 26), range(41, 46), range(61, 66))
    assert found.head_stage == 3
    assert sends(found) == [(stage % 4, (stage + 1) % 4) for stage in range(15)]
    assert comm_volume(found).axis("pp").times == 15  # type: ignore[union-attr]


def test_a_v_turns_at_the_last_stage_without_a_send() -> None:
    found = scenario(BACK)
    assert found.stage_runs == (
        (range(1, 11), range(71, 81)),
        (range(11, 21), range(61, 71)),
        (range(21, 31), range(51, 61)),
        (range(31, 51),),
    )
    assert found.head_stage == 0
    assert sends(found) == [(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)]


def test_the_log_says_the_chunks() -> None:
    assert "note: 4 chunks a stage, interleaved: layers of each in turn 5, 5, 5" in str(
        take_trip(scenario(ROUND))
    )
    assert "note: 2 chunks a stage, v shape: layers of each in turn 10, 10" in str(take_trip(scenario(BACK)))


def test_one_rank_sends_nothing_round() -> None:
    assert sends(scenario({"chunks": 4})) == []


@pytest.mark.parametrize("mesh", [ROUND, BACK, {**ROUND, "tp": 2, "sp": "off"}])
def test_traffic_is_the_sum_of_the_trips(mesh: dict[str, Any]) -> None:
    """Every token's sends, over the GPUs, are the line's bytes times its boundaries; crossings too."""
    found = scenario(mesh, layers=16, cluster={"gpus_per_node": 2 * mesh.get("tp", 1)})
    line = comm_volume(found).axis("pp")
    assert line is not None
    moved = {"nvlink": 0, "ib": 0}
    for position in range(found.token.prompt):
        for hop in take_trip(found.with_token(position=position)).hops:
            for transfer in hop.transfers if hop.kind == "pp_send" else ():
                moved[transfer.tier] += transfer.bytes
    tp = found.mesh.tp
    assert line.nvlink_bytes * line.times * tp == pytest.approx(moved["nvlink"])
    assert line.ib_bytes * line.times * tp == pytest.approx(moved["ib"])


@pytest.mark.parametrize("mesh", [ROUND, BACK, {"pp": 2, "chunks": 2, "chunk_layers": [0, 3, 5, 0]}])
def test_a_gpu_holds_its_chunks(mesh: dict[str, Any]) -> None:
    """Weights against units written out one by one, K/V against a list of keepers."""
    layers = 8 if "chunk_layers" in mesh else 16
    found = scenario(mesh, layers=layers)
    plain = OracleWeights(without_nulls(found.to_dict()))
    for rank, units in enumerate(plain.units):
        held = sum(plain.size[unit] * count for unit, count in units.items())
        assert residency_of(found, rank).parameters == held, rank
    keepers, owners = Keepers(found.to_dict()), kv_owners(found)
    for layer in range(1, layers + 1):
        kept = {holding.rank: list(holding.heads) for holding in owners.of_layer(layer)}
        assert kept == keepers.of(found.replica, found.position, layer)
    assert owners.copies == 1


def test_rank_and_fits_say_every_run() -> None:
    found = scenario(ROUND, cluster={"hardware": "h100"})
    assert "layers        1 to 5, 21 to 25, 41 to 45, 61 to 65" in str(residency_of(found, 0))
    row = check_fits(found).to_dict()["stages"][0]
    assert (row["layers"], row["layer_runs"]) == (None, [[1, 5], [21, 25], [41, 45], [61, 65]])


def test_a_stage_of_the_embedding_alone_keeps_no_kv() -> None:
    found = scenario({"pp": 3, "chunk_layers": [0, 40, 40]}, cluster={"hardware": "h100"})
    fits = check_fits(found)
    alone = residency_of(found, 0)
    assert (alone.kv_tokens_that_fit, alone.kv_bytes_per_token) == (None, 0)
    assert "no layer here keeps K/V" in str(alone)
    assert "no K/V" in str(fits)
    assert fits.tokens_a_replica == residency_of(found, 2).kv_tokens_that_fit


def test_kv_leaves_every_chunk_for_the_decode_pool() -> None:
    decode = scenario({"tp": 2}, phase="decode")
    moved = kv_handover(Pools.join(scenario(ROUND), decode))
    assert moved.bytes == 80 * 16 * 2 * 64 * 2
    assert moved.crossings == 8


@pytest.mark.parametrize(
    ("stages", "laps", "batches"), [(4, 1, 8), (4, 2, 8), (4, 4, 12), (2, 3, 2), (8, 2, 64)]
)
def test_the_bubble_of_interleaved_stages(stages: int, laps: int, batches: int) -> None:
    """(p-1)/(m·v+p-1), simulated: v times as many turns share the same idle time."""
    stage_of = tuple(range(stages)) * laps
    found = run_chunks([[0.5] * batches] * (stages * laps), stage_of)
    assert found.bubble == pytest.approx((stages - 1) / (batches * laps + stages - 1))
    assert found.bubble == pytest.approx(pipeline_bubble(stages, batches, laps))


@pytest.mark.parametrize("stage_of", [(0, 1, 2, 2, 1, 0), (0, 1, 2, 0, 1, 2)])
def test_no_stage_works_twice_at_once_and_none_before_its_rows(stage_of: tuple[int, ...]) -> None:
    random = Random(7)
    seconds = [[random.uniform(0.5, 2.0) for _ in range(7)] for _ in range(6)]
    found = run_chunks(seconds, stage_of, 0.25)
    start, end = np.array(found.start), np.array(found.start) + np.array(found.seconds)
    for chunk in range(1, 6):
        away = 0.25 if stage_of[chunk] != stage_of[chunk - 1] else 0.0
        assert (start[chunk] >= end[chunk - 1] + away - 1e-12).all()
    for stage in range(3):
        rows = [chunk for chunk, where in enumerate(stage_of) if where == stage]
        spans = sorted((start[c, m], end[c, m]) for c in rows for m in range(7))
        assert all(after >= done - 1e-12 for (_, done), (after, _) in pairwise(spans))


def test_the_time_report_runs_chunks() -> None:
    report = time_report(scenario(ROUND, cluster={"hardware": "h100"}), micro_batches=8)
    assert report.pipeline is not None and report.whole is not None
    assert (len(report.pipeline.start), report.pipeline.micro_batches) == (16, 8)
    assert (report.pipeline.stages, report.pipeline.chunks) == (4, 4)
    assert report.closed_bubble == pytest.approx(3 / (8 * 4 + 3))
    assert "pipeline: 4 stages of 4 chunks x 8 micro-batches" in str(report)
    there_and_back = time_report(scenario(BACK, cluster={"hardware": "h100"}))
    assert there_and_back.closed_bubble is None
    chunked = time_report(scenario(ROUND, cluster={"hardware": "h100"}), chunk=4).pipeline
    assert chunked is not None
    assert (len(chunked.start), chunked.micro_batches) == (16, 4)
    sent = 15 * report.whole.send_seconds
    assert report.whole.seconds == pytest.approx(sum(report.whole.stage_seconds) + sent)


def test_the_picture_says_the_chunks_and_where_the_row_goes() -> None:
    scene = build_scene(take_trip(scenario(ROUND)))
    assert next(band.layers for band in scene.bands) == "layers 1–5, 21–25, 41–45, 61–65"
    told = [hop.words for hop in scene.hops if hop.words.title.startswith("Send to stage")]
    assert [words.title for words in told[:5]] == [f"Send to stage {stage}" for stage in (1, 2, 3, 0, 1)]
    assert told[3].what.startswith("Chunk 1 of 4 on stage 3 (layers 16–20) is done.")
    assert told[4].what.startswith("Chunk 2 of 4 on stage 0 (layers 21–25) is done.")


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        (
            {"pp": 4, "chunks": 3, "chunk_order": "v_shape"},
            r"mesh\.chunk_order='v_shape' goes there and back",
        ),
        ({"pp": 2, "chunks": 2, "stage_layers": [40, 40]}, r"mesh\.stage_layers=.* lists whole stages"),
        (
            {"pp": 2, "chunks": 2, "chunk_layers": [40, 40]},
            r"must list 4 chunks \(pp times chunks\) that add up",
        ),
        ({"pp": 8, "chunks": 11}, r"mesh\.chunks=88 is more chunks .* than the model's 80 layers"),
        ({"chunks": 0}, r"mesh\.chunks=0 must be"),
        ({"chunk_layers": [-1, 81], "chunks": 2}, r"mesh\.chunk_layers\[0\]=-1 must be"),
        ({"chunk_order": "round"}, r"mesh\.chunk_order='round'"),
    ],
)
def test_refused(mesh: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        scenario(mesh)


def test_saved_and_read_again() -> None:
    for mesh in (ROUND, BACK, {"pp": 2, "chunks": 2, "chunk_layers": [0, 40, 40, 0]}):
        found = scenario(mesh)
        assert Scenario.from_toml(found.to_toml()).chunks == found.chunks
        assert Scenario.from_dict(found.to_dict()) == found
