"""Who keeps which K/V heads of a position, by going over every rank and asking."""

from __future__ import annotations

from typing import Any

from oracle.decode import cp_rank_of
from oracle.heads import dealt, inner_group, sharers_of_heads
from oracle.kinds import main_attention
from oracle.landing import landing_table, prompt_length
from oracle.ranks import OracleMesh
from oracle.walk import stages_of_layers, without_nulls

LATENT = -1


class Keepers:
    """Answers for one scenario; heads are numbers of KV heads, or `LATENT` alone with MLA."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = without_nulls(scenario)
        self.mesh = OracleMesh(self.scenario)
        self.prompt = prompt_length(self.scenario, self.mesh)
        self.table = landing_table(self.scenario, self.mesh)
        self.stages = stages_of_layers(self.scenario, self.mesh.sizes["pp"])
        self.options = self.scenario.get("mesh", {})

    def stage_of(self, layer: int) -> int:
        """The stage of a layer, numbered from 1."""
        return self.stages[layer - 1]

    def cp_rank(self, position: int) -> int:
        """The CP rank whose token this is."""
        if position >= self.prompt:
            return cp_rank_of(self.scenario, self.mesh, self.prompt, position)
        (found,) = {cp for (cp, _), held in self.table.items() if position in held}
        return found

    def heads_of(self, tp_rank: int) -> list[int]:
        """Heads a TP rank computes: deal out each head's copies, or each rank's heads, in order."""
        model, tp = self.scenario["model"], self.mesh.sizes["tp"]
        if model.get("kv_lora_rank"):
            return [LATENT]
        kv_heads = model["kv_heads"]
        copies = max(1, tp // kv_heads)
        dealt = [head for head in range(kv_heads) for _ in range(copies)]
        run = len(dealt) // tp
        return dealt[tp_rank * run : (tp_rank + 1) * run]

    def of(self, replica: int, position: int, layer: int) -> dict[int, list[int]]:
        """Heads that each rank keeps of a position in a layer, by rank."""
        dcp, interleave = self.options.get("dcp", 1), self.options.get("dcp_interleave", 1)
        turn = position // interleave // self.mesh.sizes["cp"] % dcp
        kept = {}
        for rank in range(self.mesh.world):
            at = self.mesh.coordinates[rank]
            mine = at["dp"] == replica and at["pp"] == self.stage_of(layer)
            if sharers_of_heads(self.scenario, self.mesh) > 1:
                home = self.mesh.rank_with(rank, cp=self.cp_rank(position))
                sharers = sharers_of_heads(self.scenario, self.mesh)
                if mine and rank in inner_group(self.mesh, home, sharers):
                    pairs = dealt(self.mesh, home, main_attention(self.scenario["model"]), sharers)[rank]
                    kept[rank] = sorted({kv_head for _, kv_head in pairs})
            elif mine and at["cp"] == self.cp_rank(position) and at["tp"] % dcp == turn:
                kept[rank] = self.heads_of(at["tp"])
        return kept
