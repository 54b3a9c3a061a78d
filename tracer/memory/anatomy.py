"""What a model is: its layers by kind, parameters, bytes, K/V, states, FLOPs, and the sizes it admits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, left, right, text_table
from tracer.memory.kv_bytes import (
    index_bytes,
    kv_bytes_of_layer,
    kv_bytes_per_token,
    sequence_bytes,
    state_bytes_per_sequence,
)
from tracer.model.dtype import Dtype
from tracer.model.layer_runs import written_runs
from tracer.model.layers import (
    AttentionType,
    CompressedAttention,
    DenseFfn,
    HeadAttention,
    LatentAttention,
    LayerKind,
    LinearAttention,
    Mamba2,
    MoeFfn,
)
from tracer.model.parameters import count_parameters, matrix_formats
from tracer.model.weight_format import stored_bytes
from tracer.model.weights import WeightPart, weight_matrices

if TYPE_CHECKING:
    from tracer.model.parameters import ParameterCount
    from tracer.model.spec import ModelSpec

SCHEMA = 1
CONTEXTS = (1_024, 8_192, 32_768, 131_072)
MOST_TP, MOST_EP = 128, 1_024
STRIP_WIDTH = 64
_NO_PRODUCT = frozenset({WeightPart.NORMS, WeightPart.BIASES, WeightPart.EMBEDDING, WeightPart.VISION})
_LETTERS = {
    AttentionType.FULL: "F", AttentionType.SLIDING: "w", AttentionType.CHUNKED: "c", AttentionType.MLA: "L",
    AttentionType.DSA: "S", AttentionType.COMPRESSED: "Z", AttentionType.GATED_DELTA_NET: "g",
    AttentionType.KDA: "k", AttentionType.LIGHTNING: "l", AttentionType.MAMBA: "M",
    AttentionType.MAMBA2: "m",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A model laid open; ``print`` shows it. ``kv`` is the dtype of the K/V cache."""

    spec: ModelSpec
    warnings: tuple[str, ...]
    kv: Dtype
    count: ParameterCount

    @property
    def kv_bytes_per_token(self) -> int:
        """K/V that one token writes, over all layers and all heads: windows too, indexers' keys too.

        DeepSeek-V4: an entry of the window in every layer, and its share of the compressed entries.
        """
        total = 0.0
        for kind, layers in self.spec.kinds():
            one = float(kv_bytes_of_layer(kind, self.kv))
            if isinstance(kind.attention, CompressedAttention):
                ratio = kind.attention.ratio
                one += (one + index_bytes(kind)) / ratio if ratio else 0
            else:
                one += index_bytes(kind)
            total += one * len(layers)
        return math.ceil(total)

    @property
    def state_bytes_per_sequence(self) -> int:
        """States of linear-attention and Mamba layers of one sequence."""
        return state_bytes_per_sequence(self.spec)

    def flops_per_token(self, context: int) -> int:
        """Floating-point operations of one token's forward pass behind ``context`` tokens.

        Two for each weight of a matrix it passes, and two for each product of a query with a key and of a
        weight with a value; six for each value of a state. Softmax, norms and activations are not counted.
        """
        matrices = sum(
            2 * each.used * each.elements
            for each in weight_matrices(self.spec)
            if each.part not in _NO_PRODUCT or (each.name == "embedding" and self.spec.tie_embeddings)
        )
        attention = sum(len(layers) * _attention_flops(kind, context) for kind, layers in self.spec.kinds())
        return matrices + attention

    def bytes_by_format(self) -> dict[str, int]:
        """Bytes of the weights by how they are stored, scales included."""
        found: dict[str, int] = {}
        for matrix in weight_matrices(self.spec):
            for word, copies in matrix_formats(self.spec, matrix).items():
                size = copies * stored_bytes(word, matrix.rows, matrix.columns)
                found[str(word)] = found.get(str(word), 0) + size
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def admits(self) -> dict[str, list[int]]:
        """Sizes of tp, ep and (by heads) cp that divide what they cut, up to 128, 1,024 and 128."""
        tp = [
            size
            for size in range(1, MOST_TP + 1)
            if all(_divides(kind, size) for kind, _ in self.spec.kinds())
        ]
        experts = {k.feed_forward.experts for k, _ in self.spec.kinds() if isinstance(k.feed_forward, MoeFfn)}
        whole = math.gcd(*experts) if experts else 1
        ep = [size for size in range(1, min(whole, MOST_EP) + 1) if whole % size == 0]
        heads = math.gcd(*(_heads(kind) for kind, _ in self.spec.kinds() if kind.attention is not None), 0)
        cp = [size for size in range(1, min(heads, MOST_TP) + 1) if heads % size == 0] or [1]
        return {"tp": tp, "ep": ep, "cp_by_heads": cp}

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/model.schema.json`` describes them."""
        count = self.count
        return {
            "schema": SCHEMA,
            "name": self.spec.name,
            "source": self.spec.source,
            "layers": self.spec.layers,
            "kinds": [
                {"layers": written_runs(layers), "count": len(layers), "title": kind.title} | kind.to_dict()
                for kind, layers in self.spec.kinds()
            ],
            "parameters": {
                "total": count.total,
                "active": count.active,
                "by_part": {str(each.part): each.total for each in count.parts},
                "active_by_part": {str(each.part): each.active for each in count.parts},
            },
            "weight_bytes": count.weight_bytes,
            "weight_bytes_by_part": {str(each.part): each.weight_bytes for each in count.parts},
            "weight_bytes_by_format": self.bytes_by_format(),
            "kv_dtype": str(self.kv),
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "kv_growth_bytes_per_token": kv_bytes_per_token(self.spec, self.kv),
            "state_bytes_per_sequence": self.state_bytes_per_sequence,
            "sequences": [
                {
                    "tokens": tokens,
                    "kv_bytes": sequence_bytes(self.spec, tokens, self.kv),
                    "state_bytes": self.state_bytes_per_sequence,
                    "flops_per_token": self.flops_per_token(tokens),
                }
                for tokens in CONTEXTS
            ],
            "admits": self.admits(),
            "left_out": list(self.spec.left_out),
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        """The strip of layers, the kinds, and the tables."""
        spec = self.spec
        lines = [f"{spec.name or 'model'}: {spec.layers} layers"]
        lines += [f"source: {spec.source}"] if spec.source else []
        lines += ["", *self.strip(), ""]
        rows = [(written_runs(layers), f"{len(layers)}", kind.title) for kind, layers in spec.kinds()]
        rows = [(_short(layers), number, title) for layers, number, title in rows]
        lines += text_table((left("layers", 28), right("number", 6), left("kind", 60)), rows)
        lines += ["", str(self.count), "", "bytes by format: " + _amounts(self.bytes_by_format())]
        growth = kv_bytes_per_token(spec, self.kv)
        lines.append(
            f"K/V in {self.kv}: a token writes {self.kv_bytes_per_token:,} B; a long sequence grows by "
            f"{growth:,.0f} B per token; states {self.state_bytes_per_sequence:,} B per sequence"
        )
        table = [
            (f"{tokens:,}", format_bytes(sequence_bytes(spec, tokens, self.kv)),
             format_bytes(self.state_bytes_per_sequence), f"{self.flops_per_token(tokens) / 1e9:,.1f}")
            for tokens in CONTEXTS
        ]  # fmt: skip
        columns = (right("tokens", 10), right("K/V", 12), right("state", 12), right("GFLOP per token", 16))
        lines += ["", *text_table(columns, table), ""]
        admits = self.admits()
        lines.append(f"divides by tp {_sizes(admits['tp'])}; ep {_sizes(admits['ep'])}")
        lines.append(f"cp: any size by ring; by heads (Ulysses, tp 1) {_sizes(admits['cp_by_heads'])}")
        lines += [f"note: {text}" for text in self.warnings]
        return "\n".join(lines)

    def letters(self) -> tuple[str, str]:
        """A letter per layer: of its attention, and of its feed-forward part (``·`` where it has none)."""
        kinds = [self.spec.kind_of(layer) for layer in range(1, self.spec.layers + 1)]
        above = "".join("·" if kind.attention is None else _LETTERS[kind.attention.type] for kind in kinds)
        return above, "".join(_ffn_letter(kind) for kind in kinds)

    def letter_words(self) -> list[tuple[str, str]]:
        """What each letter of this model stands for: attention first."""
        above, below = self.letters()
        used = [(letter, str(word).replace("_", " ")) for word, letter in _LETTERS.items() if letter in above]
        return used + [(letter, word) for letter, word in _FFN_WORDS.items() if letter in below]

    def strip(self) -> list[str]:
        """A letter for each layer's attention, and below it one for its feed-forward part."""
        above, below = self.letters()
        lines = []
        for start in range(0, self.spec.layers, STRIP_WIDTH):
            lines.append(f"{start + 1:>5} {above[start : start + STRIP_WIDTH]}")
            lines.append(f"      {below[start : start + STRIP_WIDTH]}")
        return [*lines, "      " + ", ".join(f"{letter} {word}" for letter, word in self.letter_words())]


_FFN_WORDS = {"d": "gated FFN", "p": "plain FFN", "E": "experts"}


def _ffn_letter(kind: LayerKind) -> str:
    part = kind.feed_forward
    if part is None:
        return "·"
    if isinstance(part, MoeFfn):
        return "E"
    return "d" if part.gated else "p"


def anatomy(spec: ModelSpec, warnings: tuple[str, ...] = (), kv: Dtype = Dtype.BF16) -> Anatomy:
    """A model laid open.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    return Anatomy(spec, warnings, kv, count_parameters(spec))


def _attention_flops(kind: LayerKind, context: int) -> int:
    """Products of one token's queries with keys and values, and of an indexer's, in one layer."""
    attention = kind.attention
    if isinstance(attention, HeadAttention):
        seen = attention.positions(context)
        index = 2 * attention.index_heads * attention.index_dim * context
        return 2 * attention.heads * (attention.head_dim + attention.v_head_dim) * seen + index
    if isinstance(attention, LatentAttention):
        seen = min(context, attention.index_top_k) if attention.index_top_k else context
        index = 2 * attention.index_heads * attention.index_dim * context
        return 2 * attention.heads * (attention.qk_head_dim + attention.v_head_dim) * seen + index
    if isinstance(attention, CompressedAttention):
        entries = attention.compressed(context)
        seen = min(context, attention.window) + min(entries, attention.index_top_k or entries)
        index = 2 * attention.index_heads * attention.index_dim * entries
        return 4 * attention.heads * attention.head_dim * seen + index
    if isinstance(attention, LinearAttention | Mamba2):
        return 6 * attention.state_values
    return 0


def _heads(kind: LayerKind) -> int:
    """Heads that a layer's attention is cut by."""
    attention = kind.attention
    if isinstance(attention, LinearAttention):
        return math.gcd(attention.key_heads, attention.value_heads)
    return 0 if attention is None else attention.heads


def _divides(kind: LayerKind, tp: int) -> bool:
    """Whether ``tp`` divides the heads and inner widths of a layer (K/V heads may be copied)."""
    heads = _heads(kind)
    if heads % tp:
        return False
    attention = kind.attention
    if isinstance(attention, HeadAttention) and attention.kv_heads % tp and tp % attention.kv_heads:
        return False
    if isinstance(attention, Mamba2) and attention.groups % tp and tp % attention.groups:
        return False
    part = kind.feed_forward
    if isinstance(part, DenseFfn):
        return part.width % tp == 0
    return part is None or (part.width % tp == 0 and part.shared_width % tp == 0)


def _short(text: str, most: int = 28) -> str:
    return text if len(text) <= most else text[: most - 2].rsplit(",", 1)[0] + ", …"


def _amounts(amounts: dict[str, int]) -> str:
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in amounts.items())


def _sizes(sizes: list[int]) -> str:
    shown = ", ".join(map(str, sizes[:16]))
    return shown + (f", … {sizes[-1]}" if len(sizes) > 16 else "")
