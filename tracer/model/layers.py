"""The kinds of layer a model is made of: how a layer mixes tokens, its feed-forward part, and its norms.

A model is a list of layers, each of a kind. A kind says what the layer weighs (``tracer.model.weights``),
what it keeps of a token (K/V), and what it keeps of a sequence (a state of fixed size).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from tracer.errors import MAX_SIZE, ConfigError, check_bool, check_table, nearest, whole_number, word_of


class AttentionType(StrEnum):
    """How a layer mixes tokens.

    ``full``: every earlier token. ``sliding``: the last ``window`` tokens. ``chunked``: the tokens of the
    same chunk of ``window``. ``mla``: one latent per token. ``dsa``: ``mla`` over the tokens that an
    indexer picks. ``compressed``: a window, and one entry for ``ratio`` older tokens (DeepSeek-V4).
    ``gated_delta_net``, ``kda``, ``lightning``, ``mamba`` and ``mamba2`` keep a state of fixed size per
    sequence; ``short_conv`` (LFM2) only its last inputs.
    """

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    MLA = "mla"
    DSA = "dsa"
    COMPRESSED = "compressed"
    GATED_DELTA_NET = "gated_delta_net"
    KDA = "kda"
    LIGHTNING = "lightning"
    MAMBA = "mamba"
    MAMBA2 = "mamba2"
    SHORT_CONV = "short_conv"


class QkNorm(StrEnum):
    """Norm of queries and keys: none, one vector for all heads, or one as wide as all heads together."""

    NONE = "none"
    HEAD = "head"
    WIDTH = "width"


class Gate(StrEnum):
    """Gate on the heads' outputs: none, one value per head, or one per element."""

    NONE = "none"
    HEAD = "head"
    ELEMENT = "element"


class ExtraPart(StrEnum):
    """The part of the model that an extra weight is counted with."""

    ATTENTION = "attention"
    ROUTER = "router"
    EXPERTS = "experts"
    SHARED = "shared"
    NORMS = "norms"
    EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class Extra:
    """A weight of one family that no other field describes, ``[rows, columns]``; every token uses it."""

    part: ExtraPart
    name: str
    rows: int
    columns: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", word_of(f"{self.name}.part", self.part, ExtraPart))
        whole_number(f"{self.name}.rows", self.rows, at_most=MAX_SIZE)
        whole_number(f"{self.name}.columns", self.columns, at_most=MAX_SIZE)


def _check_fields(kind: Any) -> None:
    """Each field of a kind alone: switches, words and sizes, by the type of its default.

    Raises:
        ConfigError: naming ``layer.<field>``.
    """
    for each in fields(kind):
        value, field = getattr(kind, each.name), f"layer.{each.name}"
        if each.name in ("extras", "type") or (value is None and each.default is None):
            continue
        if isinstance(each.default, bool):
            check_bool(field, value)
        elif isinstance(each.default, StrEnum):
            object.__setattr__(kind, each.name, word_of(field, value, type(each.default)))
        else:
            whole_number(field, value, at_least=0 if each.default == 0 else 1, at_most=MAX_SIZE)


def _check_type(kind: Any) -> None:
    """The type is one that the class describes, as a member of the enum."""
    word = word_of("layer.type", kind.type, AttentionType)
    if word not in kind.TYPES:
        allowed = ", ".join(kind.TYPES)
        raise ConfigError("layer.type", kind.type, f"must be one of {allowed}", f"try {kind.TYPES[0]!r}")
    object.__setattr__(kind, "type", word)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadAttention:
    """Attention over K and V heads. Sizes are elements.

    ``shared_kv``: the layer reads the K/V of an earlier layer and has none of its own.
    ``keys_as_values``: there is no value projection; values are made from the keys' (both are cached).
    ``q_rank``: queries come from a latent of that size, through a norm (Step-3; 0: straight).
    ``index_heads`` and ``index_dim`` describe an indexer that picks blocks of keys (MiniMax-M3).
    """

    TYPES: ClassVar = (AttentionType.FULL, AttentionType.SLIDING, AttentionType.CHUNKED)

    type: AttentionType
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    window: int | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    sinks: bool = False
    gate: Gate = Gate.NONE
    shared_kv: bool = False
    keys_as_values: bool = False
    q_rank: int = 0
    index_heads: int = 0
    index_dim: int = 0
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        _check_type(self)
        _check_fields(self)
        if (self.window is None) != (self.type is AttentionType.FULL):
            rule = "must be given where the type is sliding or chunked, and only there"
            raise ConfigError("layer.window", self.window, rule, "write window = 4096, or type = 'full'")
        if self.heads % self.kv_heads:
            rule = f"must divide heads={self.heads}"
            raise ConfigError("layer.kv_heads", self.kv_heads, rule, f"try {self.heads}")

    @property
    def kv_values(self) -> int:
        """Elements cached for one position: K and V of every KV head."""
        return 0 if self.shared_kv else self.kv_heads * (self.head_dim + self.v_head_dim)

    @property
    def index_values(self) -> int:
        """Elements of the indexer's key for one position."""
        return self.index_dim if self.index_heads else 0

    def positions(self, context: int) -> int:
        """Positions whose K/V a sequence of ``context`` tokens keeps; of a chunk, the most it comes to."""
        return context if self.window is None else min(context, self.window)

    @property
    def state_values(self) -> int:
        """Elements of a state: none."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention; with ``index_heads`` an indexer picks the tokens (DSA).

    ``index_shared``: the layer takes the picks of an earlier layer and has no indexer of its own.
    """

    TYPES: ClassVar = (AttentionType.MLA, AttentionType.DSA)

    type: AttentionType
    heads: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None = None
    bias: bool = False
    gate: Gate = Gate.NONE
    index_heads: int = 0
    index_dim: int = 0
    index_top_k: int = 0
    index_shared: bool = False
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        _check_type(self)
        _check_fields(self)

    @property
    def qk_head_dim(self) -> int:
        """Width of one query head."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def kv_values(self) -> int:
        """Elements cached for one position: the latent and the rotary key."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def index_values(self) -> int:
        """Elements of the indexer's key for one position."""
        return self.index_dim if self.index_heads and not self.index_shared else 0

    def positions(self, context: int) -> int:
        """Positions whose latent a sequence of ``context`` tokens keeps: all."""
        return context

    @property
    def state_values(self) -> int:
        """Elements of a state: none."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
    """DeepSeek-V4's attention: one K/V head over a window, and one entry for ``ratio`` older tokens.

    ``ratio`` 0 has the window alone; with ``index_heads`` an indexer picks among the entries.
    The output goes through ``o_groups`` projections of ``o_lora_rank``.
    """

    TYPES: ClassVar = (AttentionType.COMPRESSED,)

    type: AttentionType = AttentionType.COMPRESSED
    heads: int
    head_dim: int
    q_lora_rank: int
    qk_rope_head_dim: int
    o_groups: int
    o_lora_rank: int
    window: int
    ratio: int = 0
    index_heads: int = 0
    index_dim: int = 0
    index_top_k: int = 0
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        _check_type(self)
        _check_fields(self)

    @property
    def kv_values(self) -> int:
        """Elements of one entry, of the window or of the compressed ones: K and V are one vector."""
        return self.head_dim

    @property
    def index_values(self) -> int:
        """Elements of the indexer's key for one compressed entry."""
        return self.index_dim if self.index_heads else 0

    def positions(self, context: int) -> int:
        """Entries a sequence of ``context`` tokens keeps: its window, and one for each full ``ratio``."""
        return min(context, self.window) + self.compressed(context)

    def compressed(self, context: int) -> int:
        """Compressed entries of a sequence of ``context`` tokens."""
        return context // self.ratio if self.ratio else 0

    @property
    def state_values(self) -> int:
        """Elements of a state: the partly filled entry is not counted."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Attention with a state of ``key_dim x value_dim`` per value head in place of K/V.

    ``conv`` is the width of the short convolution before it (0: none). ``full_rank_decay`` and
    ``full_rank_gate``: KDA's decay and output gate are one matrix each in place of two of low rank.
    ``state_bytes_per_value`` is the size of the state's dtype.
    """

    TYPES: ClassVar = (
        AttentionType.GATED_DELTA_NET, AttentionType.KDA, AttentionType.LIGHTNING, AttentionType.SHORT_CONV,
    )  # fmt: skip

    type: AttentionType
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int = 0
    state_bytes_per_value: int = 4
    full_rank_decay: bool = False
    full_rank_gate: bool = False
    bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        _check_type(self)
        _check_fields(self)

    @property
    def heads(self) -> int:
        """Heads that tensor parallelism cuts."""
        return self.value_heads

    @property
    def conv_channels(self) -> int:
        """Channels of the short convolution: q, k and v of all heads; of one that stands alone its width."""
        if self.type is AttentionType.SHORT_CONV:
            return self.value_heads * self.value_dim
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim if self.conv else 0

    @property
    def kv_values(self) -> int:
        """Elements cached for one position: none."""
        return 0

    @property
    def index_values(self) -> int:
        """Elements of an indexer's key: none."""
        return 0

    def positions(self, context: int) -> int:
        """Positions whose K/V is kept: none."""
        return 0

    @property
    def state_values(self) -> int:
        """Elements of the recurrent state of one sequence."""
        if self.type is AttentionType.SHORT_CONV:
            return 0
        return self.value_heads * self.key_dim * self.value_dim

    @property
    def conv_values(self) -> int:
        """Elements of the last inputs that the convolution needs: its width less one, per channel."""
        return self.conv_channels * max(0, self.conv - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """A Mamba-2 mixer: a state of ``head_dim x state`` per head, after a short convolution.

    Mamba-1 (``mamba``) has a head per channel; step, B and C come from the convolved row, the step through
    a latent of ``dt_rank``, with a norm on each where ``norm`` is on.
    """

    TYPES: ClassVar = (AttentionType.MAMBA2, AttentionType.MAMBA)

    type: AttentionType = AttentionType.MAMBA2
    heads: int
    head_dim: int
    state: int
    groups: int
    conv: int = 4
    conv_bias: bool = True
    bias: bool = False
    norm: bool = True
    dt_rank: int = 0
    state_bytes_per_value: int = 4
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        _check_type(self)
        _check_fields(self)
        if (self.type is AttentionType.MAMBA) != bool(self.dt_rank):
            rule = "must be given where the type is mamba, and only there"
            raise ConfigError("layer.dt_rank", self.dt_rank, rule, "write dt_rank = 256, or type = 'mamba2'")

    @property
    def inner(self) -> int:
        """Inner width: all heads together."""
        return self.heads * self.head_dim

    @property
    def conv_channels(self) -> int:
        """Channels of the convolution: the inner width, and in Mamba-2 B and C of every group."""
        return self.inner if self.type is AttentionType.MAMBA else self.inner + 2 * self.groups * self.state

    @property
    def kv_values(self) -> int:
        """Elements cached for one position: none."""
        return 0

    @property
    def index_values(self) -> int:
        """Elements of an indexer's key: none."""
        return 0

    def positions(self, context: int) -> int:
        """Positions whose K/V is kept: none."""
        return 0

    @property
    def state_values(self) -> int:
        """Elements of the recurrent state of one sequence."""
        return self.inner * self.state

    @property
    def conv_values(self) -> int:
        """Elements of the last inputs that the convolution needs: its width less one, per channel."""
        return self.conv_channels * (self.conv - 1)


Attention = HeadAttention | LatentAttention | CompressedAttention | LinearAttention | Mamba2


def has_state(attention: Attention | None) -> bool:
    """Whether a mixer keeps a state of fixed size per sequence in place of K/V."""
    return isinstance(attention, LinearAttention | Mamba2)


_ATTENTION = (HeadAttention, LatentAttention, CompressedAttention, LinearAttention, Mamba2)
_BY_TYPE = {word: each for each in _ATTENTION for word in each.TYPES}


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFfn:
    """A feed-forward part that every token uses: gated (three matrices) or plain (two)."""

    width: int
    gated: bool = True
    bias: bool = False

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeFfn:
    """Routed experts, and what runs beside them for every token.

    ``shared_width`` is the width of all shared experts together. ``latent``: the experts work on rows of
    this size, with one projection down and one up (LatentMoE). ``zero_experts`` have no weights; the
    router picks among them too. ``router_bias`` is a trained bias of the router's logits;
    ``router_hidden`` is the width of the row it sees where that is not the hidden size.
    """

    experts: int
    top_k: int
    width: int
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_width: int = 0
    shared_gate: bool = False
    latent: int = 0
    zero_experts: int = 0
    router_hidden: int = 0
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        _check_fields(self)
        if self.top_k > self.experts + self.zero_experts:
            rule, most = f"must be at most the experts={self.experts}", self.experts
            raise ConfigError("layer.top_k", self.top_k, rule, f"try {most}")


FeedForward = DenseFfn | MoeFfn


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """One kind of layer; ``attention`` or ``feed_forward`` is None where the layer has no such part.

    ``norms`` counts the norms as wide as the hidden size; with ``norm_bias`` each has a bias beside its
    weight.
    """

    attention: Attention | None = None
    feed_forward: FeedForward | None = None
    norms: int = 2
    norm_bias: bool = False
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        whole_number("layer.norms", self.norms, at_least=0, at_most=16)
        check_bool("layer.norm_bias", self.norm_bias)

    @property
    def is_moe(self) -> bool:
        """Whether the layer has routed experts."""
        return isinstance(self.feed_forward, MoeFfn)

    @property
    def kv_values(self) -> int:
        """Elements cached for one position."""
        return self.attention.kv_values if self.attention else 0

    def positions(self, context: int) -> int:
        """Positions (or entries) whose K/V a sequence of ``context`` tokens keeps in the layer."""
        return self.attention.positions(context) if self.attention and self.kv_values else 0

    @property
    def title(self) -> str:
        """The kind in a few words, for tables: how it mixes tokens, and its feed-forward part."""
        return f"{_attention_title(self.attention)} + {_ffn_title(self.feed_forward)}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values; fields at their default are left out."""
        table: dict[str, Any] = {
            each.name: getattr(self, each.name)
            for each in fields(self)[2:4]
            if getattr(self, each.name) != each.default
        }
        for name in ("attention", "feed_forward"):
            part = getattr(self, name)
            if part is not None:
                table[name] = _part_table(part)
        return table | ({"extras": extras_table(self.extras)} if self.extras else {})

    @classmethod
    def from_dict(cls, field: str, value: object) -> LayerKind:
        """A kind from its table.

        Raises:
            ConfigError: naming the key under ``field``.
        """
        table = check_table(field, value)
        _known(field, table, [each.name for each in fields(cls)])
        given: dict[str, Any] = {key: table[key] for key in ("norms", "norm_bias") if key in table}
        if "attention" in table:
            given["attention"] = _attention_from(f"{field}.attention", table["attention"])
        if "feed_forward" in table:
            given["feed_forward"] = _ffn_from(f"{field}.feed_forward", table["feed_forward"])
        made: LayerKind = _made(field, cls, given | _extras_from(field, table))
        return made


def _attention_title(attention: Attention | None) -> str:
    if attention is None:
        return "no attention"
    window = getattr(attention, "window", None)
    words = str(attention.type).replace("_", " ") + (f" {window:,}" if window else "")
    ratio = getattr(attention, "ratio", 0)
    shared = getattr(attention, "shared_kv", False) or getattr(attention, "index_shared", False)
    return words + (f" 1/{ratio}" if ratio else "") + (" (shared)" if shared else "")


def _ffn_title(part: FeedForward | None) -> str:
    if part is None:
        return "no FFN"
    if isinstance(part, MoeFfn):
        return f"MoE {part.top_k} of {part.experts:,}" + (" + shared" if part.shared_width else "")
    return f"{'gated' if part.gated else 'plain'} FFN {part.width:,}"


def _part_table(part: Any) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for each in fields(part):
        value = getattr(part, each.name)
        if value == each.default and each.name != "type":
            continue
        table[each.name] = extras_table(value) if each.name == "extras" else _plain(value)
    return table


def _plain(value: object) -> object:
    return str(value) if isinstance(value, StrEnum) else value


def extras_table(extras: tuple[Extra, ...]) -> list[list[object]]:
    """JSON values of extra weights."""
    return [[str(each.part), each.name, each.rows, each.columns] for each in extras]


def _extras_from(field: str, table: Mapping[str, object]) -> dict[str, Any]:
    return {"extras": extras_from(f"{field}.extras", table["extras"])} if "extras" in table else {}


def extras_from(field: str, value: object) -> tuple[Extra, ...]:
    """Extra weights from a list of them, or of ``[part, name, rows, columns]``.

    Raises:
        ConfigError: naming ``field``.
    """
    if isinstance(value, tuple) and all(isinstance(each, Extra) for each in value):
        return value
    rule, fix = "must be a list of [part, name, rows, columns]", "write [['attention', 'name', 1, 64]]"
    if not isinstance(value, list | tuple) or not all(
        isinstance(each, list | tuple) and len(each) == 4 and isinstance(each[1], str) for each in value
    ):
        raise ConfigError(field, value, rule, fix)
    return tuple(Extra(*each) for each in value)


def _attention_from(field: str, value: object) -> Attention:
    table = check_table(field, value)
    word = word_of(f"{field}.type", table.get("type"), AttentionType)
    return _part_from(field, _BY_TYPE[word], table)  # type: ignore[no-any-return]


def _ffn_from(field: str, value: object) -> FeedForward:
    table = check_table(field, value)
    part = MoeFfn if "experts" in table else DenseFfn
    return _part_from(field, part, table)  # type: ignore[no-any-return]


def _part_from(field: str, part: Any, table: dict[str, object]) -> Any:
    names = [each.name for each in fields(part)]
    _known(field, table, names)
    for each in fields(part):
        if each.default is MISSING and each.name not in table:
            raise ConfigError(f"{field}.{each.name}", None, "is needed here", "add it")
    return _made(field, part, dict(table) | _extras_from(field, table))


def _known(field: str, table: Mapping[str, object], names: list[str]) -> None:
    for key, value in table.items():
        if key not in names:
            raise ConfigError(f"{field}.{key}", value, "is not a known key", nearest(key, names))


def _made(field: str, make: Any, given: dict[str, Any]) -> Any:
    """``make(**given)``; an error about ``layer.x`` names ``x`` under ``field``."""
    try:
        return make(**given)
    except ConfigError as error:
        name = error.field.removeprefix("layer.")
        raise ConfigError(f"{field}.{name}", error.got, error.rule, error.fix) from error
