"""What torchtitan's ParallelDims refuses, in its words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracer.frameworks.notes import Refusal

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request

REPLICATE, SHARD = "data_parallel_replicate_degree", "data_parallel_shard_degree"
TP, CP, PP = "tensor_parallel_degree", "context_parallel_degree", "pipeline_parallel_degree"
EP, ETP = "expert_parallel_degree", "expert_tensor_parallel_degree"


def check_degrees(request: Request) -> None:
    """Every degree is at least 1; dp_shard is -1 (what is left) or at least 1."""
    for dest in (REPLICATE, CP, TP, PP, EP):
        if request.settings.size(dest) < 1:
            raise Refusal(dest, "Parallelism degree should be >= 1, except for dp_shard")
    if request.settings.size(SHARD) == 0:
        raise Refusal(SHARD, "dp_shard must -1 or >=1.")


def check_world(
    request: Request, world: int, *, replicate: int, shard: int, cp: int, tp: int, pp: int
) -> None:
    """The degrees multiply to the world size."""
    settings = request.settings
    if replicate * shard * cp * tp * pp != world or shard < 1:
        given = [dest for dest in (SHARD, REPLICATE, TP, CP, PP) if settings.has(dest)]
        raise Refusal(
            given[0] if given else SHARD,
            f"Invalid parallel dims: dp_replicate({replicate}) * dp_shard({shard}) * cp({cp}) * tp({tp}) * "
            f"pp({pp}) != WORLD_SIZE({world})",
            mend=(SHARD, *given, "gpus"),
        )


def check_experts(ep: int, region: int, removed: int | None, version: str | None) -> None:
    """EP divides dp_shard·cp·tp and never crosses dp_replicate or pp; ETP is gone."""
    if removed is not None and not has_etp(version):
        raise Refusal(
            ETP,
            "Unrecognized options: --parallelism.expert_tensor_parallel_degree (removed by PR #3167)",
            otherwise="drop it, or say --framework-version 0.2 for the older meaning",
        )
    if region % ep:
        raise Refusal(
            EP, f"expert_parallel_degree ({ep}) must divide dp_shard * cp * tp ({region})", mend=(EP, SHARD)
        )


def has_etp(version: str | None) -> bool:
    """Whether a version still has ETP (before 0.3)."""
    found = re.match(r"v?(\d{1,6})\.(\d{1,6})", version or "")
    return found is not None and (int(found.group(1)), int(found.group(2))) < (0, 3)
