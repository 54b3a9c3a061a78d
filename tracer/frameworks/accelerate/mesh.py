"""The meshes Accelerate makes: one DeviceMesh ``(dp_replicate, dp_shard, cp, sp, tp)``, tp fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.accelerate.checks import CP, REPLICATE, SHARD, SP, TP, check_sizes
from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import check_heads, linear, node_notes, sharded_weights
from tracer.frameworks.notes import Note
from tracer.frameworks.settings import Reading

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid


def read(request: Request) -> Reading:
    """Accelerate's mesh; without any size, all processes are replicas (DDP) or shards (FSDP).

    Raises:
        Refusal: where ParallelismConfig raises.
    """
    settings = request.settings
    replicate, shard, tp, cp, sp = (settings.size(dest) for dest in (REPLICATE, SHARD, TP, CP, SP))
    total = replicate * shard * tp * cp * sp
    world = request.gpus or settings.maybe("num_processes") or (total if total > 1 else 0)
    world = world or request.need_gpus("Accelerate")
    check_sizes(request, world)
    sharded = settings.on("use_fsdp") or settings.text("distributed_type") == "FSDP"
    if total == 1 or sp > 1:
        rest = world // (tp * cp * sp)
        replicate, shard = (
            (rest // shard, shard) if sp > 1 and rest % shard == 0 and not sharded else (1, rest)
        )
        if total == 1 and not sharded:
            replicate, shard = rest, 1
    check_heads(request, TP, tp, "attention heads ({heads}) must be divisible by tp_size ({tp})")
    ranks = grid(tp=tp, sp=sp, cp=cp, dp_shard=shard, dp_replicate=replicate)
    data = ("dp_shard", "dp_replicate")
    rotates = settings.text("cp_comm_strategy") == "alltoall"
    # Sequence parallelism is DeepSpeed's Ulysses; context parallelism is torch's, by rotation or all-gather.
    exchange = "ulysses" if sp > 1 else "ring" if rotates else "all_gather"
    return Reading(
        View(ranks, {"tp": ("tp",), "cp": ("sp", "cp"), "dp": data, "pp": ()}),
        View(ranks, {"etp": ("tp",), "ep": (), "edp": ("sp", "cp", *data)}),
        _groups(ranks),
        {"sp": "off", "contract": "tp", "kv_exchange": exchange}
        | (sharded_weights(shard * cp, replicate) if sp == 1 else {}),
        linear(request.experts, 1, TP, ""),
        tuple(_notes(request, ranks)),
    )


def _groups(ranks: RankGrid) -> dict[str, AxisGroups]:
    """The mesh's dimensions, and the flattened ones that Accelerate makes of them."""
    found = {name: AxisGroups(ranks, (name,)) for name in ("tp", "sp", "cp", "dp_shard", "dp_replicate")}
    found["dp"] = AxisGroups(ranks, ("dp_shard", "dp_replicate"))
    found["dp_shard_cp"] = AxisGroups(ranks, ("cp", "dp_shard"))
    found["dp_cp"] = AxisGroups(ranks, ("cp", "dp_shard", "dp_replicate"))
    return found


def _notes(request: Request, ranks: RankGrid) -> list[Note]:
    tp = AxisGroups(ranks, ("tp",))
    return node_notes(request, tp, request.settings.name(TP), AxisGroups(ranks, ()))
