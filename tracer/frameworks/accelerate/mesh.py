"""The meshes Accelerate makes: one DeviceMesh ``(dp_replicate, dp_shard, cp, sp, tp)``, tp fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.accelerate.checks import CP, REPLICATE, SHARD, SP, TP, check_sizes
from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import check_heads, linear, node_notes, sharded_weights
from tracer.frameworks.notes import Note
from tracer.frameworks.settings import Reading
from tracer.scenario.plan import KvExchange, WeightSharding

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan


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


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """Accelerate's flags for a mesh: FSDP's shards and their copies, TP, and CP or Ulysses."""
    replicate, shard = _written_dp(mesh, plan)
    sequence = "sp" if plan.kv_exchange is KvExchange.ULYSSES else "cp"
    words = ["--num-processes", str(mesh.world_size)]
    if shard * mesh.cp * mesh.tp == 1:
        return words
    if sequence == "cp" or mesh.cp == 1:
        words += ["--use-fsdp"] if shard * mesh.cp > 1 else []
    sizes = {"dp-replicate": replicate, "dp-shard": shard, "tp": mesh.tp, sequence: mesh.cp}
    for name, size in sizes.items():
        words += [f"--parallelism-config-{name}-size", str(size)] if size > 1 else []
    if mesh.cp > 1 and plan.kv_exchange is KvExchange.RING:
        words += ["--parallelism-config-cp-comm-strategy", "alltoall"]
    return words


def _written_dp(mesh: Mesh, plan: Plan) -> tuple[int, int]:
    """(copies, shards) of data parallelism; FSDP shards over CP too; TP and CP need shards."""
    if plan.weight_shard is WeightSharding.HSDP and plan.weight_shard_size:
        shard = plan.weight_shard_size // mesh.cp
        if shard and plan.weight_shard_size % mesh.cp == 0 and mesh.dp % shard == 0:
            return mesh.dp // shard, shard
    whole = plan.weight_shard is WeightSharding.NONE and mesh.cp == mesh.tp == 1
    return (mesh.dp, 1) if whole else (1, mesh.dp)


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
