"""What a trip is made of: transfers inside hops."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tracer.mesh.axes import Axis
from tracer.mesh.cluster import Tier


class HopKind(StrEnum):
    """One thing that happens to the token; a new kind is a row here, a function in ``hops``, and a stop.

    A row has the kind's word in logs and JSON, the ``axis`` it communicates on (None: none), its ``family``
    (the colour of the explorer's strip), its ``short`` name there, and its ``label``, a title for any token.
    """

    axis: Axis | None
    family: str
    short: str
    label: str

    def __new__(
        cls, word: str, axis: str | None = None, family: str = "rest", short: str = "", label: str = ""
    ) -> HopKind:
        """A member that is its word, with the rest of its row as attributes."""
        kind = str.__new__(cls, word)
        kind._value_ = word
        kind.axis = None if axis is None else Axis(axis)
        kind.family, kind.short, kind.label = family, short, label
        return kind

    LAND = "land", None, "rest", "L", "Land"
    ALL_GATHER = "all_gather", "tp", "tp", "AG", "All-gather"
    KV_EXCHANGE = "kv_exchange", "cp", "cp", "KV", "Exchange K/V"
    REDUCE_SCATTER = "reduce_scatter", "tp", "tp", "RS", "Reduce-scatter"
    ALL_REDUCE = "all_reduce", "tp", "tp", "AR", "All-reduce"
    COUNTS_REDUCE = "counts_reduce", "tp", "rest", "CR", "Sum experts' counts"
    COUNTS_GATHER = "counts_gather", "ep", "rest", "CG", "Gather experts' counts"
    PROBS_DISPATCH = "probs_dispatch", "ep", "rest", "PD", "Dispatch probabilities"
    DISPATCH = "dispatch", "ep", "ep", "D", "Dispatch to experts"
    COMBINE = "combine", "ep", "ep", "C", "Combine experts' outputs"
    PP_SEND = "pp_send", "pp", "pp", "PP", "Send to the next stage"
    HEAD_COPY = "head_copy", "tp", "tp", "HC", "Copy rows to the LM head"
    LOGITS_GATHER = "logits_gather", "tp", "tp", "LG", "Gather logits"
    QUERY_SEND = "query_send", "cp", "cp", "Q", "Send queries"
    PARTIALS_RETURN = "partials_return", "cp", "cp", "O", "Return partial outputs"
    HEADS_SCATTER = "heads_scatter", "cp", "cp", "HS", "Scatter heads"
    HEADS_GATHER = "heads_gather", "cp", "cp", "HG", "Gather heads"
    STATE_PASS = "state_pass", "cp", "cp", "SP", "Hand the state on"
    KV_TRANSFER = "kv_transfer", None, "cp", "KT", "Move K/V between pools"
    WEIGHT_PULL = "weight_pull", "ep", "ep", "W", "Pull experts' weights"
    WEIGHT_GATHER = "weight_gather", None, "rest", "WG", "Gather weights"


class Role(StrEnum):
    """What a transfer carries."""

    ROW = "row"
    PARTIAL = "partial"
    KV = "kv"
    DISPATCH = "dispatch"
    FORWARD = "forward"
    RESULT = "result"
    SUM = "sum"
    LOGITS = "logits"
    QUERY = "query"
    OUTPUT = "output"
    STATE = "state"
    WEIGHTS = "weights"
    METADATA = "metadata"


class Part(StrEnum):
    """The part of the model a hop serves; the same kind of hop serves several."""

    LAND = "land"
    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FFN = "ffn"
    SHARED = "shared_expert"
    MOE = "moe"
    PIPELINE = "pipeline"
    HEAD = "lm_head"
    TRANSFER = "transfer"


METADATA_KINDS = frozenset({HopKind.COUNTS_REDUCE, HopKind.COUNTS_GATHER, HopKind.PROBS_DISPATCH})
"""Kinds of ``routing_metadata``: what routing exchanges besides rows."""
ONCE_A_LAYER = frozenset({HopKind.COUNTS_REDUCE, HopKind.COUNTS_GATHER})
"""Of these, kinds that a rank makes once a layer, whatever its tokens: they are no part of a batch's rows."""
WEIGHT_KINDS = frozenset({HopKind.WEIGHT_PULL, HopKind.WEIGHT_GATHER})
"""Kinds that bring weights to the token: they touch no GPU, cross nothing, and are tallied apart."""
QUIET_KINDS = frozenset({HopKind.LAND, *WEIGHT_KINDS})
"""Kinds that are no comm op: landing is local, weights are tallied apart."""


class Transfer(NamedTuple):
    """One movement of this token's bytes: source rank, destination rank, bytes, link tier, role."""

    src: int
    dst: int
    bytes: int
    tier: Tier
    role: Role


class Where(NamedTuple):
    """Where in the trip a hop is taken.

    ``layer`` counts from 1 (0 before the first); ``home`` is the rank that SP makes home (without SP
    the one it would); ``picks`` are the layer's experts, for hops of a MoE block; ``to_stage`` is where a
    pipeline send goes.
    """

    layer: int
    stage: int
    position: int
    home: int
    part: Part
    picks: tuple[int, ...] = ()
    dead: bool = False
    to_stage: int = 0


class HopSum(NamedTuple):
    """What one hop adds to a tally and to a log; pulled weights touch and cross nothing."""

    touched: set[int]
    crossings: int
    nvlink_bytes: int
    ib_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes over both tiers."""
        return self.nvlink_bytes + self.ib_bytes


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop: its kind, axis, place, and the transfers it makes, in order.

    ``held`` are ranks that hold the token without receiving it (landing); ``note`` is what the log adds.
    """

    kind: HopKind
    axis: Axis | None
    layer: int
    stage: int
    part: Part
    dead: bool
    transfers: tuple[Transfer, ...]
    held: tuple[int, ...] = ()
    note: str = ""

    def at(self, where: Where) -> Hop:
        """The same transfers in another layer of the same stage."""
        return Hop(
            self.kind,
            self.axis,
            where.layer,
            where.stage,
            self.part,
            where.dead,
            self.transfers,
            self.held,
            self.note,
        )

    @property
    def is_comm_op(self) -> bool:
        """Whether the hop counts as a comm op."""
        return self.kind not in QUIET_KINDS

    @property
    def bytes(self) -> int:
        """Bytes of all its transfers."""
        return sum(transfer.bytes for transfer in self.transfers)

    @property
    def crosses(self) -> bool:
        """Whether a transfer goes between NVLink domains, pulled weights included."""
        return any(transfer.tier is Tier.IB for transfer in self.transfers)

    @property
    def crossings(self) -> int:
        """Transfers between NVLink domains; pulled weights are tallied apart."""
        return self.sum().crossings

    def sum(self) -> HopSum:
        """What the hop adds to the counts of a trip."""
        over_ib = [transfer.bytes for transfer in self.transfers if transfer.tier is Tier.IB]
        crossings = 0 if self.kind in WEIGHT_KINDS else len(over_ib)
        ib_bytes = sum(over_ib)
        return HopSum(self.touched, crossings, self.bytes - ib_bytes, ib_bytes)

    @property
    def touched(self) -> set[int]:
        """Ranks that hold a piece of the token because of this hop."""
        ranks = set(self.held)
        if self.kind not in WEIGHT_KINDS:
            for transfer in self.transfers:
                ranks.add(transfer.src)
                ranks.add(transfer.dst)
        return ranks
