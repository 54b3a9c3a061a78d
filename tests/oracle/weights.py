"""Which weights lie on which GPU, unit by unit: heads, slices, experts and rows written out as names.

A unit is a name and its number of elements; GPUs that hold the same weights hold the same name.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from oracle.experts import shared_ids, slots
from oracle.kinds import is_moe
from oracle.ranks import OracleMesh
from oracle.walk import chunks_in_order, stages_of_layers

Unit = tuple[str, str, tuple[Any, ...]]


def slices(length: int, parts: int) -> list[tuple[int, int]]:
    """(start, stop) of each part, dealt out one by one to the parts in turn."""
    sizes = [0] * parts
    for place in range(length):
        sizes[place % parts] += 1
    edges = [sum(sizes[:part]) for part in range(parts + 1)]
    return list(pairwise(edges))


class OracleWeights:
    """Units of every rank: ``units[rank]`` counts how often it holds each, ``size`` gives its elements."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario, self.model = scenario, scenario["model"]
        self.options = scenario.get("mesh", {})
        self.mesh = OracleMesh(scenario)
        self.sizes = self.mesh.sizes
        self.size: dict[Unit, int] = {}
        self.units: list[Counter[Unit]] = [Counter() for _ in range(self.mesh.world)]
        for rank in range(self.mesh.world):
            self._rank(rank)

    def add(self, rank: int, part: str, matrix: str, elements: int, *which: Any) -> None:
        if elements:
            unit = (part, matrix, which)
            assert self.size.setdefault(unit, elements) == elements
            self.units[rank][unit] += 1

    def _rank(self, rank: int) -> None:
        stage = self.mesh.coordinates[rank]["pp"]
        for layer, where in enumerate(stages_of_layers(self.scenario, self.sizes["pp"]), 1):
            if where != stage:
                continue
            self._attention(rank, layer)
            for which in ("before attention", "before ffn"):
                self.add(rank, "norms", "norm", self.model["hidden"], layer, which)
            if is_moe(self.scenario, layer):
                self._moe(rank, layer)
            else:
                self._ffn(
                    rank,
                    "dense",
                    layer,
                    self.model["dense_hidden"],
                    self.options.get("dense_tp", self.sizes["tp"]),
                )
        self._ends(rank, stage)

    def _attention(self, rank: int, layer: int) -> None:
        model, hidden, tp = self.model, self.model["hidden"], self.sizes["tp"]
        at = self.mesh.coordinates[rank]["tp"]
        per_rank = model["heads"] // tp
        heads = range(at * per_rank, (at + 1) * per_rank)
        if "kv_lora_rank" in model:
            self._latent(rank, layer, heads)
            return
        width, value = model["head_dim"], model.get("v_head_dim") or model["head_dim"]
        kv_of = {head * model["kv_heads"] // model["heads"] for head in heads}
        for head in heads:
            self.add(rank, "attention", "q", width * hidden, layer, head)
            self.add(rank, "attention", "o", value * hidden, layer, head)
        for head in kv_of:
            self.add(rank, "attention", "k", width * hidden, layer, head)
            self.add(rank, "attention", "v", value * hidden, layer, head)

    def _latent(self, rank: int, layer: int, heads: range) -> None:
        model, hidden = self.model, self.model["hidden"]
        nope, rope, value = model["qk_nope_head_dim"], model["qk_rope_head_dim"], model["v_head_dim"]
        latent, q_latent = model["kv_lora_rank"], model.get("q_lora_rank")
        self.add(rank, "attention", "kv_a", (latent + rope) * hidden, layer)
        self.add(rank, "norms", "latent_norm", latent, layer, "kv")
        if q_latent:
            self.add(rank, "attention", "q_a", q_latent * hidden, layer)
            self.add(rank, "norms", "latent_norm", q_latent, layer, "q")
        for head in heads:
            q = "q_b" if q_latent else "q"
            self.add(rank, "attention", q, (nope + rope) * (q_latent or hidden), layer, head)
            self.add(rank, "attention", "kv_b", (nope + value) * latent, layer, head)
            self.add(rank, "attention", "o", value * hidden, layer, head)

    def _ffn(self, rank: int, part: str, layer: int, width: int, parts: int) -> None:
        at = self.mesh.coordinates[rank]["tp"] if parts > 1 else 0
        start, stop = slices(width, parts)[at]
        for matrix in ("gate", "up", "down"):
            self.add(rank, part, matrix, (stop - start) * self.model["hidden"], layer, start)

    def _moe(self, rank: int, layer: int) -> None:
        model, hidden, tp = self.model, self.model["hidden"], self.sizes["tp"]
        self.add(rank, "router", "router", model["experts"] * hidden, layer)
        if model.get("shared_gate"):
            self.add(rank, "router", "shared_gate", hidden, layer)
        routed_too = shared_ids(self.scenario)
        if model.get("shared_experts") and not routed_too:
            parts = tp if self.options.get("shared_tp") in (True, "own", "merged") else 1
            self._ffn(rank, "shared", layer, model["shared_hidden"], parts)
        at = self.mesh.coordinates[rank]
        over_tp = self.options.get("contract") == "tp"
        parts, mine = (tp, at["tp"]) if over_tp else (self.sizes["etp"], at["etp"])
        start, stop = slices(model["expert_hidden"], parts)[mine]
        for expert, ep_rank in slots(self.scenario, layer, self.sizes["ep"]):
            if ep_rank == at["ep"]:
                part = "shared" if expert in routed_too else "experts"
                for matrix in ("gate", "up", "down"):
                    self.add(rank, part, matrix, (stop - start) * hidden, layer, expert, start)

    def _ends(self, rank: int, stage: int) -> None:
        """Vocabulary rows one by one; tied matrices have one name for a row at both ends."""
        vocab, hidden, tp = self.model["vocab"], self.model["hidden"], self.sizes["tp"]
        at, head = self.mesh.coordinates[rank]["tp"], chunks_in_order(self.scenario, self.sizes["pp"])[-1][0]
        is_last = stage == head
        share = vocab
        while share % tp:
            share += 1
        mine = [row for row in range(vocab) if row // (share // tp) == at]
        everything = self.options.get("embedding", "replicated") == "replicated"
        tied = self.model.get("tie_embeddings", False)
        if stage == 0:
            for row in range(vocab) if everything else mine:
                self.add(rank, "embedding", "embedding", hidden, row)
        if is_last:
            self.add(rank, "norms", "norm", hidden, "final")
            for row in [] if tied and stage == 0 else mine:
                self.add(rank, *(("embedding", "embedding") if tied else ("lm_head", "lm_head")), hidden, row)

    def held_by(self) -> Counter[Unit]:
        """How often the whole mesh holds each unit."""
        total: Counter[Unit] = Counter()
        for units in self.units:
            total.update(units)
        return total
