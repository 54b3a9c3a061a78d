"""How a checkpoint stores its weights, from ``torch_dtype`` and what its quantisation method states.

Read: ``quantization_config`` of transformers (fp8, mxfp4, mxfp8, compressed-tensors, modelopt, awq, gptq,
auto-round, quark, bitsandbytes, fbgemm_fp8) and modelopt's ``hf_quant_config.json``, inside the config or
beside it.
Embedding, norms, biases, routers and the output head keep ``torch_dtype`` unless a rule names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.modules import Patterns, module_paths
from tracer.model.spec import ModelSpec
from tracer.model.stored_as import StoredAs
from tracer.model.weight_format import FP8_BLOCK, WeightFormat
from tracer.model.weights import WeightMatrix, WeightPart, weight_matrices

_DTYPES = {"bfloat16": WeightFormat.BF16, "float16": WeightFormat.FP16, "float32": WeightFormat.FP32}
_LINEAR = frozenset({
    WeightPart.ATTENTION, WeightPart.INDEXER, WeightPart.LINEAR, WeightPart.DENSE, WeightPart.SHARED,
    WeightPart.EXPERTS,
})  # fmt: skip
_NAMED_ONLY = frozenset({WeightPart.LM_HEAD, WeightPart.ROUTER, WeightPart.EMBEDDING})
_NEVER = ("weights_proj", "compress_positions", "conv")
_FIELDS = {
    WeightPart.ATTENTION: "attention_weights", WeightPart.DENSE: "dense_weights",
    WeightPart.SHARED: "shared_weights", WeightPart.EXPERTS: "expert_weights",
}  # fmt: skip
_ALGORITHMS = {
    "FP8": WeightFormat.FP8, "NVFP4": WeightFormat.NVFP4, "W4A16_NVFP4": WeightFormat.NVFP4,
    "NVFP4_AWQ": WeightFormat.NVFP4, "W4A8_NVFP4_FP8": WeightFormat.NVFP4, "NVFP4_SVD": None,
    "FP8_PB_WO": WeightFormat.FP8_BLOCK128, "FP8_BLOCK_SCALES": WeightFormat.FP8_BLOCK128,
    "FP8_PER_CHANNEL_PER_TOKEN": WeightFormat.FP8_CHANNEL, "MXFP8": WeightFormat.MXFP8,
    "MXFP4": WeightFormat.MXFP4, "W4A8_MXFP4_FP8": WeightFormat.MXFP4, "W4A16_MXFP4": WeightFormat.MXFP4,
    "W4A16_AWQ": WeightFormat.INT4_G128, "W4A8_AWQ": WeightFormat.INT4_G128,
    "INT4_AWQ": WeightFormat.INT4_G128,
    "W8A16": WeightFormat.INT8_CHANNEL, "INT8_SQ": WeightFormat.INT8_CHANNEL,
    "W8A8_SQ_PER_CHANNEL": WeightFormat.INT8_CHANNEL, "INT8": WeightFormat.INT8_CHANNEL,
}  # fmt: skip
_IGNORE_KEYS = (
    "modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "exclude",
    "llm_int8_skip_modules",
)  # fmt: skip
MAX_RULES = 1 << 16
MAX_ASKED = 1 << 12


@dataclass(frozen=True, slots=True)
class Rules:
    """``usual`` for every linear layer (only in ``parts``), but by ``named`` where a pattern matches.

    ``ignored`` keep the plain dtype where ``named`` says nothing, or with ``ignored_first`` whatever it says.
    """

    usual: WeightFormat | None
    parts: frozenset[WeightPart]
    ignored: Patterns
    named: tuple[tuple[Patterns, WeightFormat], ...] = ()
    by_part: tuple[tuple[WeightPart, WeightFormat], ...] = ()
    ignored_first: bool = False


def read_weight_formats(
    around: Sequence[ConfigKeys],
    keys: ConfigKeys,
    spec: ModelSpec,
    beside: object = None,
    blocks: Mapping[str, tuple[str, ...]] | None = None,
) -> ModelSpec:
    """``spec`` with the storage of each part; ``around`` are the config's tables, outermost first.

    ``beside`` is the parsed ``hf_quant_config.json``, if there is one; ``blocks`` are the family's own
    names of the modules that hold a part.

    Raises:
        ConfigError: naming the key, for a dtype or a method that this reader does not know.
    """
    plain = _plain_dtype([keys, *reversed(around)])
    spec = replace(spec, weights=plain)
    table = _table(around, keys, beside)
    if table is None:
        return spec
    rules = _rules(table, keys)
    _say_kv(table)
    return _applied(spec, rules, plain or WeightFormat.BF16, blocks or {})


def _plain_dtype(tables: Sequence[ConfigKeys]) -> WeightFormat | None:
    """The checkpoint's own dtype; where no key states it the scenario's applies, with a warning."""
    for keys in tables:
        for key in ("torch_dtype", "dtype"):
            if keys.has(key):
                return keys.word(key, _DTYPES)
    tables[-1].warn(
        f"{tables[-1].path}.torch_dtype is absent: weights that are not quantised take the scenario's dtype"
    )
    tables[0].warnings[:] = list(dict.fromkeys([*tables[0].warnings, *tables[-1].warnings]))
    return None


def _table(around: Sequence[ConfigKeys], keys: ConfigKeys, beside: object) -> ConfigKeys | None:
    """The quantisation's table: the config's own, else the file's beside it."""
    for each in (keys, *reversed(around)):
        for key in ("quantization_config", "compression_config"):
            if each.has(key):
                return ConfigKeys(each.table[key], each.field(key), keys.warnings)
    if beside is None:
        return None
    outer = ConfigKeys(beside, "hf_quant_config", keys.warnings)
    return outer.nested("quantization")


def _rules(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """What a quantisation table says, by its method."""
    if not table.has("quant_method"):
        if table.has("quant_algo") or table.has("quantized_layers"):
            return _modelopt(table, keys)
        if table.has("load_in_4bit") or table.has("load_in_8bit"):
            return _bitsandbytes(table)
        if table.has("config_groups"):
            return _compressed(table)
    method = table.word("quant_method", {name: name for name in _METHODS})
    if method == "fp8" and (table.has("quantized_layers") or table.has("moe_quant_algo")):
        return _modelopt(table, keys)
    return _METHODS[method](table, keys)


def _ignored_names(table: ConfigKeys) -> list[str]:
    """Names and patterns of what is not quantised."""
    return [name for key in _IGNORE_KEYS for name in table.words(key)]


def _ignored(table: ConfigKeys) -> Patterns:
    """Everything a table names as not quantised."""
    names = _ignored_names(table)
    if len(names) > MAX_RULES:
        raise ConfigError(table.path, f"{len(names):,} names", "has more names than a model", "use patterns")
    return Patterns(table.path, names)


def _fp8(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """FP8 with a scale per 128 x 128 block, or per tensor; experts of four bits where the model says so."""
    stored = _fp8_format(table)
    if keys.has("expert_dtype"):
        four_bits = keys.word("expert_dtype", {"fp4": True, "fp8": False})
        if four_bits and stored is WeightFormat.FP8_BLOCK128:
            experts = ((WeightPart.EXPERTS, WeightFormat.MXFP4),)
            return Rules(WeightFormat.FP8_BLOCK128_UE8M0, _LINEAR, _ignored(table), by_part=experts)
    return Rules(stored, _LINEAR, _ignored(table))


def _fp8_format(table: ConfigKeys) -> WeightFormat:
    if table.has("fmt"):
        table.word("fmt", {"e4m3": None, "float8_e4m3fn": None})
    if not table.has("weight_block_size"):
        return WeightFormat.FP8
    return _block(table, "weight_block_size")


def _block(table: ConfigKeys, key: str) -> WeightFormat:
    """A block of 128 x 128, or of 1 x 32 (MXFP8)."""
    block = table.table[key]
    if block in ([1, 32], (1, 32)):
        return WeightFormat.MXFP8
    if block not in ([FP8_BLOCK, FP8_BLOCK], (FP8_BLOCK, FP8_BLOCK)):
        rule = "is not a block size this reader counts"
        raise ConfigError(table.field(key), block, rule, f"write [{FP8_BLOCK}, {FP8_BLOCK}]")
    return WeightFormat.FP8_BLOCK128


def _mxfp4(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """MXFP4 quantises the routed experts alone (openai/gpt-oss)."""
    return Rules(WeightFormat.MXFP4, frozenset({WeightPart.EXPERTS}), _ignored(table))


def _modelopt(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """NVIDIA modelopt: one algorithm, or one for each named layer (mixed precision)."""
    named = _quantised_layers(table)
    if table.has("quant_algo") and table.table["quant_algo"] != "MIXED_PRECISION":
        usual = _algorithm(table, "quant_algo")
        return Rules(usual, _LINEAR, _ignored(table), named)
    if table.has("quant_method") and table.table["quant_method"] == "fp8":
        # the FP8 checkpoint it was made from, with some layers replaced
        return Rules(_fp8_format(table), _LINEAR, Patterns(table.path, []), named)
    return Rules(None, frozenset(), _ignored(table), named or _groups(table))


def _algorithm(table: ConfigKeys, key: str) -> WeightFormat:
    found = table.word(key, _ALGORITHMS)
    if found is None:
        rule = "is a format this reader does not count"
        raise ConfigError(table.field(key), table.table[key], rule, "give the formats in [model] instead")
    return found


def _quantised_layers(table: ConfigKeys) -> tuple[tuple[Patterns, WeightFormat], ...]:
    """Named layers with an algorithm each, those of one algorithm together."""
    if not table.has("quantized_layers"):
        return ()
    layers = table.nested("quantized_layers")
    if len(layers.table) > MAX_RULES:
        raise ConfigError(
            layers.path, f"{len(layers.table):,} names", "has more names than a model", "use less"
        )
    names: dict[WeightFormat, list[str]] = {}
    for name in layers.table:
        names.setdefault(_algorithm(layers.nested(name), "quant_algo"), []).append(name)
    return tuple((Patterns(layers.path, each), stored) for stored, each in names.items())


def _compressed(table: ConfigKeys, keys: ConfigKeys | None = None) -> Rules:
    """compressed-tensors: a format for each group of targets; ``Linear`` is every linear layer."""
    named = _groups(table)
    usual = [stored for patterns, stored in named if patterns.has("Linear")]
    rest = tuple((patterns, stored) for patterns, stored in named if not patterns.has("Linear"))
    parts = _LINEAR if usual else frozenset[WeightPart]()
    return Rules(usual[-1] if usual else None, parts, _ignored(table), rest, ignored_first=True)


def _groups(table: ConfigKeys) -> tuple[tuple[Patterns, WeightFormat], ...]:
    """(targets, format) of each config group."""
    if not table.has("config_groups"):
        return ()
    groups = table.nested("config_groups")
    found = []
    for name in groups.table:
        group = groups.nested(name)
        targets = group.words("targets") or ("Linear",)
        if group.has("weights"):
            found.append((Patterns(group.path, list(targets)), _group_format(group.nested("weights"), table)))
    return tuple(found)


def _group_format(weights: ConfigKeys, table: ConfigKeys) -> WeightFormat:
    """The format that a group's bits, type, strategy and group size mean."""
    bits, kind = weights.size("num_bits", high=16), weights.table.get("type", "int")
    strategy, group = weights.table.get("strategy"), weights.table.get("group_size")
    symmetric = weights.table.get("symmetric", True)
    if kind == "float" and bits == 8:
        if strategy == "block":
            return _block(weights, "block_structure")
        if group == 32:
            return WeightFormat.MXFP8
        return WeightFormat.FP8_CHANNEL if strategy == "channel" else WeightFormat.FP8
    if kind == "float" and bits == 4 and group in (16, 32):
        return WeightFormat.NVFP4 if group == 16 else WeightFormat.MXFP4
    if kind == "int" and bits == 8 and group in (None, -1):
        return WeightFormat.INT8_CHANNEL if strategy == "channel" else WeightFormat.INT8
    if kind == "int" and bits == 4 and group in (None, -1, 32, 64, 128):
        return _int4(group, symmetric=bool(symmetric))
    if kind == "int" and bits == 8 and group in (32, 64, 128):
        return WeightFormat(f"int8_{'' if symmetric else 'zero_'}g{group}")
    rule = f"is {bits} bits of type {kind!r} in groups of {group!r}, which this reader does not count"
    raise ConfigError(weights.path, "a group", rule, "give the formats in [model] instead")


def _int4(group: object, *, symmetric: bool) -> WeightFormat:
    if group in (None, -1):
        return WeightFormat.INT4_CHANNEL
    if group not in (32, 64, 128):
        rule = "is not a group size this reader counts"
        raise ConfigError("config.quantization_config.group_size", group, rule, "try 128")
    return WeightFormat(f"int4_{'' if symmetric else 'zero_'}g{group}")


def _awq(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """AWQ: four bits, a scale and a zero point per group."""
    bits = table.size(table.first("bits", "w_bit"), high=16)
    return Rules(_grouped(table, bits), _LINEAR, _ignored(table))


def _gptq(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """GPTQ: as AWQ; ``dynamic`` rules may leave modules out, ``lm_head`` may bring the head in."""
    stored = _grouped(table, table.size("bits", high=16))
    skipped = [
        "re:" + rule[2:]
        for rule in (table.nested("dynamic").table if table.has("dynamic") else {})
        if rule.startswith("-:")
    ]
    ignored = Patterns(table.path, [name for key in _IGNORE_KEYS for name in table.words(key)] + skipped)
    head = ((Patterns(table.path, ["lm_head"]), stored),) if table.switch("lm_head") else ()
    if table.has("modules_in_block_to_quantize"):
        names = _flat_names(table, "modules_in_block_to_quantize")
        only = ((Patterns(table.path, names), stored),)
        return Rules(None, frozenset(), ignored, (*head, *only), ignored_first=True)
    return Rules(stored, _LINEAR, ignored, head)


def _flat_names(table: ConfigKeys, key: str) -> list[str]:
    """A list of names, or of lists of them."""
    value = table.table[key]
    rule, fix = "must be a list of module names, or of lists of them", "write [['self_attn.q_proj']]"
    if not isinstance(value, list | tuple) or len(value) > MAX_RULES:
        raise ConfigError(table.field(key), value, rule, fix)
    names = [name for each in value for name in (each if isinstance(each, list | tuple) else [each])]
    if len(names) > MAX_RULES or not all(isinstance(name, str) for name in names):
        raise ConfigError(table.field(key), f"{len(names)} entries", rule, fix)
    return names


def _grouped(table: ConfigKeys, bits: int) -> WeightFormat:
    group = table.table.get("group_size", table.table.get("q_group_size", 128))
    if bits == 4 and group in (-1, 32, 64, 128):
        return WeightFormat.INT4_CHANNEL if group == -1 else WeightFormat(f"int4_zero_g{group}")
    if bits == 8 and group in (128, 64, 32, -1):
        return WeightFormat.INT8_CHANNEL if group == -1 else WeightFormat(f"int8_zero_g{group}")
    rule = f"with groups of {group!r} is not a format this reader counts"
    raise ConfigError(table.field("bits"), bits, rule, "give the formats in [model] instead")


def _bitsandbytes(table: ConfigKeys, keys: ConfigKeys | None = None) -> Rules:
    """bitsandbytes: NF4 or FP4 with absmax scales, or eight bits with a scale per row."""
    if table.switch("load_in_4bit") or table.switch("_load_in_4bit"):
        double = table.switch("bnb_4bit_use_double_quant")
        return Rules(WeightFormat.NF4_DOUBLE if double else WeightFormat.NF4, _LINEAR, _ignored(table))
    return Rules(WeightFormat.INT8_CHANNEL, _LINEAR, _ignored(table))


def _auto_round(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """Intel's auto-round: GPTQ's or AWQ's packing, or MX and NV formats by ``data_type``."""
    kind = table.table.get("data_type", "int")
    if kind == "int":
        others = table.nested("extra_config").table if table.has("extra_config") else {}
        tables = {name: each for name, each in others.items() if isinstance(each, Mapping)}
        plain = [name for name, each in tables.items() if each.get("bits") == 16]
        stored = _grouped(table, table.size("bits", high=16))
        return Rules(stored, _LINEAR, Patterns(table.path, [*_ignored_names(table), *plain]))
    words = {"mx_fp": WeightFormat.MXFP4, "nv_fp": WeightFormat.NVFP4, "fp": WeightFormat.FP8}
    stored = table.word("data_type", words)
    if table.has("bits") and table.size("bits") == 8 and stored is WeightFormat.MXFP4:
        stored = WeightFormat.MXFP8
    return Rules(stored, _LINEAR, _ignored(table))


def _quark(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """AMD's quark: one weight format for all but ``exclude``, and for patterns of layers one of their own."""
    usual = _quark_format(table.nested("global_quant_config"))
    own: dict[WeightFormat, list[str]] = {}
    plain = _ignored_names(table)
    layers = table.nested("layer_quant_config") if table.has("layer_quant_config") else None
    for name in layers.table if layers else {}:
        stored = _quark_format(layers.nested(name)) if layers else None
        if stored is None:
            plain.append(name)
        else:
            own.setdefault(stored, []).append(name)
    named = tuple((Patterns(table.path, names), stored) for stored, names in own.items())
    return Rules(usual, _LINEAR, Patterns(table.path, plain), named, ignored_first=True)


def _quark_format(each: ConfigKeys) -> WeightFormat | None:
    """What a quark entry stores weights in; None where it leaves them as they are."""
    if not each.has("weight"):
        return None
    weight = each.nested("weight")
    word, scheme = weight.table.get("dtype"), weight.table.get("qscheme")
    if word == "fp8_e4m3":
        return WeightFormat.FP8_CHANNEL if scheme == "per_channel" else WeightFormat.FP8
    if word == "fp4" and weight.table.get("group_size") == 32:
        return WeightFormat.MXFP4
    if word == "int8":
        return WeightFormat.INT8_CHANNEL if scheme == "per_channel" else WeightFormat.INT8
    if word in ("int4", "uint4"):
        return _int4(weight.table.get("group_size"), symmetric=word == "int4")
    rule = f"is {word!r} by {scheme!r}, which this reader does not count"
    raise ConfigError(weight.path, "a weight", rule, "give the formats in [model] instead")


def _mxfp8(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """MXFP8: a byte per weight and a scale byte for 32."""
    return Rules(WeightFormat.MXFP8, _LINEAR, _ignored(table))


def _fbgemm(table: ConfigKeys, keys: ConfigKeys) -> Rules:
    """fbgemm_fp8: FP8 with a scale per row."""
    return Rules(WeightFormat.FP8_CHANNEL, _LINEAR, _ignored(table))


_METHODS = {
    "fp8": _fp8, "mxfp4": _mxfp4, "modelopt": _modelopt, "compressed-tensors": _compressed, "awq": _awq,
    "gptq": _gptq, "gptq_marlin": _gptq, "awq_marlin": _awq, "bitsandbytes": _bitsandbytes,
    "fbgemm_fp8": _fbgemm, "modelopt_fp4": _modelopt, "modelopt_mixed": _modelopt,
    "auto-round": _auto_round, "intel/auto-round": _auto_round, "quark": _quark, "mxfp8": _mxfp8,
}  # fmt: skip


def _say_kv(table: ConfigKeys) -> None:
    """A checkpoint that brings scales for an FP8 K/V cache."""
    scheme = table.table.get("kv_cache_scheme") or table.table.get("kv_cache_quant_algo")
    if scheme == "FP8" or (isinstance(scheme, dict) and scheme.get("num_bits") == 8):
        table.warn(f"{table.path} asks for an FP8 K/V cache: say dtype.kv = 'fp8' to count it so")


def _check_work(spec: ModelSpec, rules: Rules) -> None:
    """Refuse patterns that would have to be asked about every layer of very many.

    Raises:
        ConfigError: above ``MAX_ASKED``.
    """
    asked = rules.ignored.asked_by_layer + sum(each.asked_by_layer for each, _ in rules.named)
    if asked * spec.layers > MAX_ASKED:
        rule = f"asks {asked} patterns with a number in them about each of {spec.layers:,} layers"
        fix = "name the layers, or put patterns together"
        raise ConfigError("config.quantization_config", f"{asked} patterns", rule, fix)


def _applied(
    spec: ModelSpec, rules: Rules, plain: WeightFormat, blocks: Mapping[str, tuple[str, ...]]
) -> ModelSpec:
    """``spec`` with each part's usual format, and what differs from it."""
    _check_work(spec, rules)
    found: list[tuple[WeightMatrix, dict[WeightFormat, list[int]]]] = []
    for matrix in weight_matrices(spec):
        if matrix.part in _LINEAR or matrix.part in _NAMED_ONLY:
            found.append((matrix, _formats(spec, matrix, rules, plain, blocks)))
    usual = {part: _most(found, part, plain) for part in _FIELDS}
    if not any(matrix.part is WeightPart.ATTENTION for matrix, _ in found):
        usual[WeightPart.ATTENTION] = _most(found, WeightPart.LINEAR, plain)
    for part in (WeightPart.INDEXER, WeightPart.LINEAR):
        usual[part] = usual[WeightPart.ATTENTION]
    stored = []
    for matrix, formats in found:
        for word, layers in formats.items():
            if word != usual.get(matrix.part, plain):
                everywhere = len(formats) == 1
                stored.append(
                    StoredAs(matrix.part, matrix.name, word, frozenset() if everywhere else frozenset(layers))
                )
    given: dict[str, Any] = {
        name: None if usual[part] == plain else usual[part] for part, name in _FIELDS.items()
    }
    return replace(spec, **given, stored=tuple(dict.fromkeys(stored)))


def _most(
    found: Sequence[tuple[WeightMatrix, dict[WeightFormat, list[int]]]], part: WeightPart, plain: WeightFormat
) -> WeightFormat:
    """The format of most of a part's elements."""
    sums: dict[WeightFormat, int] = {}
    for matrix, formats in found:
        if matrix.part is part:
            for word, layers in formats.items():
                sums[word] = sums.get(word, 0) + len(layers) * matrix.per_layer * matrix.elements
    return max(sums, key=lambda word: (sums[word], word)) if sums else plain


def _formats(
    spec: ModelSpec,
    matrix: WeightMatrix,
    rules: Rules,
    plain: WeightFormat,
    blocks: Mapping[str, tuple[str, ...]],
) -> dict[WeightFormat, list[int]]:
    """Format -> the layers where a matrix has it (layer 0 for a matrix outside the layers)."""
    layers = [layer for kind in matrix.kinds for layer in spec.kinds()[kind][1]] or [0]
    found: dict[WeightFormat, list[int]] = {}
    for layer in dict.fromkeys(layers):
        found.setdefault(_format(matrix, layer, rules, plain, blocks), []).append(layer)
    return found


def _format(
    matrix: WeightMatrix, layer: int, rules: Rules, plain: WeightFormat, blocks: Mapping[str, tuple[str, ...]]
) -> WeightFormat:
    """How one layer's matrix is stored."""
    paths = module_paths(matrix, layer, blocks.get(matrix.part))
    if not paths or matrix.name in _NEVER:
        return plain
    if rules.ignored_first and rules.ignored.match(paths):
        return plain
    for patterns, stored in rules.named:
        if patterns.match(paths):
            return stored
    usual = next((word for part, word in rules.by_part if part is matrix.part), rules.usual)
    if usual is None or matrix.part not in rules.parts or rules.ignored.match(paths):
        return plain
    return usual
