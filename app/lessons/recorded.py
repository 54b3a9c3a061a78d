"""The chapter about a real run: its dumps, the layout behind them, and the rank that stopped first."""

from __future__ import annotations

from functools import cache

from app.lessons.lesson import Lesson, ask
from app.query.address import flatten, scenario_of
from layouts.scene.labels import gpus
from tracer.runs.reading.files import read_run
from tracer.runs.report import RunReport, examine
from tracer.runs.scenario import to_scenario
from tracer.runs.shipped import shipped_files
from tracer.trip.trip import take_trip

RECORDING = "megatron-a"


@cache
def _report() -> RunReport:
    """The recording that ships, read once."""
    with shipped_files(RECORDING) as paths:
        report = examine(read_run(paths))
        for record in report.recording.ranks.values():
            assert record.ops is not None  # the files are gone afterwards
        return report


def recorded() -> Lesson:
    """Sixteen dumps of a job that hung: what their groups say, and who is behind its peer."""
    report = _report()
    layout, suspect = report.layout, report.blame.suspects[0]
    query = {"scenario": "", **flatten(to_scenario(layout)[0].to_dict())}
    trip = take_trip(scenario_of(query))
    tensor = next(
        group
        for group in report.recording.groups
        if layout.families.of(group) == "tp" and suspect.rank in group.members
    )
    hop = next(
        number
        for number, each in enumerate(trip.hops)
        if each.kind == "all_gather" and {t.src for t in each.transfers} & set(tensor.members)
    )
    done = {rank: report.recording.ranks[rank].progress[tensor].completed or 0 for rank in tensor.members}
    peer = max(done, key=lambda rank: done[rank])
    named = [each.rank for each in report.blame.suspects]
    level = [rank for rank in report.recording.ranks if rank not in named and rank not in tensor.members]
    counted = {
        axis: sum(layout.families.of(group) == axis and group.size > 1 for group in report.recording.groups)
        for axis in ("tp", "pp", "ep")
    }
    read = (
        f"A Megatron job of {report.recording.world_size} GPUs hung, and every rank wrote down its groups "
        f"and its last operations. The groups alone give the mesh: {counted['tp']} groups of "
        f"{layout.sizes['tp']} are TP, {counted['pp']} of {layout.sizes['pp']} the pipeline, {counted['ep']} "
        f"of {layout.sizes['ep']} the experts. So the map here is the job's own, and the token takes the way "
        "that its rows took.",
        f"{gpus(list(tensor.members))} share a TP group and gather rows from each other. In that group rank "
        f"{peer} has completed {done[peer]:,} collectives, rank {suspect.rank} {done[suspect.rank]:,}. "
        "Elsewhere ranks wait as well: the pipeline brings them nothing.",
    )
    question = ask(
        "Which of these stopped, and did not only wait?",
        gpus([suspect.rank]),
        [gpus([peer]), gpus([level[0]]), gpus([level[-1]])],
        f"A gather ends for nobody before everybody has taken part. Rank {peer} has seen "
        f"{done[peer] - done[suspect.rank]} of them end that rank {suspect.rank} has not: its part in them "
        f"was done, and only the rank itself failed to see it. {suspect.waiting} ranks wait for it, directly "
        "or through others.",
    )
    after = (
        f"In all, ranks {' and '.join(map(str, named))} are named, and these are the ones into which GPU "
        "errors were injected. Numbers are compared inside a group, never between groups: different groups "
        "count different things. The page Run does this with your own dumps."
    )
    return Lesson(query, trip, read, question, after, max(0, hop - 1), hop)
