"""A recovered layout as a scenario: what the recording tells, and assumptions for what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.scenario.scenario import BareScenario

if TYPE_CHECKING:
    from tracer.runs.layout import RecoveredLayout

_HEAD_DIM = 128
_VOCABULARY = 128_000


def to_scenario(layout: RecoveredLayout) -> tuple[BareScenario, list[str]]:
    """The scenario, and what in it is assumed because no recording holds it.

    Without a hidden size there is no model in it: it tells the mesh alone.

    Raises:
        ConfigError: when the sizes make no mesh.
    """
    if layout.mesh is None:
        raise ConfigError(
            "FILES", layout.sizes, f"are sizes that do not multiply to {layout.world_size} ranks",
            "give the recordings of all ranks, or lay the run over a scenario with --against",
        )  # fmt: skip
    tables: dict[str, Any] = {
        "name": "recovered run",
        "source": "recovered from a recording; guessed: " + (", ".join(layout.guessed) or "nothing"),
        "mesh": {
            "order": layout.order, **layout.sizes, "expert_order": layout.expert_order, **_plan(layout),
        },
    }  # fmt: skip
    if layout.gpus_per_node:
        tables["cluster"] = {"gpus_per_node": layout.gpus_per_node, "nodes": layout.nodes}
    assumed: list[str] = []
    if layout.shapes.hidden is not None:
        tables["model"], assumed = _model(layout, layout.shapes.hidden)
        if layout.shapes.rows:
            shares = layout.sizes["tp"] if layout.shapes.sequence_parallel else 1
            tables["token"] = {"prompt": layout.shapes.rows * shares * layout.sizes["cp"]}
        tables["dtype"] = _dtypes(layout)
    return BareScenario.from_dict(tables), assumed


def _plan(layout: RecoveredLayout) -> dict[str, Any]:
    """Keys of the mesh table that say how layers run."""
    shapes = layout.shapes
    plan: dict[str, Any] = {}
    if layout.sizes["tp"] > 1 and shapes.sequence_parallel is not None:
        plan["sp"] = "megatron" if shapes.sequence_parallel else "off"
    if layout.sizes["cp"] > 1 and shapes.kv_exchange is not None:
        plan["kv_exchange"] = shapes.kv_exchange
    if shapes.vocab_parallel or layout.framework == "megatron":
        plan["embedding"] = "vocab_parallel"
    if shapes.experts and shapes.gathers_tokens:
        plan["contract"] = "ag_rs"
    elif shapes.experts and layout.sizes["ep"] * layout.sizes["etp"] > 1:
        plan["dispatch"] = "low_latency"  # one copy of a row for each of its experts, as an all-to-all sends
        plan["routing_metadata"] = shapes.routing_metadata
    if shapes.shared_expert:
        plan |= {"shared_tp": "own", "shared_overlap": shapes.shared_overlap}
    if layout.chunks is not None and layout.chunks > 1:
        plan |= {"chunks": layout.chunks, "chunk_order": "interleaved"}
    return plan


def _model(layout: RecoveredLayout, hidden: int) -> tuple[dict[str, Any], list[str]]:
    """The model table; heads, widths and the vocabulary are no part of a recording."""
    shapes, tp = layout.shapes, layout.sizes["tp"]
    heads = max(1, hidden // _HEAD_DIM)
    shared = tp * (layout.sizes["cp"] if shapes.kv_exchange == "ulysses" else 1)
    heads = -(-heads // shared) * shared
    least = layout.sizes["pp"] * (layout.chunks or 1)
    model: dict[str, Any] = {
        "layers": layout.layers or least, "hidden": hidden, "heads": heads, "head_dim": _HEAD_DIM,
        "vocab": -(-_VOCABULARY // tp) * tp,
    }  # fmt: skip
    assumed = ["heads", "head_dim", "vocab"] + ([] if layout.layers else ["layers"])
    ep = layout.sizes["ep"]
    if shapes.experts and shapes.experts % ep == 0:
        model |= {"experts": shapes.experts, "top_k": shapes.top_k or 1, "expert_hidden": hidden}
        assumed += ["expert_hidden"] + ([] if shapes.top_k else ["top_k"])
        if shapes.shared_expert:
            model["shared_experts"] = 1
    return model, assumed


def _dtypes(layout: RecoveredLayout) -> dict[str, str]:
    rows = layout.shapes.row_dtype
    found = {"activations": rows, "combine": rows} if rows else {}
    if layout.shapes.dispatch_dtype:
        found["dispatch"] = layout.shapes.dispatch_dtype
    return found
