"""Virtual stages: which layers a GPU holds, and what the token's way round costs in sends, memory, time."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from oracle import OracleWeights
from oracle.keepers import Keepers
from oracle.walk import without_nulls

from app.lessons import chapter_payload
from layouts import build_scene, render_svg
from tracer import ConfigError, Scenario, take_trip
from tracer.memory.fits import check_fits
from tracer.memory.kv_owners import kv_owners
from tracer.memory.residency import residency_of
from tracer.serving.kv_handover import kv_handover
from tracer.serving.pools import Pools
from tracer.timing.report import time_report
from tracer.timing.schedules.chunk_schedules import chunk_idle_seconds, dualpipe_v, interleaved_1f1b, zb_v
from tracer.timing.schedules.decode_pipeline import run_decode
from tracer.timing.schedules.dualpipe_clock import ChunkTimes, ChunkWork, Schedule
from tracer.timing.schedules.pipeline import pipeline_bubble
from tracer.timing.schedules.training import Training, trainings
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


@pytest.mark.parametrize(("groups", "steps"), [(1, 5), (3, 7), (4, 4), (9, 3)])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_decode_round_equal_chunks_takes_its_closed_form(groups: int, steps: int, chunks: int) -> None:
    """A group's token takes a cell a chunk; a stage has chunks·groups cells a token to do."""
    run = run_decode([chunk % 4 for chunk in range(4 * chunks)], groups, steps, 1.0)
    assert run.seconds_per_token == max(4, groups) * chunks
    assert run.steady_bubble == max(0.0, 1 - groups / 4)
    long = run_decode([chunk % 4 for chunk in range(4 * chunks)], groups, 200, 1.0)
    assert long.bubble == pytest.approx(max(0.0, 1 - groups / 4), abs=0.02)


def test_decode_there_and_back_is_a_plain_queue() -> None:
    """Stages take what arrived first; the turn sends nothing, the way back to the first chunk does."""
    stage_of, cell, send = (0, 1, 1, 0), 2.0, 0.5
    run = run_decode(stage_of, 2, 3, cell, send)
    free, waiting, wanted = [0.0, 0.0], [(0.0, 0, 0, 0), (0.0, 0, 0, 1)], {}
    while waiting:
        ready, step, chunk, group = min(waiting)
        waiting.remove((ready, step, chunk, group))
        start = max(ready, free[stage_of[chunk]])
        wanted[step, chunk, group] = start
        free[stage_of[chunk]] = start + cell
        if chunk < 3:
            waiting.append((start + cell + (0 if chunk == 1 else send), step, chunk + 1, group))
        elif step < 2:
            waiting.append((start + cell + send, step + 1, 0, group))
    assert {key: run.start[key[0]][key[1]][key[2]] for key in wanted} == wanted
    assert run.steady_bubble is None


def test_decode_through_virtual_stages_is_timed() -> None:
    found = scenario(ROUND, phase="decode", cluster={"hardware": "h100"})
    report = time_report(found, micro_batches=4)
    assert report.decode is not None
    assert report.missing == tuple(each for each in report.missing if "virtual stages" not in each)
    assert len(report.decode.stage_of) == 16
    assert "over 4 stages of 16 chunks in all, a token every" in str(report)
    assert report.to_dict()["decode_pipeline"]["chunks"] == 16


@pytest.mark.parametrize(("stages", "chunks", "batches"), [(2, 1, 2), (3, 2, 6), (4, 3, 8), (5, 2, 20)])
def test_interleaved_1f1b_takes_its_closed_form(stages: int, chunks: int, batches: int) -> None:
    times = ChunkTimes(2, 5, 2, 6)
    found = interleaved_1f1b(stages, batches, chunks, times)
    idle = chunk_idle_seconds("interleaved", stages, times)
    assert idle is not None
    assert found.bubble_seconds == (idle,) * stages
    assert found.makespan == (batches * chunks + stages - 1) * 7
    share = 1 - found.busy_seconds[0] / found.makespan
    assert share == pytest.approx((stages - 1) / (batches * chunks + stages - 1))


@pytest.mark.parametrize(("stages", "batches"), [(2, 3), (3, 7), (4, 8), (6, 20)])
def test_zb_v_idles_only_while_it_fills(stages: int, batches: int) -> None:
    found = zb_v(stages, batches, ChunkTimes(1, 2, 1, 3))
    assert found.bubble_seconds == (stages - 1,) * stages
    assert Training("zb_v", ChunkTimes(1, 2, 1, 3), found, ()).idle_inside == 0
    one = interleaved_1f1b(stages, -(-batches // stages) * stages, 2, ChunkTimes(1, 2, 1, 3))
    assert max(found.bubble_seconds) < max(one.bubble_seconds)


@pytest.mark.parametrize(("stages", "batches"), [(2, 4), (3, 7), (4, 8), (6, 20)])
def test_dualpipe_v_idles_at_most_its_closed_form(stages: int, batches: int) -> None:
    times = ChunkTimes(3, 5, 2, 6)
    found = dualpipe_v(stages, batches, times)
    assert max(found.bubble_seconds) == chunk_idle_seconds("dualpipe_v", stages, times)


SCHEDULES = json.loads((Path(__file__).parent / "data" / "torch_schedules.json").read_text())["schedules"]
MAKERS = {
    "ScheduleInterleaved1F1B": lambda stages, batches, times: interleaved_1f1b(stages, batches, 2, times),
    "ScheduleZBVZeroBubble": zb_v,
    "ScheduleDualPipeV": dualpipe_v,
}


@pytest.mark.parametrize("case", sorted(SCHEDULES))
def test_each_stage_does_what_pytorch_schedules(case: str) -> None:
    """The same work on the same micro-batches in the same order, rank by rank."""
    name, stages, batches = case.split("/")
    found = MAKERS[name](int(stages), int(batches), ChunkTimes(1, 2, 1, 3))
    for stage, wanted in enumerate(SCHEDULES[case]):
        mine = [index for index, own in enumerate(found.stage) if own == stage]
        theirs = []
        for action in wanted.split():
            parts = re.findall(r"\d+([FBIW])(\d+)", action)
            theirs.append(tuple((work, int(batch)) for work, batch in parts))
        assert [cell_of(found, index) for index in mine] == [
            tuple((work, -1 if work == "W" else batch) for work, batch in action) for action in theirs
        ]


def cell_of(found: Schedule, index: int) -> tuple[tuple[str, int], ...]:
    """A cell as (letter, micro-batch) pairs; weights name none."""
    work, forward = ChunkWork(found.kind[index]), int(found.forward_batch[index])
    backward = int(found.backward_batch[index])
    letters = {
        ChunkWork.FORWARD: (("F", forward),),
        ChunkWork.BACKWARD: (("B", backward),),
        ChunkWork.BACKWARD_INPUT: (("I", backward),),
        ChunkWork.WEIGHTS: (("W", -1),),
        ChunkWork.OVERLAPPED: (("F", forward), ("B", backward)),
    }
    return letters[work]


def test_training_follows_the_chunk_order() -> None:
    cluster = {"hardware": "h100"}
    names = {}
    for mesh in (ROUND, BACK, {"pp": 4}):
        report = time_report(scenario(mesh, cluster=cluster), micro_batches=7)
        assert report.whole is not None
        names[mesh.get("chunk_order", "round" if "chunks" in mesh else "one")] = [
            each.name for each in trainings(report.whole, 7)
        ]
        if "chunks" in mesh:
            assert "in training, " in str(report)
    assert names == {"round": ["interleaved"], "v_shape": ["zb_v", "dualpipe_v"], "one": ["dualpipe"]}


def test_schedules_that_do_not_fit_are_refused() -> None:
    times = ChunkTimes(1, 2, 1, 3)
    with pytest.raises(ConfigError, match=r"micro_batches=5 must be whole groups of 4 stages.*try 8"):
        interleaved_1f1b(4, 5, 2, times)
    with pytest.raises(ConfigError, match=r"micro_batches=5 must be at least 2·4 - 1 for ZB-V; try 7"):
        zb_v(4, 5, times)
    with pytest.raises(ConfigError, match=r"micro_batches=7 must be at least 2·4 for DualPipe-V; try 8"):
        dualpipe_v(4, 7, times)
    with pytest.raises(ConfigError, match="are more than the 262,144 cells"):
        interleaved_1f1b(512, 1 << 18, 2, times)
    with pytest.raises(ConfigError, match="schedule='gpipe' must be one of interleaved"):
        chunk_idle_seconds("gpipe", 4, times)


def test_words_and_map_say_the_chunks() -> None:
    trip = take_trip(scenario(ROUND, layers=16))
    scene = build_scene(trip)
    words = [scene.hops[number].words for number, hop in enumerate(trip.hops) if hop.kind == "pp_send"]
    assert "the token goes round 4 times: 15 sends in all, where whole stages would need 3" in words[0].gotcha
    assert words[3].what.startswith("Chunk 1 of 4 on stage 3 (layer 4) is done.")
    there = build_scene(take_trip(scenario(BACK, layers=16)))
    assert any("turns at the last stage without a send: 6 sends" in hop.words.gotcha for hop in there.hops)
    narrow = build_scene(take_trip(scenario(BACK, layers=16, cluster={"gpus_per_node": 4})))
    assert ">1\u20132, 15\u201316<" in render_svg(narrow)


def test_the_chapter_of_virtual_stages_is_the_engine_s() -> None:
    lesson = chapter_payload("rounds")
    assert (lesson["question"]["answer"], lesson["trip"]["hops"][lesson["reveal"]]["kind"]) == (
        "GPU 0",
        "pp_send",
    )
    text = " ".join([*lesson["read"], lesson["question"]["explain"], lesson["after"]])
    for said in (
        "layers 1\u20134, 17\u201320",
        "sent 7 times",
        "send it 3 times",
        "idle 27% of the time",
        "these 16%",
    ):
        assert said in text
