"""The picks of a batch: drawn as the controls say, or read from a file that a reader sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.reports.blocks import Block, choice_control, file_control, number_control, range_control
from app.reports.numbers import amount_of, whole_of
from tracer.batch.census.layout import MAX_CENSUS_RANKS
from tracer.batch.picks.draws import DrawnPicks, popularity_of
from tracer.batch.picks.files import read_picks
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.picks.source import InMemory, PickSource
    from tracer.scenario.scenario import Scenario

TOKENS, AT_ONCE, MOST_TOKENS = 1_024, 1 << 16, 1 << 22
AT_ONCE_PICKS, MOST_PICKS = 1 << 25, 1 << 33
"""Picks that a page counts while its reader waits (two seconds or so), and that a job counts at all."""

LAYER_PICKS, CELLS_PER_PICK, EASY_TOP_K = 1 << 13, 8, 12
"""What a layer costs by itself in picks, cells of its matrix per pick, and the k above which each of k
picks costs in proportion to k, for none may be drawn twice."""
MAX_BYTES = 1 << 24
SUFFIXES = ".npy,.npz,.parquet,.json,.csv,.pt,.pth,.safetensors"
POPULARITIES = {
    "uniform": "uniform: every expert alike",
    "zipf": "zipf: the r-th expert weighs r to the minus skew",
    "hot": "hot: one expert weighs skew times another",
}


@dataclass(frozen=True, slots=True)
class AskedPicks:
    """The values of the page's controls."""

    tokens: int
    popularity: str
    skew: float
    slots: int | None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> AskedPicks:
        """The numbers of an address.

        Raises:
            ConfigError: for a number that is none or too large.
        """
        return cls(
            whole_of(query, "tokens", TOKENS, most=MOST_TOKENS) or TOKENS,
            query.get("popularity") or "zipf",
            amount_of(query, "skew", 0.5),
            whole_of(query, "slots", None, most=1 << 16),
        )

    def controls(self, sent: InMemory | None, wrong: ConfigError | None) -> list[Block]:
        """The controls with their values; ``wrong`` is said beside the file."""
        most = 8 if self.popularity == "hot" else 2
        name = "" if sent is None or wrong is not None else sent.name
        label = f"Or your own picks or expert counts, up to {MAX_BYTES >> 20} MiB"
        return [
            number_control("tokens", f"Tokens, up to {MOST_TOKENS:,}", self.tokens, least=1),
            choice_control("popularity", "Which experts are liked", self.popularity, POPULARITIES.items()),
            range_control("skew", f"Skew: {self.skew:g}", self.skew, most=most, step="0.1"),
            number_control("slots", "Expert slots for EPLB", self.slots, least=1),
            file_control("picks", label, name, accept=SUFFIXES, most_bytes=MAX_BYTES, wrong=wrong),
        ]

    def work(self, scenario: Scenario) -> int:
        """What the count costs, in plain picks: of all MoE layers and walks, and each layer's matrix."""
        model = scenario.model
        walks = 1 if self.slots is None else 3
        ranks, top_k = scenario.mesh.stage_size, model.top_k or 0
        drawn = self.tokens * top_k * max(top_k, EASY_TOP_K) // EASY_TOP_K
        # A mesh that a census refuses has no matrix: the page says so beside what it can show.
        cells = ranks * ranks if scenario.mesh.world_size <= MAX_CENSUS_RANKS else 0
        each = LAYER_PICKS + drawn + cells // CELLS_PER_PICK
        return walks * model.moe_layers * each

    def check(self, scenario: Scenario) -> None:
        """Refuse a count that no job would end.

        Raises:
            ConfigError: above ``MOST_PICKS``.
        """
        work = self.work(scenario)
        if work > MOST_PICKS:
            layers = scenario.model.moe_layers
            rule = f"of {layers:,} layers cost as much as {work:,} plain picks, over {MOST_PICKS:,}"
            raise ConfigError("tokens", self.tokens, rule, "take fewer tokens, layers or GPUs")

    def drawn(self, scenario: Scenario) -> PickSource:
        """Picks drawn for every MoE layer of the scenario's model.

        Raises:
            ConfigError: for a model without experts, or a popularity that cannot be drawn from.
        """
        model = scenario.model
        weights = popularity_of(self.popularity, model.need("experts", "draw picks"), skew=self.skew)
        return DrawnPicks.of_model(model, self.tokens, popularity=weights, seed=scenario.seed)


def sent_picks(scenario: Scenario, sent: InMemory) -> PickSource:
    """Picks of a file in memory.

    Raises:
        ConfigError: for a file that is too large, that no reader can read, or that holds no pick.
    """
    if len(sent.data) > MAX_BYTES:
        fix = "send fewer tokens, or count them with `tokentrip census SCENARIO --picks FILE`"
        raise ConfigError("picks", sent.name, f"is over {MAX_BYTES:,} bytes", fix)
    picks = read_picks(sent, scenario.model)
    if 0 in (picks.layers, picks.tokens, picks.top_k):
        shape = [picks.layers, picks.tokens, picks.top_k]
        raise ConfigError(
            "picks", shape, "holds no pick", "send [layers, tokens, k] with one or more of each"
        )
    return picks
