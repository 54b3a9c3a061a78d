"""Who reads a token's final row: LM head, prompt logprobs, draft head; and the work that nobody reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trip import Trip


@dataclass(frozen=True, slots=True)
class HeadReads:
    """Readers of final rows of the scenario's request, on the last stage.

    ``sampled`` is the position whose logits the next token is drawn from, on ``home``, which samples;
    ``head_ranks`` hold the head's slices that serve it, ``vocab_per_rank`` rows each (padded to tp).
    ``logit_rows`` and ``draft_rows`` count the positions whose rows the LM head and a draft head read.
    """

    sampled: int
    home: int
    head_ranks: tuple[int, ...]
    vocab_per_rank: int
    logit_rows: int
    draft_rows: int

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"head_ranks": list(self.head_ranks)}


def head_reads(scenario: Scenario) -> HeadReads:
    """Which rows are read, where.

    Prefill samples from T-1 alone; prompt logprobs take every position through the head, each on the TP
    group of its own home. In decode every new token is sampled from. A draft head (EAGLE, MTP) reads the
    final row of every position, with the embedding of the next token, whose id alone travels.
    """
    token, mesh = scenario.token, scenario.mesh
    sampled = scenario.position if scenario.decodes else token.prompt - 1
    follower = scenario.with_token(position=sampled)
    home = mesh.moved(follower.home, "pp", mesh.stages - 1)
    rows = 1 if scenario.decodes else token.prompt
    vocab = scenario.model.need("vocab", "size the logits")
    return HeadReads(
        sampled,
        home,
        tuple(sorted(mesh.group(home, "tp"))),
        -(-vocab // mesh.tp),
        rows if token.prompt_logprobs else 1,
        rows if token.draft_head else 0,
    )


@dataclass(frozen=True, slots=True)
class DeadWork:
    """What a trip does that nothing reads: hops of the last layer after its K/V is written."""

    hops: tuple[str, ...]
    comm_ops: int
    node_crossings: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"hops": list(self.hops)}


def dead_work(trip: Trip) -> DeadWork:
    """The dead part of a trip: none for T-1, in decode, or when logprobs or a draft head read the row."""
    dead = [hop for hop in trip.hops if hop.dead]
    moved = [hop for hop in dead if hop.kind is not HopKind.WEIGHT_PULL]
    return DeadWork(
        tuple(str(hop.kind) for hop in dead),
        sum(hop.is_comm_op for hop in dead),
        sum(hop.crossings for hop in dead),
        sum(hop.bytes for hop in moved),
    )
