"""Two pools that serve one request: drawn ones, and one that takes what six-cuts prefills."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from strategies import decode_options, meshes, models, sharers_of_heads

import tracer
from tracer.scenario.scenario import Scenario

Table = dict[str, Any]


@st.composite
def deployments(draw: st.DrawFn, phase: str, prompt: int, model: Table | None = None) -> Table:
    """A mesh and a model for one request; the model may be given, when the mesh can split it."""
    layers = model["layers"] if model else draw(st.integers(1, 5))
    mesh = draw(meshes(layers, ["ag_rs"]))
    mesh = {key: value for key, value in mesh.items() if key not in ("ep", "etp", "contract", "edp")}
    if phase == "decode" and mesh.get("kv_exchange") == "hierarchical":
        mesh["kv_exchange"] = "ulysses"
        del mesh["cp_inner"]
    if model is None:
        model = dict(draw(models(layers, mesh.get("tp", 1), sharers_of_heads(mesh))))
        for key in ("experts", "expert_hidden", "shared_experts", "shared_hidden", "dense_layers"):
            model.pop(key, None)
    else:
        tp, kv = mesh.get("tp", 1), model["kv_heads"]
        assume(model["heads"] % tp == 0)
        assume("kv_lora_rank" in model or (tp % kv if kv < tp else kv % tp) == 0)
        own, sharers = max(1, kv // tp), sharers_of_heads(mesh)
        assume(model["heads"] // tp % sharers == 0)
        assume((sharers % own if own < sharers else own % sharers) == 0)
    mesh.update(draw(decode_options(mesh, model)))
    token: Table = {"prompt": prompt, "replica": draw(st.integers(0, mesh.get("dp", 1) - 1))}
    if phase == "decode":
        token["first_cp"] = draw(st.integers(0, 4))
    return {"phase": phase, "model": model, "mesh": mesh, "token": token}


@st.composite
def pools(draw: st.DrawFn) -> tuple[Table, Table]:
    """A prefill and a decode deployment of one model and one request."""
    prompt = draw(st.integers(1, 50))
    first = draw(deployments("prefill", prompt))
    second = draw(deployments("decode", prompt, first["model"]))
    if "kv_lora_rank" in first["model"]:  # a latent in one pool cannot become heads in the other
        assume((sharers_of_heads(first["mesh"]) > 1) == (sharers_of_heads(second["mesh"]) > 1))
    return first, second


def decode_pool(prompt: int = 64, **mesh: int) -> Scenario:
    table = tracer.load_scenario("six-cuts").to_dict() | {
        "phase": "decode",
        "name": "decode pool",
        "picks": {},
    }
    table["mesh"] |= {"edp": None, "dispatch": None, **mesh}
    table["cluster"]["nodes"] = None
    table["token"] = {"replica": 1, "prompt": prompt, "slot": 0, "batch": 4}
    return Scenario.from_dict(table)
