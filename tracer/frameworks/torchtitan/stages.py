"""Which layers torchtitan gives each pipeline stage: embedding and head count as a layer each.

Sources: ``torchtitan/distributed/pipeline_parallel.py`` (_get_pipeline_metadata,
_generate_llm_fqn_per_model_part, _get_pp_rank_to_stage_indices_mapping) and ``torchtitan/config/configs.py``
of the 0.3.0 wheel; names of schedules from ``torch/distributed/pipelining/schedules.py`` of torch 2.11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.torchtitan.checks import PP
from tracer.scenario.plan import ChunkOrder

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.scenario.plan import Plan

SCHEDULE, PER_STAGE = "pipeline_parallel_schedule", "pipeline_parallel_layers_per_stage"
FIRST_LESS, LAST_LESS = (
    "pipeline_parallel_first_stage_less_layers",
    "pipeline_parallel_last_stage_less_layers",
)
MODULES = "module_fqns_per_model_part"
V_SCHEDULES = ("zbvzerobubble", "dualpipev")
SCHEDULES = {
    **dict.fromkeys(("1f1b", "gpipe", "pipelineschedulesingle"), False),
    **dict.fromkeys(
        ("interleaved1f1b", "loopedbfs", "interleavedzerobubble", "pipelineschedulemulti", *V_SCHEDULES), True
    ),
}
"""Schedules by name in lower case, and whether a rank has several stages in them."""


def stage_plan(request: Request, pp: int) -> tuple[dict[str, object], list[Note]]:
    """Keys ``chunks``, ``chunk_order``, ``chunk_layers`` and ``stage_layers`` of a scenario's mesh.

    Raises:
        Refusal: where torchtitan raises.
    """
    settings = request.settings
    name = settings.text(SCHEDULE)
    if name.lower() not in SCHEDULES:
        raise Refusal(SCHEDULE, f"Unknown schedule '{name}'", otherwise=f"try {settings.name(SCHEDULE)} 1F1B")
    if pp == 1:
        return {}, []
    multi, layers = SCHEDULES[name.lower()], request.model.layers if request.model is not None else None
    chunks = 2 if multi else 1
    if settings.has(PER_STAGE):
        if layers is None:
            return {}, [_PER_STAGE_NOTE]
        chunks = _chunks(request, pp, layers, multi=multi)
    parts = _listed_parts(request, pp, layers)
    if parts:
        chunks = len(parts) // pp
    plan: dict[str, object] = {"chunks": chunks} if chunks > 1 else {}
    if name.lower() in V_SCHEDULES:
        if chunks != 2:
            raise Refusal(SCHEDULE, f"v schedules assume 2 stages per rank, got {chunks}")
        plan["chunk_order"] = "v_shape"
    if parts is None and layers is None:
        return plan, []
    listed = parts or split(request, pp * chunks, layers or 0)
    if len(set(listed)) == 1:
        return plan, []
    return plan | {"chunk_layers" if chunks > 1 or not min(listed) else "stage_layers": listed}, []


def _listed_parts(request: Request, pp: int, layers: int | None) -> list[int] | None:
    """Layers of each model part that ``module_fqns_per_model_part`` lists; None where it is not given.

    A part with the embedding or the head alone has none.

    Raises:
        Refusal: where the parts do not go round the stages (_get_pp_rank_to_stage_indices_mapping), or name
            layers out of order or other than the model's.
    """
    lists = request.settings.lists(MODULES)
    if not lists:
        return None
    if len(lists) % pp:
        rule = f"num_stages {len(lists)} must be evenly divisible by pp_degree {pp}"
        raise Refusal(MODULES, rule, mend=(PP,), otherwise=f"list {pp} parts, or a multiple of them")
    found = [[name.removeprefix("layers.") for name in part if name.startswith("layers.")] for part in lists]
    flat = [name for part in found for name in part]
    wanted = range(len(flat) if layers is None else layers)
    if flat != [str(layer) for layer in wanted]:
        raise Refusal(
            MODULES,
            f"it lists {len(flat)} layers; they must be layers.0 to layers.{wanted.stop - 1} in order",
            otherwise="list each layer once, in the model's order",
        )
    return [len(part) for part in found]


def written_stages(plan: Plan) -> list[str]:
    """Keys for a plan's stages, embedding and head weighing nothing so that an even split stays even."""
    words = [word for key in (FIRST_LESS, LAST_LESS) for word in (f"--parallelism.{key}", "0")]
    if plan.chunks == 2:
        schedule = "ZBVZeroBubble" if plan.chunk_order is ChunkOrder.V_SHAPE else "Interleaved1F1B"
        words += [f"--parallelism.{SCHEDULE}", schedule]
    return words


def split(request: Request, stages: int, layers: int) -> list[int]:
    """Layers of each (virtual) stage; the embedding weighs on the first, the head on the last.

    Raises:
        Refusal: where a stage would be empty.
    """
    settings = request.settings
    first, last = settings.size(FIRST_LESS), settings.size(LAST_LESS)
    effective = layers + first + last
    each, extra = divmod(effective, stages)
    if not each:
        raise Refusal(
            PP, f"Number of stages ({stages}) cannot be greater than effective layers ({effective})"
        )
    for dest, weight in ((FIRST_LESS, first), (LAST_LESS, last)):
        if weight > each:
            raise Refusal(dest, f"it ({weight}) exceeds minimum layers per stage ({each})", mend=(dest, PP))
    listed = [each + (stage < extra) for stage in range(stages)]
    listed[0] -= first
    listed[-1] -= last
    return listed


def _chunks(request: Request, pp: int, layers: int, *, multi: bool) -> int:
    """Stages a rank, where the number of layers per stage is given."""
    settings = request.settings
    effective = layers + settings.size(FIRST_LESS) + settings.size(LAST_LESS)
    stages = -(-effective // settings.size(PER_STAGE))
    rule = ""
    if stages % pp:
        rule = f"Number of virtual stages ({stages}) must be divisible by pipeline parallel size ({pp})"
    elif not multi and stages != pp:
        rule = (
            f"Single stage schedule requires exactly 1 stage per rank, but got {stages // pp} stages per rank"
        )
    elif multi and stages < 2 * pp:
        rule = (
            "Multi-stage schedule requires at least 2 stages per rank, "
            f"but got {stages // pp} stages per rank"
        )
    if rule:
        raise Refusal(PER_STAGE, rule, mend=(PER_STAGE,))
    return stages // pp


_PER_STAGE_NOTE = Note(
    "virtual_stages_unknown",
    "pipeline_parallel_layers_per_stage makes virtual stages, and how many depends on the number of layers, "
    "which nothing says: the mesh is shown without them",
    "add --model config.json",
)
