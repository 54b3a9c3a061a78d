"""How the mesh is run: where SP splits, how K/V, experts, embedding and layers travel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tracer.errors import ConfigError, check_bool, whole_number, word_of
from tracer.scenario.token import Phase


class Sp(StrEnum):
    """Where tokens are split over the TP group."""

    MEGATRON = "megatron"
    OFF = "off"
    BEFORE_DISPATCH = "before_dispatch"


class Contract(StrEnum):
    """What a MoE layer moves: tokens, sums, all rows, or weights."""

    EP = "ep"
    TP = "tp"
    AG_RS = "ag_rs"
    DWDP = "dwdp"


class KvExchange(StrEnum):
    """How queries and K/V of a CP group meet in prefill.

    ``RING`` and ``ALL_GATHER`` move K/V. ``ULYSSES`` moves heads: each CP rank computes some heads of all
    tokens (Megatron ``a2a``). ``HIERARCHICAL`` does so inside groups of ``cp_inner`` CP ranks and hands K/V
    round a ring between them (Megatron ``a2a+p2p``).
    """

    RING = "ring"
    ALL_GATHER = "all_gather"
    ULYSSES = "ulysses"
    HIERARCHICAL = "hierarchical"


class StateExchange(StrEnum):
    """How layers that keep a state (linear attention, Mamba) work over a CP group.

    ``STATE``: each CP rank computes its tokens and hands the state on to the rank with the next ones.
    ``HEADS``: heads go to the CP ranks that compute them for all tokens, and their outputs come back
    (Megatron).
    """

    STATE = "state"
    HEADS = "heads"


class WindowExchange(StrEnum):
    """Whether the K/V ring of a layer with a window goes all round, or stops after the last step it needs."""

    ALL = "all"
    NEEDED = "needed"


class DispatchMode(StrEnum):
    """How rows reach their experts: through a relay on each remote NVLink domain, or straight."""

    HIGH_THROUGHPUT = "high_throughput"
    LOW_LATENCY = "low_latency"


class TpAlgo(StrEnum):
    """How a collective walks the TP group."""

    DIRECT = "direct"
    RING = "ring"


class SharedTp(StrEnum):
    """What a TP group does with a shared expert.

    ``WHOLE``: each rank that holds the token runs all of it. ``OWN``: sliced over the group, with an
    all-gather and a reduce-scatter of its own (Megatron). ``MERGED``: sliced, its partial sums added to
    those of the routed experts before the one reduction that the block has anyway (vLLM, SGLang).
    """

    WHOLE = "whole"
    OWN = "own"
    MERGED = "merged"


class WeightSharding(StrEnum):
    """What data parallelism shards instead of copying.

    ``ZERO1`` shards optimizer states and ``ZERO2`` gradients too: weights of the forward pass stay whole.
    ``ZERO3`` and ``FSDP`` keep weights in pieces over all of dp·cp, ``HSDP`` over groups of it.
    """

    NONE = "none"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    ZERO3 = "zero3"
    FSDP = "fsdp"
    HSDP = "hsdp"


class Embedding(StrEnum):
    """Whether every TP rank has the whole embedding, or a slice of the vocabulary."""

    REPLICATED = "replicated"
    VOCAB_PARALLEL = "vocab_parallel"


class PromptCut(StrEnum):
    """How a prompt is cut over CP ranks."""

    ZIGZAG = "zigzag"
    CONTIGUOUS = "contiguous"


class ChunkOrder(StrEnum):
    """How the chunks of a model's layers are dealt to pipeline stages: round and round, or there and back."""

    INTERLEAVED = "interleaved"
    V_SHAPE = "v_shape"


class DecodeAttention(StrEnum):
    """Whether in decode the query travels or K/V does; ``AUTO`` leaves it to the published rule."""

    PASS_Q = "pass_q"
    PASS_KV = "pass_kv"
    AUTO = "auto"


CHOICES: dict[str, type[StrEnum]] = {
    "sp": Sp,
    "kv_exchange": KvExchange,
    "dispatch": DispatchMode,
    "contract": Contract,
    "tp_algo": TpAlgo,
    "shared_tp": SharedTp,
    "weight_shard": WeightSharding,
    "embedding": Embedding,
    "landing": PromptCut,
    "decode_attention": DecodeAttention,
    "chunk_order": ChunkOrder,
    "state_exchange": StateExchange,
    "window_exchange": WindowExchange,
}
"""The words that each of a plan's fields may have."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Named choices of one deployment; the words are those of the counting rules.

    A word may be given as text; it is kept as the member of its enum. ``dense_tp`` is None for the mesh's
    tp, or 1; ``stage_layers`` lists the layers of each stage when they are not split evenly. With
    ``chunks`` above 1 a stage holds that many runs of layers (virtual stages), dealt in ``chunk_order``;
    ``chunk_layers`` lists the layers of each chunk, in the order a token meets them, 0 where a chunk has
    the embedding or the LM head alone.
    ``shared_overlap`` gathers a shared expert's rows before dispatch and sums them after combine (Megatron's
    ``--moe-shared-expert-overlap``); ``routing_metadata`` counts exchanges of counts and probabilities.
    ``weight_shard_size`` are the ranks of an HSDP shard group, ``weight_keep`` keeps gathered weights for
    backward instead of dropping them after use, ``weight_prefetch`` gathers a unit while the one before it
    runs. ``shared_tp`` is read from true and false too, as ``own``
    and ``whole``.
    ``shared_routed`` serves the shared experts as routed ones that every token picks: they take slots of
    their own and travel by dispatch (DeepSeek-V3 report, section 3.4.2). ``dcp`` ranks of a TP group that
    hold the same KV head share its tokens, ``dcp_interleave`` consecutive ones at a time (vLLM's decode
    context parallelism).

    Raises:
        ConfigError: for a word that is not one of the choices.
    """

    sp: Sp = Sp.MEGATRON
    kv_exchange: KvExchange = KvExchange.RING
    dispatch: DispatchMode = DispatchMode.HIGH_THROUGHPUT
    contract: Contract = Contract.EP
    tp_algo: TpAlgo = TpAlgo.DIRECT
    dense_tp: int | None = None
    shared_tp: SharedTp = SharedTp.WHOLE
    shared_routed: bool = False
    shared_overlap: bool = False
    routing_metadata: bool = False
    weight_shard: WeightSharding = WeightSharding.NONE
    weight_shard_size: int | None = None
    weight_keep: bool = False
    weight_prefetch: bool = True
    embedding: Embedding = Embedding.REPLICATED
    landing: PromptCut = PromptCut.ZIGZAG
    stage_layers: tuple[int, ...] | None = None
    decode_attention: DecodeAttention = DecodeAttention.PASS_Q
    cp_inner: int | None = None
    dcp: int = 1
    dcp_interleave: int = 1
    chunks: int = 1
    chunk_order: ChunkOrder = ChunkOrder.INTERLEAVED
    chunk_layers: tuple[int, ...] | None = None
    state_exchange: StateExchange = StateExchange.STATE
    window_exchange: WindowExchange = WindowExchange.ALL

    def __post_init__(self) -> None:
        if isinstance(self.shared_tp, bool):  # how files before the three words said it
            object.__setattr__(self, "shared_tp", SharedTp.OWN if self.shared_tp else SharedTp.WHOLE)
        for name, words in CHOICES.items():
            object.__setattr__(self, name, word_of(f"mesh.{name}", getattr(self, name), words))
        for name in ("shared_routed", "shared_overlap", "routing_metadata"):
            check_bool(f"mesh.{name}", getattr(self, name))
        if self.shared_overlap and self.shared_tp is not SharedTp.OWN:
            raise ConfigError(
                "mesh.shared_overlap",
                True,
                "runs a shared expert's own hops around the dispatch, and "
                f"shared_tp = {str(self.shared_tp)!r} has none",
                "drop it, or say shared_tp = 'own'",
            )
        direct = self.contract is Contract.EP and self.dispatch is DispatchMode.LOW_LATENCY
        if self.routing_metadata and not direct:
            raise ConfigError(
                "mesh.routing_metadata",
                True,
                "counts what an all-to-all exchanges besides rows: contract 'ep' with dispatch 'low_latency'",
                "say both, or drop it",
            )
        if self.shared_routed and self.slices_shared:
            raise ConfigError(
                "mesh.shared_tp",
                str(self.shared_tp),
                "slices a shared expert that shared_routed sends away",
                "drop one of the two",
            )
        if self.dense_tp is not None:
            whole_number("mesh.dense_tp", self.dense_tp)
        self._check_inner()
        self._check_shards()
        whole_number("mesh.dcp", self.dcp)
        whole_number("mesh.dcp_interleave", self.dcp_interleave)
        for stage, layers in enumerate(self.stage_layers or ()):
            whole_number(f"mesh.stage_layers[{stage}]", layers)
        self._check_chunks()

    def _check_chunks(self) -> None:
        whole_number("mesh.chunks", self.chunks)
        for chunk, layers in enumerate(self.chunk_layers or ()):
            whole_number(f"mesh.chunk_layers[{chunk}]", layers, at_least=0)
        if self.chunk_order is ChunkOrder.V_SHAPE and self.chunks != 2:
            raise ConfigError(
                "mesh.chunk_order",
                "v_shape",
                f"goes there and back: 2 chunks, not {self.chunks}",
                "try chunks = 2",
            )
        if self.stage_layers is not None and (self.chunks > 1 or self.chunk_layers is not None):
            raise ConfigError(
                "mesh.stage_layers",
                list(self.stage_layers),
                "lists whole stages, and these have chunks",
                "list every chunk in chunk_layers instead",
            )

    def _check_inner(self) -> None:
        if self.kv_exchange is KvExchange.HIERARCHICAL:
            whole_number("mesh.cp_inner", self.cp_inner)
        elif self.cp_inner is not None:
            raise ConfigError(
                "mesh.cp_inner",
                self.cp_inner,
                f"is the inner group of kv_exchange = 'hierarchical', not of {str(self.kv_exchange)!r}",
                "drop it, or say kv_exchange = 'hierarchical'",
            )

    def _check_shards(self) -> None:
        for name in ("weight_keep", "weight_prefetch"):
            check_bool(f"mesh.{name}", getattr(self, name))
        if self.weight_keep and not self.gathers_weights:
            raise ConfigError(
                "mesh.weight_keep",
                True,
                f"keeps gathered weights, and weight_shard = {str(self.weight_shard)!r} gathers none",
                "drop it, or say weight_shard = 'fsdp'",
            )
        if self.weight_shard is WeightSharding.HSDP:
            whole_number("mesh.weight_shard_size", self.weight_shard_size)
        elif self.weight_shard_size is not None:
            raise ConfigError(
                "mesh.weight_shard_size",
                self.weight_shard_size,
                f"is the shard group of weight_shard = 'hsdp', not of {str(self.weight_shard)!r}",
                "drop it, or say weight_shard = 'hsdp'",
            )

    @property
    def gathers_weights(self) -> bool:
        """Whether weights of the forward pass lie in pieces that are gathered before they are used."""
        return self.weight_shard in (WeightSharding.ZERO3, WeightSharding.FSDP, WeightSharding.HSDP)

    @property
    def weights_word(self) -> str:
        """What is done with weights that come to a token: they are gathered (FSDP), else pulled (DWDP)."""
        return "gathered" if self.gathers_weights else "pulled"

    def head_parts(self, cp: int) -> int:
        """How many CP ranks of a group of ``cp`` share a token's heads: 1 where K/V travels instead."""
        return {KvExchange.ULYSSES: cp, KvExchange.HIERARCHICAL: self.cp_inner or 1}.get(self.kv_exchange, 1)

    @property
    def slices_shared(self) -> bool:
        """Whether a shared expert's inner width is cut over TP."""
        return self.shared_tp is not SharedTp.WHOLE


def default_dispatch(phase: Phase) -> DispatchMode:
    """How a phase dispatches when nobody says: decode pays for latency, prefill for bytes."""
    return DispatchMode.LOW_LATENCY if phase is Phase.DECODE else DispatchMode.HIGH_THROUGHPUT
