"""A quiz drawn from random meshes: the seed is the question, and the engine knows the answer."""

from __future__ import annotations

from random import Random
from typing import Any

from app.lessons.lesson import live_trip
from app.query.address import flatten
from layouts import build_scene
from tracer.errors import ConfigError
from tracer.scenario.scenario import Scenario
from tracer.scenario.step import mesh_line
from tracer.scenario.token import Phase
from tracer.trip.trip import take_trip

MAX_SEED = 10**9
MODEL = {
    "name": "quiz toy",
    "layers": 4,
    "hidden": 4096,
    "heads": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "experts": 64,
    "expert_hidden": 2048,
    "vocab": 128_000,
}


def quiz_payload(seed: int) -> dict[str, Any]:
    """Question number ``seed``: a mesh, a hop and what to predict; the same seed asks the same.

    Raises:
        ConfigError: for a seed outside 0 to ``MAX_SEED``.
    """
    if not 0 <= seed <= MAX_SEED:
        raise ConfigError("seed_of_quiz", seed, f"must be from 0 to {MAX_SEED:,}", "try 1")
    random = Random(f"quiz/{seed}")
    scenario = draw_scenario(random)
    trip = take_trip(scenario)
    scene = build_scene(trip)
    asked = [hop for hop in scene.hops if hop.question]
    # First the kind, so that rare hops are asked as often as frequent ones.
    kind = random.choice(sorted({hop.kind for hop in asked}))
    hop = random.choice([hop for hop in asked if hop.kind == kind])
    live = live_trip(trip, scene, {"scenario": "", **flatten(scenario.to_dict())}, hop.index)
    return {
        "seed": seed,
        "mesh_line": mesh_line(scenario),
        "question": live["trip"]["hops"][hop.index]["question"],
        "hop": hop.index - 1,
        "reveal": hop.index,
        **live,
    }


def draw_scenario(random: Random) -> Scenario:
    """A mesh of 8 to 64 GPUs on nodes of 4 or 8 that has something to ask."""
    while True:
        tp, cp, pp = random.choice([1, 2, 4]), random.choice([1, 1, 2]), random.choice([1, 2])
        dp = random.choice([2, 4, 8])
        stage = tp * cp * dp
        if not 8 <= stage * pp <= 64:
            continue
        return Scenario.from_dict(
            {
                "name": "quiz",
                "cluster": {"gpus_per_node": random.choice([4, 8])},
                "model": {**MODEL, "top_k": random.choice([1, 2, 3, 4])},
                "mesh": _mesh(random, tp, cp, dp, pp),
                "token": {"replica": random.randrange(dp), "position": random.randrange(8 * cp * tp)},
                "seed": random.randrange(1000),
            }
        ).with_phase(random.choice([Phase.PREFILL, Phase.PREFILL, Phase.DECODE]))


def _mesh(random: Random, tp: int, cp: int, dp: int, pp: int) -> dict[str, Any]:
    order = random.choice(["tp-cp-dp-pp", "tp-cp-dp-pp", "tp-cp-pp-dp", "tp-dp-cp-pp"])
    stage = tp * cp * dp
    ep = random.choice([size for size in (4, 8, 16, 32, 64) if stage % size == 0] or [stage])
    sp = random.choice(["megatron", "megatron", "off"])
    return {"order": order, "tp": tp, "cp": cp, "dp": dp, "pp": pp, "ep": ep, "sp": sp}
