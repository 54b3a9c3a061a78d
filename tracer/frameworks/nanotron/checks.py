"""What nanotron refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.notes import Refusal

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request

CP, EP = "context_parallel_size", "expert_parallel_size"


def check_sizes(request: Request, world: int, *, tp: int, cp: int, dp: int, pp: int, ep: int) -> None:
    """tp·cp·dp·pp is the world size, and EP above 1 cannot be laid out at all."""
    settings = request.settings
    if tp * cp * dp * pp != world:
        given = tuple(dest for dest in ("dp", "tp", "pp", CP) if settings.has(dest))
        raise Refusal(
            given[0] if given else "dp",
            f"TENSOR_PARALLEL * CONTEXT_PARALLEL * DATA_PARALLEL * PIPELINE_PARALLEL ({tp} * {cp} * {dp} * "
            f"{pp}) is not WORLD_SIZE ({world})",
            mend=("dp", *given, "gpus"),
        )
    if ep > 1:
        raise Refusal(EP, f"cannot reshape array of size {world} into shape ({ep},{pp},{dp},{cp},{tp})")
