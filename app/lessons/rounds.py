"""The chapter about virtual stages: a token that comes round to the same GPU, and what that buys."""

from __future__ import annotations

from app.lessons.lesson import Lesson, ask
from app.query.address import scenario_of
from layouts.scene.labels import gpus, stage_layers_text
from tracer.timing.schedules.pipeline import pipeline_bubble
from tracer.traffic.traffic import stage_sends
from tracer.trip.trip import take_trip

MICRO_BATCHES = 8
ROUND = {
    "scenario": "",
    "name": "four stages of two chunks",
    "model.preset": "llama-3.1-8b",
    "mesh.pp": "4",
    "mesh.chunks": "2",
    "cluster.hardware": "h100",
    "token.prompt": "16",
}


def rounds() -> Lesson:
    """Two chunks a stage: twice round, more sends, a shorter bubble."""
    scenario = scenario_of(ROUND)
    trip, mesh, plan = take_trip(scenario), scenario.mesh, scenario.plan
    hops = [number for number, hop in enumerate(trip.hops) if hop.kind == "pp_send"]
    back = next(number for number in hops if trip.hops[number].transfers[0].dst == scenario.home)
    leaving = trip.hops[back].transfers[0]
    sends, last = len(stage_sends(scenario)), mesh.stages - 1
    read = (
        f"In a pipeline each stage usually holds one run of layers. Here each holds {plan.chunks}: stage 0 "
        f"has {stage_layers_text(scenario, 0)}, stage {last} {stage_layers_text(scenario, last)}. Such runs "
        "are called chunks, or virtual stages.",
        f"The token is on {gpus([leaving.src])}, the last stage, with layer {trip.hops[back].layer} of "
        f"{scenario.model.layers} done. The next layer is not on a next stage: there is none.",
    )
    question = ask(
        "Where does the row go now?",
        gpus([leaving.dst]),
        [gpus([leaving.src]), gpus([1]), "to the LM head"],
        f"Stage 0 has the next chunk, so the token comes round. In all it is sent {sends} times, where whole "
        f"stages would send it {mesh.stages - 1} times.",
    )
    whole, chunked = (pipeline_bubble(mesh.stages, MICRO_BATCHES, chunks) for chunks in (1, plan.chunks))
    after = (
        "The sends buy time in training. While the pipeline fills, late stages wait; with "
        f"{MICRO_BATCHES} micro-batches whole stages idle {whole:.0%} of the time, and these {chunked:.0%}, "
        "because the first work that reaches them is a shorter chunk: (p-1)/(m·v+p-1)."
    )
    return Lesson(ROUND, trip, read, question, after, back - 1, back)
