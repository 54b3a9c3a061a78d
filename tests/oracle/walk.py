"""The trip itself, prefill or a decode step: every hop in order, what it moved and what it adds up to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from oracle import dense, heads, kinds, moe, payloads, shards
from oracle.decode import cp_rank_of, query_travels
from oracle.experts import ExpertMap, shared_ids
from oracle.landing import cp_of_rows, prompt_length, token_home
from oracle.nvlink_domains import OracleCluster
from oracle.ranks import OracleMesh

Move = tuple[int, int, int, str]
NOT_OPS = ("land", "weight_pull", "weight_gather")


@dataclass
class OracleHop:
    """One hop; `moves` are (src, dst, bytes, tier, role)."""

    kind: str
    axis: str | None
    layer: int
    stage: int
    dead: bool
    moves: list[tuple[int, int, int, str, str]]
    tally: dict[str, int] = field(default_factory=dict)


@dataclass
class OracleTrip:
    """All hops and their sums."""

    hops: list[OracleHop]
    home: int
    position: int
    touched: set[int]
    log: dict[str, Any]


def chunks_in_order(scenario: dict[str, Any], pp: int) -> list[tuple[int, int]]:
    """(stage, number of layers) of each chunk that the token meets: evenly, the first ones one more.

    Interleaved chunks go round the stages; a V goes to the last stage and back.
    """
    mesh = scenario.get("mesh", {})
    laps = mesh.get("chunks", 1)
    walk = list(range(pp))
    if mesh.get("chunk_order") == "v_shape":
        walk += sorted(walk, reverse=True)
    else:
        walk *= laps
    sizes = mesh.get("chunk_layers") or mesh.get("stage_layers")
    if not sizes:
        sizes = [0] * len(walk)
        for layer in range(scenario["model"]["layers"]):
            sizes[layer % len(walk)] += 1
    return list(zip(walk, sizes, strict=True))


def stages_of_layers(scenario: dict[str, Any], pp: int) -> list[int]:
    """The stage of each layer, the first layer first."""
    return [stage for stage, count in chunks_in_order(scenario, pp) for _ in range(count)]


def ring_steps(scenario: dict[str, Any], mesh: OracleMesh, table: dict[str, Any]) -> int:
    """Steps of the K/V ring: all, or up to the last in which some query sees a key of the rank so far."""
    options, cp = scenario.get("mesh", {}), mesh.sizes["cp"]
    asked = options.get("window_exchange", "all") == "needed" and options.get("kv_exchange", "ring") == "ring"
    if not asked or scenario.get("phase") == "decode" or not table.get("window"):
        return cp - 1
    rows = cp_of_rows(scenario, mesh)
    found = 0
    for key, keeper in enumerate(rows):
        for query in range(key, min(key + table["window"], len(rows))):
            if table["type"] == "sliding" or query // table["window"] == key // table["window"]:
                found = max(found, (rows[query] - keeper) % cp)
    return found


class _Walker:
    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.options = scenario.get("mesh", {})
        self.mesh = OracleMesh(scenario)
        self.cluster = OracleCluster(scenario, self.mesh.world)
        self.home, self.position = token_home(scenario, self.mesh)
        self.first_home = self.home
        self.sp = self.options.get("sp", "megatron")
        self.tp = self.mesh.sizes["tp"]
        self.ring = self.options.get("tp_algo", "direct") == "ring"
        token = scenario.get("token", {})
        self.decodes = scenario.get("phase") == "decode"
        self.is_last = self.decodes or self.position == prompt_length(scenario, self.mesh) - 1
        self.all_logits = token.get("prompt_logprobs", False)
        self.is_read = self.is_last or self.all_logits or token.get("draft_head", False)
        self.layer = self.stage = 0
        self.dead = False
        self.hops: list[OracleHop] = []
        self.weights: Any = None

    # -- one hop -----------------------------------------------------------------------------------------
    def add(self, kind: str, axis: str | None, moves: list[Move]) -> None:
        tiered = [(src, dst, size, self.cluster.tier(src, dst), role) for src, dst, size, role in moves]
        self.hops.append(OracleHop(kind, axis, self.layer, self.stage, self.dead, tiered))

    def holders(self) -> list[int]:
        """The ranks that hold the whole row outside attention."""
        return [self.home] if self.sp == "megatron" else self.mesh.line(self.home, "tp")

    def gather_row(self, experts: bool = False) -> None:
        line, row = self.mesh.line(self.home, "tp"), payloads.gathered_row(self.scenario, experts)
        self.add("all_gather", "tp", dense.gather(line, self.home, row, self.ring))

    def sum_partials(self, experts: bool = False) -> None:
        """End of a block sliced over tp: reduce_scatter with SP, all_reduce without."""
        line, row = self.mesh.line(self.home, "tp"), payloads.row(self.scenario, experts)
        if self.sp == "megatron":
            self.add("reduce_scatter", "tp", dense.scatter(line, self.home, row, self.ring))
        else:
            self.add("all_reduce", "tp", dense.reduce_everywhere(line, self.home, row, self.ring))

    def sliced_block(self, experts: bool = False) -> None:
        """An FFN sliced over tp."""
        if self.tp > 1:
            if self.sp == "megatron":
                self.gather_row(experts)
            self.sum_partials(experts)

    # -- parts of a layer --------------------------------------------------------------------------------
    def attention(self) -> None:
        table = kinds.attention_of(self.scenario, self.layer)
        if table is None:
            return
        if self.tp > 1 and self.sp == "megatron":
            self.gather_row()
        if kinds.keeps_state(table):
            self.state(table)
        else:
            self.kv(table)
        if self.tp > 1:
            self.sum_partials()

    def kv(self, table: dict[str, Any]) -> None:
        """K/V meets the queries, or heads meet, or nothing is sent because an earlier layer did."""
        sharers = heads.sharers_of_heads(self.scenario, self.mesh)
        own = not table.get("shared_kv")
        if sharers > 1:
            self.scatter_heads(table, sharers)
            if self.mesh.sizes["cp"] > sharers and own:
                self.add("kv_exchange", "cp", heads.ring(self.scenario, self.mesh, self.home, table))
        elif self.decodes and query_travels(self.scenario, self.position):
            self.ask()
        elif self.mesh.sizes["cp"] > 1 and own:
            ring = self.options.get("kv_exchange", "ring") != "all_gather"
            size = payloads.kv_of_one_rank(self.scenario, self.tp, self.layer)
            steps = ring_steps(self.scenario, self.mesh, table)
            self.add("kv_exchange", "cp", dense.kv_exchange(self.mesh, self.home, size, ring, steps))
        self.settle()
        if sharers > 1:
            self.gather_heads(table, sharers)

    def state(self, table: dict[str, Any]) -> None:
        """A state goes on to the ranks of later tokens, or its heads meet as any others."""
        sharers = self.mesh.sizes["cp"]
        if sharers == 1:
            self.settle()
        elif self.options.get("state_exchange", "state") == "heads":
            self.scatter_heads(table, sharers)
            self.settle()
            self.gather_heads(table, sharers)
        else:
            size = payloads.state_of_one_rank(self.scenario, self.tp, self.layer)
            self.add("state_pass", "cp", dense.hand_on(self.mesh, self.home, self.later_ranks(), size))
            self.settle()

    def scatter_heads(self, table: dict[str, Any], sharers: int) -> None:
        """Heads of a mixer go to the CP ranks that compute them."""
        moves = heads.scatter(self.scenario, self.mesh, self.home, table, sharers)
        self.add("heads_scatter", "cp", moves)

    def gather_heads(self, table: dict[str, Any], sharers: int) -> None:
        """Their outputs come back."""
        moves = heads.gather(self.scenario, self.mesh, self.home, table, sharers)
        self.add("heads_gather", "cp", moves)

    def later_ranks(self) -> list[int]:
        """CP ranks that the state goes through: of the rest of the prompt, or of the last token and this."""
        prompt = prompt_length(self.scenario, self.mesh)
        held = cp_of_rows(self.scenario, self.mesh)
        if not self.decodes:
            return held[self.position :]
        before = self.position - 1
        owner = held[before] if before < prompt else cp_rank_of(self.scenario, self.mesh, prompt, before)
        return [owner, self.mesh.coordinates[self.home]["cp"]]

    def settle(self) -> None:
        """From here on nothing is read of a token that no head reads, where no later layer keeps any."""
        self.dead = self.layer >= kinds.last_keeper(self.scenario) and not self.is_read

    def ask(self) -> None:
        """The query goes to the K/V and partial outputs return, where K/V of other tokens is elsewhere."""
        dcp = self.options.get("dcp", 1)
        if self.mesh.sizes["cp"] * dcp > 1:
            query = payloads.query_of_one_rank(self.scenario, self.tp, self.layer)
            partial = payloads.partial_of_one_rank(self.scenario, self.tp, self.layer)
            out, back = dense.ask_the_keepers(self.mesh, self.home, dcp, query, partial)
            self.add("query_send", "cp", out)
            self.add("partials_return", "cp", back)

    def dense_ffn(self) -> None:
        if self.options.get("dense_tp", self.tp) == self.tp:
            self.sliced_block()

    def moe_ffn(self) -> None:
        contract = self.options.get("contract", "ep")
        if shards.gathers(self.scenario):
            self.gather("experts", self.expert_gpus())
        own = self.options.get("shared_tp") in (True, "own") and self.scenario["model"].get("shared_experts")
        around = own and self.options.get("shared_overlap", False) and self.tp > 1
        if own and not around:
            self.sliced_block()
        if self.options.get("routing_metadata"):
            self.counts()
        if around and self.sp == "megatron":
            self.gather_row()
        self.routed(contract)
        if around:
            self.sum_partials()

    def routed(self, contract: str) -> None:
        """The routed experts, by contract."""
        if contract == "tp":
            self.sliced_block(experts=True)
            return
        if len(self.mesh.group(self.home, "dispatch")) > 1:
            self.experts(contract)
        if self.sp == "before_dispatch" and self.tp > 1:
            self.gather_row()

    def experts(self, contract: str) -> None:
        """The expert hops of every rank that runs the token's FFN, merged into one op each way."""
        senders = [self.home] if self.sp == "before_dispatch" else self.holders()
        where = ExpertMap(self.scenario, self.layer, self.mesh, self.cluster, self.position)
        out: list[Move] = []
        back: list[Move] = []
        for sender in senders:
            if contract == "dwdp":
                out += moe.weight_pulls(self.scenario, sender, where)
                continue
            there, home_again = self.rows(contract, sender, where)
            out += there
            back += home_again
        if contract == "dwdp":
            self.add("weight_pull", None, out)
        else:
            self.add("dispatch", "ep", out)
            if self.options.get("routing_metadata"):
                size = payloads.probability(self.scenario)
                self.add("probs_dispatch", "ep", [(src, dst, size, "metadata") for src, dst, *_ in out])
            self.add("combine", "ep", back)

    def counts(self) -> None:
        """Rows per expert: summed at home over the replica's stage, then told within each dispatch group."""
        size = 8 * self.scenario["model"]["experts"]
        at = self.mesh.coordinates[self.home]
        alike = [
            rank
            for rank, here in enumerate(self.mesh.coordinates)
            if rank != self.home and (here["dp"], here["pp"]) == (at["dp"], at["pp"])
        ]
        if alike:
            there = [(rank, self.home, size, "metadata") for rank in alike]
            self.add("counts_reduce", "tp", there + [(dst, src, size, "metadata") for src, dst, *_ in there])
        senders = [self.home] if self.sp == "before_dispatch" else self.holders()
        told = [
            (sender, rank, size, "metadata")
            for sender in senders
            for rank in self.mesh.group(sender, "dispatch")
            if rank != sender
        ]
        if len(self.mesh.group(self.home, "dispatch")) > 1:
            self.add("counts_gather", "ep", told)

    def rows(self, contract: str, sender: int, where: ExpertMap) -> tuple[list[Move], list[Move]]:
        if contract == "ag_rs":
            return moe.all_rows(self.scenario, sender, where)
        picks = self.scenario["picks"][str(self.layer)] + shared_ids(self.scenario)
        usual = "low_latency" if self.decodes else "high_throughput"
        if self.options.get("dispatch", usual) == "low_latency":
            return moe.low_latency(self.scenario, sender, picks, where)
        return moe.high_throughput(self.scenario, sender, picks, where)

    # -- sharded weights ---------------------------------------------------------------------------------
    def gather(self, kind: str, ranks: list[int]) -> None:
        """A unit's pieces come to the ranks that run it, where more than one rank keeps them."""
        experts = kind == "experts"
        if (
            not shards.gathers(self.scenario)
            or len(shards.keepers(self.scenario, self.mesh, self.home, experts)) == 1
        ):
            return
        if self.weights is None:
            from oracle.weights import OracleWeights

            self.weights = OracleWeights(self.scenario)
        sizes = {rank: shards.unit_elements(self.weights, rank, kind, self.layer) for rank in ranks}
        self.add("weight_gather", None, shards.moves(self.scenario, self.mesh, sizes, experts))

    def expert_gpus(self) -> list[int]:
        """Ranks that run the token's experts: wherever a low-latency message would go, itself included."""
        if self.options.get("contract") == "tp":
            return self.mesh.line(self.home, "tp")
        senders = [self.home] if self.sp == "before_dispatch" else self.holders()
        where = ExpertMap(self.scenario, self.layer, self.mesh, self.cluster, self.position)
        picks = self.scenario["picks"][str(self.layer)] + shared_ids(self.scenario)
        found = {rank for sender in senders for pick in picks for rank in where.gpus(pick, sender)}
        return sorted(found)

    # -- the ends ----------------------------------------------------------------------------------------
    def land(self) -> None:
        self.add("land", None, [])
        self.gather("embedding", self.mesh.line(self.home, "tp"))
        if self.options.get("embedding", "replicated") == "vocab_parallel" and self.tp > 1:
            self.sum_partials()

    def go_to(self, stage: int) -> None:
        """The row moves to another stage; within one it stays where it is."""
        if stage == self.stage:
            return
        row = payloads.row(self.scenario)
        moves = [(src, self.mesh.rank_with(src, pp=stage), row, "row") for src in self.holders()]
        self.add("pp_send", "pp", moves)
        self.home, self.stage = self.mesh.rank_with(self.home, pp=stage), stage

    def lm_head(self) -> None:
        self.dead = False
        if not (self.is_last or self.all_logits):
            return
        self.gather("head", self.mesh.line(self.home, "tp"))
        if self.tp == 1:
            return
        line = self.mesh.line(self.home, "tp")
        if self.sp == "megatron":
            row = payloads.row(self.scenario)
            self.add("head_copy", "tp", dense.gather(line, self.home, row, ring=False))
        size = payloads.logits_of_one_rank(self.scenario, self.tp)
        moves = [(peer, self.home, size, "logits") for peer in line if peer != self.home]
        self.add("logits_gather", "tp", moves)

    def run(self) -> OracleTrip:
        landed = self.holders()
        self.land()
        for stage, count in chunks_in_order(self.scenario, self.mesh.sizes["pp"]):
            self.go_to(stage)
            for _ in range(count):
                self.layer += 1
                self.dead = self.layer > kinds.last_keeper(self.scenario) and not self.is_read
                self.gather("layer", self.mesh.line(self.home, "tp"))
                self.attention()
                if kinds.is_moe(self.scenario, self.layer):
                    self.moe_ffn()
                elif kinds.has_ffn(self.scenario, self.layer):
                    self.dense_ffn()
        self.lm_head()
        touched, log = add_up(self.hops, landed, self.mesh.world)
        return OracleTrip(self.hops, self.first_home, self.position, touched, log)


def add_up(hops: list[OracleHop], landed: list[int], world: int) -> tuple[set[int], dict[str, Any]]:
    """(GPUs touched, log); also writes the running tally after each hop into it."""
    touched = set(landed)
    crossings: Counter[str] = Counter()
    tiers = {"nvlink": 0, "ib": 0}
    ops = weight_bytes = weight_ops = 0
    for hop in hops:
        ops += hop.kind not in NOT_OPS
        weight_ops += hop.kind in ("weight_pull", "weight_gather")
        for src, dst, size, tier, role in hop.moves:
            if role == "weights":
                weight_bytes += size
                continue
            touched |= {src, dst}
            tiers[tier] += size
            if tier == "ib":
                crossings[str(hop.axis)] += 1
        hop.tally = {
            "gpus_touched": len(touched),
            "node_crossings": sum(crossings.values()),
            "comm_ops": ops,
            "bytes": sum(tiers.values()),
        }
    log = {
        "gpus_touched": len(touched),
        "world_size": world,
        "node_crossings": sum(crossings.values()),
        "node_crossings_by_axis": dict(crossings),
        "comm_ops": ops,
        "bytes": sum(tiers.values()),
        "bytes_by_tier": tiers,
        "weight_bytes": weight_bytes,
        "weight_ops": weight_ops,
    }
    return touched, log


def without_nulls(table: dict[str, Any]) -> dict[str, Any]:
    """The same scenario with what is null left out, so that defaults apply."""
    kept = {}
    for key, value in table.items():
        if value is not None:
            kept[key] = without_nulls(value) if isinstance(value, dict) else value
    return kept


def walk(scenario: dict[str, Any]) -> OracleTrip:
    """The trip of the scenario's token, by plain loops."""
    return _Walker(without_nulls(scenario)).run()
