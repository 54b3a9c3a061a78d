"""hypothesis draws whole valid scenarios, as the plain dicts a person would write.

Keys that take their default are left out, so a shrunk failure shows only what matters.
"""

from __future__ import annotations

import math
from itertools import pairwise, permutations
from typing import Any

from draws import draws
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from kind_strategies import layer_kinds, name_experts, routed_layers
from oracle import OracleMesh, landing_table
from oracle.decode import rows_of_tp_ranks

Scenario = dict[str, Any]

#: A scenario is some sixty draws: slow to draw, long where there are many slots.
_BIG = [HealthCheck.too_slow, HealthCheck.data_too_large]
#: For the comparison with the oracle.
many = settings(suppress_health_check=_BIG, max_examples=draws(2_000))
#: For what holds of every trip whoever counts it.
few = settings(suppress_health_check=_BIG, max_examples=draws(100))

ORDERS = ["-".join(order) for order in permutations(("tp", "cp", "dp", "pp"))]
EXPERT_ORDERS = ["-".join(order) for order in permutations(("etp", "ep", "edp"))]
SP = ["megatron", "off", "before_dispatch"]
CONTRACTS = ["ep", "tp", "ag_rs", "dwdp"]
#: `ep` has the most cases, so it is drawn most.
WEIGHTED_CONTRACTS = ["ep"] * 5 + ["tp", "ag_rs", "dwdp"]


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    return [small for small in range(1, number + 1) if number % small == 0]


def _set_unless(table: Scenario, key: str, value: Any, default: Any) -> None:
    if value != default:
        table[key] = value


def _choose(draw: st.DrawFn, table: Scenario, key: str, options: list[Any]) -> Any:
    """Draw one option, write it unless it is the first (the default)."""
    value = draw(st.sampled_from(options), label=key)
    _set_unless(table, key, value, options[0])
    return value


def _distinct(elements: st.SearchStrategy[int], count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(elements, min_size=count, max_size=count, unique=True)


@st.composite
def shuffled(draw: st.DrawFn, items: list[Any]) -> list[Any]:
    """Any permutation of a few items; many are dealt into piles and cut, which costs two draws."""
    if len(items) <= 12:
        return list(draw(st.permutations(items)))
    piles = draw(st.integers(1, 7), label="piles")
    cut = draw(st.integers(0, len(items) - 1), label="cut")
    dealt = [item for pile in range(piles) for item in items[pile::piles]]
    return dealt[cut:] + dealt[:cut]


@st.composite
def meshes(draw: st.DrawFn, layers: int, contracts: list[str] = WEIGHTED_CONTRACTS) -> Scenario:
    """Sizes 1-4 a dense axis, any order, any divisor of the stage as ep and etp, every option."""
    mesh: Scenario = {}
    order = draw(st.sampled_from(["tp-cp-dp-pp", *ORDERS]), label="order")
    sizes = {axis: draw(st.integers(1, 4), label=axis) for axis in ("tp", "cp", "dp")}
    sizes["pp"] = draw(st.integers(1, min(4, layers)), label="pp")
    for axis, size in sizes.items():
        _set_unless(mesh, axis, size, 1)
    if order.endswith("pp"):
        _choose(draw, mesh, "strict", [None, "megatron"])
    elif draw(st.booleans(), label="leave axes of size 1 out of the order"):
        order = "-".join(axis for axis in order.split("-") if sizes[axis] > 1) or "tp"
    _set_unless(mesh, "order", order, "tp-cp-dp-pp")
    contract = _choose(draw, mesh, "contract", contracts)
    stage = sizes["tp"] * sizes["cp"] * sizes["dp"]
    if contract == "tp":
        if draw(st.booleans(), label="etp said"):
            mesh["etp"] = sizes["tp"]
    else:
        ep = draw(st.sampled_from([*divisors(stage), stage, stage]), label="ep")
        _set_unless(mesh, "ep", ep, 1)
        etp = draw(st.sampled_from(divisors(stage // ep)), label="etp")
        _set_unless(mesh, "etp", etp, 1)
        if draw(st.booleans(), label="edp said"):
            mesh["edp"] = stage // (ep * etp)
    _choose(draw, mesh, "expert_order", ["etp-ep-edp", *EXPERT_ORDERS])
    _choose(draw, mesh, "sp", SP)
    exchange = _choose(draw, mesh, "kv_exchange", ["ring", "all_gather", "ulysses", "hierarchical"])
    if exchange == "hierarchical":
        mesh["cp_inner"] = draw(st.sampled_from(divisors(sizes["cp"])), label="cp_inner")
    _choose(draw, mesh, "dispatch", ["high_throughput", "high_throughput", "low_latency"])
    if contract == "ep" and mesh.get("dispatch") == "low_latency":
        _choose(draw, mesh, "routing_metadata", [False, True])
    _choose(draw, mesh, "tp_algo", ["direct", "ring"])
    _choose(draw, mesh, "embedding", ["replicated", "vocab_parallel"])
    _choose(draw, mesh, "landing", ["zigzag", "contiguous"])
    merges = contract == "tp" or (contract == "ag_rs" and mesh.get("ep", 1) * mesh.get("etp", 1) == stage)
    _choose(draw, mesh, "shared_tp", [False, True, "own", *(["merged"] if merges else [])])
    if mesh.get("shared_tp") in (True, "own"):
        _choose(draw, mesh, "shared_overlap", [False, True])
    _shards(draw, mesh, sizes, stage)
    if draw(st.booleans(), label="dense_tp=1"):
        mesh["dense_tp"] = 1
    if draw(st.sampled_from([False, False, True]), label="virtual stages"):
        mesh.update(draw(virtual_stages(layers, sizes["pp"])))
    elif sizes["pp"] > 1 and draw(st.booleans(), label="stage_layers given"):
        cuts = draw(_distinct(st.integers(1, layers - 1), sizes["pp"] - 1))
        edges = [0, *sorted(cuts), layers]
        mesh["stage_layers"] = [high - low for low, high in pairwise(edges)]
    return mesh


def _shards(draw: st.DrawFn, mesh: Scenario, sizes: dict[str, int], stage: int) -> None:
    """Weights in pieces, now and then: over all of dp and cp, or over a part that experts can follow."""
    if mesh.get("contract") == "dwdp" or draw(st.integers(0, 2), label="sharded weights"):
        return
    kind = _choose(draw, mesh, "weight_shard", ["none", "fsdp", "zero3", "zero1", "hsdp"])
    if kind == "hsdp":
        ranks, edp = sizes["dp"] * sizes["cp"], stage // (mesh.get("ep", 1) * mesh.get("etp", 1))
        able = [n for n in divisors(ranks) if mesh.get("contract") == "tp" or edp % (ranks // n) == 0]
        mesh["weight_shard_size"] = draw(st.sampled_from(able), label="weight_shard_size")


def sharers_of_heads(mesh: Scenario) -> int:
    """CP ranks that divide a token's heads among them."""
    return int({"ulysses": mesh.get("cp", 1)}.get(mesh.get("kv_exchange", "ring"), mesh.get("cp_inner", 1)))


@st.composite
def virtual_stages(draw: st.DrawFn, layers: int, pp: int) -> Scenario:
    """Chunks round and round or there and back, even where the layers suffice, else listed, some empty."""
    mesh: Scenario = {}
    laps = draw(st.integers(1, 3), label="chunks")
    if draw(st.booleans(), label="there and back"):
        mesh["chunk_order"], laps = "v_shape", 2
    _set_unless(mesh, "chunks", laps, 1)
    parts = pp * laps
    if parts > layers or draw(st.booleans(), label="chunk_layers given"):
        cuts = [draw(st.integers(0, layers), label="cut") for _ in range(parts - 1)]
        edges = [0, *sorted(cuts), layers]
        mesh["chunk_layers"] = [high - low for low, high in pairwise(edges)]
    return mesh


@st.composite
def models(draw: st.DrawFn, layers: int, tp: int, sharers: int = 1) -> Scenario:
    """Attention that tp and sharing CP ranks split (MLA, GQA, copied K/V heads); dense or MoE, no experts."""
    model: Scenario = {"layers": layers}
    model["hidden"] = draw(st.sampled_from([16, 96, 128, 200, 7168]), label="hidden")
    if draw(st.booleans(), label="MLA"):
        model["heads"] = tp * sharers * draw(st.integers(1, 3))
        model["kv_lora_rank"] = draw(st.sampled_from([16, 512]))
        model.update(qk_rope_head_dim=draw(st.sampled_from([8, 64])), qk_nope_head_dim=16, v_head_dim=16)
        model["kv_heads"] = model["heads"]
    else:
        replicated = [kv for kv in divisors(tp) if kv < tp]
        able = [tp * n for n in sorted({1, 2, 3, sharers}) if n % sharers == 0 or sharers % n == 0]
        kv_heads = draw(st.sampled_from([*able, *replicated]), label="kv_heads")
        model["heads"] = math.lcm(tp * sharers, kv_heads) * draw(
            st.integers(1, 2), label="query heads a K/V head"
        )
        model["kv_heads"] = kv_heads
        model["head_dim"] = draw(st.sampled_from([4, 128]), label="head_dim")
        _choose(draw, model, "v_head_dim", [None, 6])
    model["vocab"] = draw(st.integers(1, 1000), label="vocab")
    dense = draw(st.sampled_from(["none", "none", "none", "first", "listed", "all"]), label="dense layers")
    if dense == "first":
        model["dense_layers"] = draw(st.integers(1, layers))
    elif dense == "listed":
        numbers = draw(st.lists(st.integers(1, layers), min_size=1, max_size=layers, unique=True))
        model["dense_layers"] = sorted(numbers)
    if dense != "none":
        model["dense_hidden"] = 64
    if dense != "all":
        model["experts"] = 0  # filled in by `experts`
        model["expert_hidden"] = draw(st.sampled_from([1728, 3456]), label="expert_hidden")  # any etp divides
        if draw(st.booleans(), label="shared expert"):
            model.update(shared_experts=1, shared_hidden=32)
    return model


def moe_layers(model: Scenario) -> list[int]:
    """1-based numbers of the MoE layers."""
    if "experts" not in model:
        return []
    if "layer_kinds" in model:
        return routed_layers(model)
    dense = model.get("dense_layers", 0)
    listed = range(1, dense + 1) if isinstance(dense, int) else dense
    return [layer for layer in range(1, model["layers"] + 1) if layer not in listed]


@st.composite
def slot_tables(draw: st.DrawFn, experts: int, ep: int) -> list[int]:
    """Every expert at least once, replicas in the rest, slots a multiple of ep."""
    count = ep * (-(-experts // ep) + draw(st.integers(0, 2), label="extra slots a GPU"))
    first, step = draw(st.integers(0, experts - 1)), draw(st.integers(0, 5), label="next replica")
    replicas = [(first + step * place) % experts for place in range(count - experts)]
    return list(draw(shuffled([*range(experts), *replicas])))


@st.composite
def experts(draw: st.DrawFn, model: Scenario, ep: int, always: int = 0) -> tuple[Scenario, Scenario]:
    """(placement, picks); completes the model with its experts and top_k.

    ``always`` shared experts are served as routed ones: they take slots, and the router never names them.
    """
    top_k = draw(st.integers(1, 8), label="top_k")
    kind = draw(st.sampled_from(["linear", "round_robin", "remainder", "table"]), label="placement")
    placement: Scenario = {}
    if kind in ("linear", "round_robin"):
        count = ep * (-(-(top_k + always) // ep) + draw(st.integers(0, 2)))
    else:
        count = top_k + always + draw(st.integers(0, 9 + ep))
    if kind == "round_robin" or (kind == "remainder" and draw(st.booleans(), label="round robin too")):
        placement["kind"] = "round_robin"
    if kind == "remainder":
        placement["remainder"] = "first"
    layers = moe_layers(model)
    if kind == "table":
        placement.update(kind="table", slots=draw(slot_tables(count, ep)))
    own_table = bool(layers) and draw(st.booleans(), label="a table of its own")
    if kind == "table" and own_table:
        placement["slots_by_layer"] = {str(draw(st.sampled_from(layers))): draw(slot_tables(count, ep))}
    model.update(experts=count - always, top_k=top_k)
    name_experts(model)
    distinct = _distinct(st.integers(0, count - always - 1), top_k)
    return placement, {str(layer): draw(distinct, label=f"picks of layer {layer}") for layer in layers}


@st.composite
def clusters(draw: st.DrawFn, world: int) -> Scenario:
    """1-8 GPUs per node, islands of whole nodes, a last node partly empty, or a table of scattered ranks."""
    per_node = draw(st.integers(1, 8), label="gpus_per_node")
    cluster: Scenario = {"gpus_per_node": per_node}
    nodes = -(-world // per_node)
    scattered = draw(st.sampled_from([False, False, True]), label="explicit table")
    if scattered:
        nodes += draw(st.integers(0, 1), label="spare nodes")
        places = [[node, local] for node in range(nodes) for local in range(per_node)]
        cluster["placement"] = draw(shuffled(places))[:world]
    if scattered or draw(st.booleans(), label="nodes said"):
        cluster["nodes"] = nodes
    _choose(draw, cluster, "nodes_per_island", [*divisors(nodes), *range(2, min(nodes, 9))])
    return cluster


@st.composite
def tokens(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """A position of a replica, or a GPU of stage 0 where one lands that is not the last."""
    mesh = OracleMesh(scenario)
    token: Scenario = {}
    default = 16 * mesh.sizes["cp"] * mesh.sizes["tp"]
    prompt = draw(st.one_of(st.just(default), st.integers(1, 80)), label="prompt")
    _set_unless(token, "prompt", prompt, default)
    table = landing_table({**scenario, "token": token}, mesh)
    first = {place: min(held, default=prompt) for place, held in table.items()}
    where = {rank: mesh.coordinates[rank] for rank in mesh.stage_ranks(0)}
    able = [rank for rank, at in where.items() if first[at["cp"], at["tp"]] < prompt - 1]
    by_gpu = bool(able) and draw(st.booleans(), label="by gpu")
    if by_gpu:
        token["gpu"] = draw(st.sampled_from(able), label="gpu")
    else:
        replica = draw(st.integers(0, mesh.sizes["dp"] - 1), label="replica")
        _set_unless(token, "replica", replica, 0)
        position = draw(st.one_of(st.integers(0, prompt - 1), st.just(prompt - 1)), label="position")
        _set_unless(token, "position", position, 0)
    _choose(draw, token, "prompt_logprobs", [False, True])
    _choose(draw, token, "draft_head", [False, True])
    return token


@st.composite
def new_tokens(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """A decode step's token: a position after the prompt and a slot of the batch, or a GPU of stage 0."""
    mesh = OracleMesh(scenario)
    token: Scenario = {}
    default = 16 * mesh.sizes["cp"] * mesh.sizes["tp"]
    prompt = draw(st.one_of(st.just(default), st.integers(1, 80)), label="prompt")
    _set_unless(token, "prompt", prompt, default)
    _set_unless(token, "first_cp", draw(st.integers(0, mesh.sizes["cp"]), label="first_cp"), 0)
    tp = mesh.sizes["tp"]
    batch = draw(st.one_of(st.just(tp), st.integers(1, 40)), label="batch")
    _set_unless(token, "batch", batch, tp)
    rows = rows_of_tp_ranks({"token": {"batch": batch}}, tp)
    able = [rank for rank in mesh.stage_ranks(0) if rows[mesh.coordinates[rank]["tp"]][0] >= 0]
    if draw(st.booleans(), label="by gpu"):
        token["gpu"] = draw(st.sampled_from(able), label="gpu")
        return token
    replica = draw(st.integers(0, mesh.sizes["dp"] - 1), label="replica")
    _set_unless(token, "replica", replica, 0)
    _set_unless(token, "slot", draw(st.integers(0, batch - 1), label="slot"), 0)
    _set_unless(token, "position", prompt + draw(st.integers(0, 20), label="step"), prompt)
    return token


@st.composite
def decode_options(draw: st.DrawFn, mesh: Scenario, model: Scenario) -> Scenario:
    """What decode adds to a mesh: which of query and K/V travels, and DCP where copies allow it."""
    added: Scenario = {}
    if draw(st.booleans(), label="relay in decode"):
        added["dispatch"] = "high_throughput"
        mesh.pop("routing_metadata", None)
    if sharers_of_heads(mesh) > 1:
        return added
    tp = mesh.get("tp", 1)
    kinds = model.get("layer_kinds", [{"attention": model}])
    mixers = [kind["attention"] for kind in kinds if "attention" in kind]
    counts = [mixer["kv_heads"] for mixer in mixers if "kv_heads" in mixer and "kv_lora_rank" not in mixer]
    copies = max(1, tp // max(counts, default=1))
    dcp = draw(st.sampled_from(divisors(copies)), label="dcp")
    _set_unless(added, "dcp", dcp, 1)
    _choose(draw, added, "decode_attention", ["pass_q", "auto"] if dcp > 1 else ["pass_q", "pass_kv", "auto"])
    if dcp > 1:
        _set_unless(added, "dcp_interleave", draw(st.sampled_from([1, 2, 32]), label="dcp_interleave"), 1)
    return added


@st.composite
def dtypes(draw: st.DrawFn) -> Scenario:
    """Declared sizes of what moves."""
    dtype: Scenario = {}
    _choose(draw, dtype, "activations", ["bf16", "fp32", "fp16"])
    _choose(draw, dtype, "kv", ["bf16", "fp8", "fp32"])
    _choose(draw, dtype, "dispatch", ["bf16", "fp8", "fp32"])
    _choose(draw, dtype, "combine", ["bf16", "fp32"])
    _choose(draw, dtype, "logits", ["fp32", "bf16"])
    _choose(draw, dtype, "weights", ["bf16", "fp8"])
    _choose(draw, dtype, "tp_gather", [None, "fp8", "fp32"])
    return dtype


def world_size(mesh: Scenario) -> int:
    """Ranks of a mesh table."""
    return math.prod(mesh.get(axis, 1) for axis in ("tp", "cp", "dp", "pp"))


@st.composite
def _routed_shared(draw: st.DrawFn, model: Scenario, mesh: Scenario) -> int:
    """How many shared experts are served as routed ones: none, or all of them, then as wide as the routed."""
    if (
        not model.get("shared_experts")
        or mesh.get("shared_tp") not in (None, False, "whole")
        or not draw(st.booleans())
    ):
        return 0
    mesh["shared_routed"] = True
    model["shared_hidden"] = model["shared_experts"] * model["expert_hidden"]
    return int(model["shared_experts"])


@st.composite
def scenarios(
    draw: st.DrawFn,
    contracts: list[str] = WEIGHTED_CONTRACTS,
    phase: str = "prefill",
    *,
    kinds: bool = False,
) -> Scenario:
    """A whole valid scenario of a phase, picks given, at most 256 ranks; with ``kinds`` layers may differ."""
    layers = draw(st.integers(1, 5), label="layers")
    mesh = draw(meshes(layers, contracts))
    if phase == "decode" and mesh.get("kv_exchange") == "hierarchical":
        mesh["kv_exchange"] = "ulysses"
        del mesh["cp_inner"]
    model = draw(models(layers, mesh.get("tp", 1), sharers_of_heads(mesh)))
    if kinds and "weight_shard" not in mesh and draw(st.sampled_from([0, 0, 1]), label="layers of kinds"):
        model["layer_kinds"] = draw(layer_kinds(model, mesh, sharers_of_heads(mesh)))
        _choose(draw, mesh, "state_exchange", ["state", "heads"])
        _choose(draw, mesh, "window_exchange", ["all", "needed"])
    scenario: Scenario = {"model": model}
    _set_unless(scenario, "phase", phase, "prefill")
    if phase == "decode":
        mesh.update(draw(decode_options(mesh, model)))
    parts: Scenario = {"mesh": mesh, "cluster": draw(clusters(world_size(mesh))), "dtype": draw(dtypes())}
    if "experts" in model:
        always = draw(_routed_shared(model, mesh))
        parts["placement"], parts["picks"] = draw(experts(model, mesh.get("ep", 1), always))
    follow = new_tokens if phase == "decode" else tokens
    parts["token"] = draw(follow({"model": model, "mesh": mesh}))
    scenario.update({name: part for name, part in parts.items() if part})
    return scenario
