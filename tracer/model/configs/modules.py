"""Module names of checkpoints: what a weight is called in them, and which names a pattern means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from tracer.errors import ConfigError
from tracer.model.weights import WeightMatrix, WeightPart

_PREFIXES = (
    "model.layers", "model.language_model.layers", "language_model.model.layers", "backbone.layers", "layers",
    "transformer.h",
)  # fmt: skip
_ATTENTION_BLOCKS = ("self_attn", "mixer", "attn", "attention")
_LINEAR_BLOCKS = ("linear_attn", "mixer", "self_attn", "mamba", "attn")
_NAMES: dict[tuple[WeightPart, str], tuple[str, ...]] = {
    (WeightPart.ATTENTION, "q"): ("q_proj", "qkv_proj", "c_attn", "query_key_value"),
    (WeightPart.ATTENTION, "k"): ("k_proj", "qkv_proj", "c_attn", "query_key_value"),
    (WeightPart.ATTENTION, "v"): ("v_proj", "qkv_proj", "c_attn", "query_key_value"),
    (WeightPart.ATTENTION, "o"): ("o_proj", "dense", "c_proj"),
    (WeightPart.ATTENTION, "q_a"): ("q_a_proj", "fused_qkv_a_proj", "wq_a"),
    (WeightPart.ATTENTION, "q_b"): ("q_b_proj", "wq_b"),
    (WeightPart.ATTENTION, "kv_a"): ("kv_a_proj_with_mqa", "fused_qkv_a_proj"),
    (WeightPart.ATTENTION, "kv_b"): ("kv_b_proj",),
    (WeightPart.ATTENTION, "kv"): ("kv_proj", "wkv"),
    (WeightPart.ATTENTION, "o_a"): ("o_a_proj", "wo_a"),
    (WeightPart.ATTENTION, "o_b"): ("o_b_proj", "wo_b"),
    (WeightPart.ATTENTION, "gate"): ("q_proj", "g_proj"),
    (WeightPart.ATTENTION, "compress_kv"): ("compressor.kv_proj", "compressor.wkv"),
    (WeightPart.ATTENTION, "compress_gate"): ("compressor.gate_proj", "compressor.wgate"),
    (WeightPart.INDEXER, "wq_b"): ("indexer.wq_b", "compressor.indexer.q_b_proj"),
    (WeightPart.INDEXER, "wk"): ("indexer.wk",),
    (WeightPart.INDEXER, "q"): ("indexer.q_proj", "index_q_proj"),
    (WeightPart.INDEXER, "k"): ("indexer.k_proj", "index_k_proj"),
    (WeightPart.INDEXER, "compress_kv"): ("compressor.indexer.kv_proj", "indexer.compressor.wkv"),
    (WeightPart.INDEXER, "compress_gate"): ("compressor.indexer.gate_proj", "indexer.compressor.wgate"),
    (WeightPart.LINEAR, "q"): ("in_proj_qkv", "in_proj_qkvz", "q_proj"),
    (WeightPart.LINEAR, "k"): ("in_proj_qkv", "in_proj_qkvz", "k_proj"),
    (WeightPart.LINEAR, "v"): ("in_proj_qkv", "in_proj_qkvz", "v_proj"),
    (WeightPart.LINEAR, "z"): ("in_proj_z", "in_proj_qkvz"),
    (WeightPart.LINEAR, "a"): ("in_proj_a", "in_proj_ba"),
    (WeightPart.LINEAR, "b"): ("in_proj_b", "in_proj_ba", "b_proj"),
    (WeightPart.LINEAR, "o"): ("out_proj", "o_proj"),
    (WeightPart.LINEAR, "in"): ("in_proj",),
    (WeightPart.LINEAR, "f"): ("f_proj",), (WeightPart.LINEAR, "g"): ("g_proj",),
    (WeightPart.LINEAR, "f_a"): ("f_a_proj",), (WeightPart.LINEAR, "f_b"): ("f_b_proj",),
    (WeightPart.LINEAR, "g_a"): ("g_a_proj",), (WeightPart.LINEAR, "g_b"): ("g_b_proj",),
    (WeightPart.LINEAR, "gate"): ("output_gate", "g_proj"),
}  # fmt: skip
_FFN_BLOCKS = {
    WeightPart.DENSE: ("mlp", "feed_forward", "mixer", "ffn"),
    WeightPart.SHARED: (
        "mlp.shared_experts", "mlp.shared_expert", "mixer.shared_experts", "ffn.shared_experts",
        "feed_forward.shared_expert", "block_sparse_moe.shared_experts", "shared_mlp",
    ),
    WeightPart.EXPERTS: (
        "mlp.experts", "mlp.experts.0", "block_sparse_moe.experts", "block_sparse_moe.experts.0",
        "mixer.experts", "mixer.experts.0", "ffn.experts", "feed_forward.experts", "experts", "moe.experts",
    ),
}  # fmt: skip
_FFN_NAMES = {
    "gate": ("gate_proj", "gate_up_proj", "w1"), "up": ("up_proj", "gate_up_proj", "w3", "c_fc"),
    "down": ("down_proj", "w2", "c_proj"),
}  # fmt: skip
_ROUTERS = ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "mixer.gate", "ffn.gate", "router.proj")
_LATENT = {"latent_down": "mixer.fc1_latent_proj", "latent_up": "mixer.fc2_latent_proj"}
_EVERY_LAYER = 1 << 13
MAX_PATTERN, MAX_REGEXES, MAX_LOOPS, MAX_GLOBS = 300, 32, 4, 2_048


@dataclass(frozen=True, slots=True)
class ModulePaths:
    """The names that checkpoints give to a matrix: ``{prefix}.{layer - 1}.{inside}``, or ``whole`` ones."""

    layer: int
    inside: tuple[str, ...]
    whole: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.inside or self.whole)

    def under(self, prefixes: Sequence[str]) -> tuple[str, ...]:
        """The full names under the given prefixes."""
        return self.whole + tuple(
            f"{prefix}.{self.layer - 1}.{name}" for prefix in prefixes for name in self.inside
        )


def module_paths(matrix: WeightMatrix, layer: int, blocks: tuple[str, ...] | None = None) -> ModulePaths:
    """The names of a matrix of a layer (numbered from 1; 0 is outside the layers).

    ``blocks`` are the family's own names of the modules that hold the part, where they are not the usual.
    """
    if matrix.part is WeightPart.LM_HEAD:
        return ModulePaths(0, (), ("lm_head", "language_model.lm_head", "head"))
    if matrix.part is WeightPart.EMBEDDING:
        names = ("model.embed_tokens", "model.language_model.embed_tokens") if layer == 0 else ()
        return ModulePaths(0, (), names)
    return ModulePaths(layer, _inside(matrix.part, matrix.name, blocks))


@lru_cache(maxsize=1024)
def _inside(part: WeightPart, name: str, own: tuple[str, ...] | None) -> tuple[str, ...]:
    """The names within a layer."""
    if part in _FFN_BLOCKS:
        return tuple(f"{block}.{each}" for block in own or _FFN_BLOCKS[part] for each in _FFN_NAMES[name])
    if part is WeightPart.ROUTER:
        return (_LATENT[name],) if name in _LATENT else _ROUTERS if name == "router" else ()
    blocks = _LINEAR_BLOCKS if part is WeightPart.LINEAR else _ATTENTION_BLOCKS
    return tuple(f"{block}.{each}" for block in blocks for each in _NAMES.get((part, name), ()))


class Patterns:
    """Names and patterns of modules, ready to be asked about.

    A plain name means the module, all that lies in it, and, where it is no full path, any module that has
    it among the parts of its path. ``*`` stands for any text, and ``re:`` starts a regular expression.

    Raises:
        ConfigError: naming ``path``, for a regular expression that could take forever.
    """

    __slots__ = ("_answers", "_general", "_named_layers", "_names", "_of_layer", "_prefixes", "_short")

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self._names: set[str] = set()
        self._short: set[str] = set()
        self._general: list[re.Pattern[str]] = []
        self._of_layer: dict[int, list[re.Pattern[str]]] = {}
        globs = sum("*" in name for name in names)
        if globs > MAX_GLOBS:
            rule = f"has more than {MAX_GLOBS:,} patterns"
            raise ConfigError(path, f"{globs:,} patterns", rule, "put them together")
        for name in names:
            if len(name) > MAX_PATTERN:
                rule = f"has a name of {len(name):,} characters, and a module's has at most {MAX_PATTERN}"
                raise ConfigError(path, name[:40], rule, "shorten it")
            self._add(path, name)
        text = "\n".join(names)
        found = [
            prefix for prefix in _PREFIXES if re.search(rf"(?:^|\n){prefix}\.".replace(".l", r"\.l"), text)
        ]
        self._prefixes = tuple(found) or _PREFIXES[:1]
        numbers = re.findall(r"(?:layers|h)\.(\d{1,6})\b", text)
        self._named_layers = frozenset(map(int, numbers)) | frozenset(self._of_layer)
        if any(re.search(r"\d", pattern.pattern) for pattern in self._general):
            self._named_layers = frozenset(range(_EVERY_LAYER))
        self._answers: dict[tuple[tuple[str, ...], tuple[str, ...]], bool] = {}
        if len(self._general) > MAX_REGEXES:
            rule = f"has more than {MAX_REGEXES} patterns that name no layer"
            raise ConfigError(path, f"{len(self._general)} patterns", rule, "put them together")

    def _add(self, path: str, name: str) -> None:
        if name.startswith("re:"):
            self._general.append(_regex(path, name[3:]))
        elif "*" in name or "?" in name or "[" in name:
            _check_loops(path, name, name.count("*"))
            compiled = re.compile(translate(name))
            layer = re.search(r"\.?(?:layers|h)\.(\d{1,6})\b", name)
            if layer and not name.split("layers", 1)[0].count("*"):
                self._of_layer.setdefault(int(layer[1]), []).append(compiled)
            else:
                self._general.append(compiled)
        else:
            self._names.add(name)
            if "layers." not in name:
                self._short.add(name)

    @property
    def asked_by_layer(self) -> int:
        """Regular expressions and globs that every layer must be asked about apart: those with a number."""
        return len(self._general) if len(self._named_layers) == _EVERY_LAYER else 0

    def has(self, name: str) -> bool:
        """Whether a plain name is among them."""
        return name in self._names

    def match(self, paths: ModulePaths) -> bool:
        """Whether any of a module's names is meant."""
        if not self._names and not self._general and not self._of_layer:
            return False
        if paths.layer - 1 in self._named_layers:
            return self._match(paths)
        key = (paths.inside, paths.whole)
        if key not in self._answers:
            self._answers[key] = self._match(paths)
        return self._answers[key]

    def _match(self, paths: ModulePaths) -> bool:
        patterns = [*self._general, *self._of_layer.get(paths.layer - 1, ())]
        return any(self._one(path, patterns) for path in paths.under(self._prefixes))

    def _one(self, path: str, patterns: Sequence[re.Pattern[str]]) -> bool:
        words = path.split(".")
        above = [".".join(words[:end]) for end in range(1, len(words) + 1)]
        if any(name in self._names for name in above):
            return True
        if self._short and any(
            ".".join(words[start:end]) in self._short
            for start in range(len(words))
            for end in range(start + 1, len(words) + 1)
        ):
            return True
        return any(pattern.match(name) for pattern in patterns for name in above[2:] or above)


def _regex(path: str, text: str) -> re.Pattern[str]:
    """A regular expression without nested repetition, so that it ends soon."""
    _check_loops(path, text, len(re.findall(r"[*+]|\{", text)))
    if re.search(r"\)[*+{]", text):
        rule = "repeats a group, which this reader does not run"
        raise ConfigError(path, text, rule, "write .* in its place")
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(path, text, f"is no regular expression ({error})", "see Python's re") from error


def _check_loops(path: str, text: str, loops: int) -> None:
    if loops > MAX_LOOPS:
        rule = f"repeats more than {MAX_LOOPS} times"
        raise ConfigError(path, text, rule, "use fewer * and +")
