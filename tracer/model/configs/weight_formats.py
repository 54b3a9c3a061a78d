"""Storage of each part's weights, from ``torch_dtype`` and ``quantization_config``.

FP8 checkpoints quantise the linear layers of attention, dense FFN, shared and routed experts; the
embedding, the output head, the router and the norms keep ``torch_dtype`` (deepseek-ai/DeepSeek-V3
``inference/model.py``: ``Linear`` alone takes the FP8 dtype). MXFP4 checkpoints quantise the routed
experts alone (openai/gpt-oss config.json, ``modules_to_not_convert``).
"""

from __future__ import annotations

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.weight_format import FP8_BLOCK, WeightFormat

_DTYPES = {"bfloat16": WeightFormat.BF16, "float16": WeightFormat.FP16, "float32": WeightFormat.FP32}
_FP8_PARTS = frozenset({"attention", "dense", "shared", "expert"})
_IGNORE_KEYS = ("modules_to_not_convert", "ignored_layers")

# module, without "model.layers.N." -> the parts whose weights it holds
_MODULES: dict[str, frozenset[str]] = {
    "self_attn": frozenset({"attention"}),
    "mlp": frozenset({"dense", "shared", "expert"}),
    "mlp.gate_proj": frozenset({"dense"}),
    "mlp.up_proj": frozenset({"dense"}),
    "mlp.down_proj": frozenset({"dense"}),
    "mlp.shared_experts": frozenset({"shared"}),
    "mlp.shared_expert": frozenset({"shared"}),
    "mlp.experts": frozenset({"expert"}),
}
_NEVER_QUANTISED = (
    "embed_tokens", "lm_head", "norm", "input_layernorm", "post_attention_layernorm", "mlp.gate", "gate",
    "mlp.router", "router", "mlp.shared_expert_gate", "block_sparse_moe.gate", "e_score_correction_bias",
    "mlp.gate.e_score_correction_bias",
)  # fmt: skip


def read_weight_formats(config: ConfigKeys, model: ConfigKeys) -> dict[str, object]:
    """The ``weights`` and ``*_weights`` fields of a spec that differ from their default.

    ``config`` holds ``quantization_config``; ``model`` is the table with the sizes, which may be nested.

    Raises:
        ConfigError: naming the key, for a dtype, method or module this reader does not know.
    """
    formats: dict[str, object] = {"weights": _plain_dtype(config, model)}
    if not config.has("quantization_config"):
        return formats
    quantization = config.nested("quantization_config")
    method = quantization.word("quant_method", {"fp8": "fp8", "mxfp4": "mxfp4"})
    stored = _fp8(quantization) if method == "fp8" else WeightFormat.MXFP4
    parts = _FP8_PARTS if method == "fp8" else frozenset({"expert"})
    return formats | {f"{part}_weights": stored for part in parts - _ignored_parts(quantization)}


def _plain_dtype(config: ConfigKeys, model: ConfigKeys) -> WeightFormat | None:
    """The checkpoint's own dtype; where no key states it the scenario's applies, with a warning."""
    for keys in (model, config):
        for key in ("torch_dtype", "dtype"):
            if keys.has(key):
                return keys.word(key, _DTYPES)
    config.warn("config.torch_dtype is absent: weights that are not quantised take the scenario's dtype")
    return None


def _fp8(quantization: ConfigKeys) -> WeightFormat:
    """FP8 with a scale a 128 x 128 block, or with none that are counted."""
    if quantization.has("fmt"):
        quantization.word("fmt", {"e4m3": None, "float8_e4m3fn": None})
    if not quantization.has("weight_block_size"):
        return WeightFormat.FP8
    block = quantization.table["weight_block_size"]
    if block not in ([FP8_BLOCK, FP8_BLOCK], (FP8_BLOCK, FP8_BLOCK)):
        field = quantization.field("weight_block_size")
        raise ConfigError(
            field, block, "is not a block size this reader counts", f"write [{FP8_BLOCK}, {FP8_BLOCK}]"
        )
    return WeightFormat.FP8_BLOCK128


def _ignored_parts(quantization: ConfigKeys) -> frozenset[str]:
    """Parts that the lists of modules not to convert leave unquantised."""
    parts: frozenset[str] = frozenset()
    for key in _IGNORE_KEYS:
        for module in quantization.words(key):
            parts |= _parts_of(quantization.field(key), module)
    return parts


def _parts_of(field: str, module: str) -> frozenset[str]:
    """The quantisable parts under a module's name; one layer's share of a part is refused."""
    names = module.removeprefix("model.").split(".")
    in_one_layer = names[0] == "layers" and names[1:2] != ["*"]
    short = ".".join(names[2:] if names[0] == "layers" else names)
    if short in _NEVER_QUANTISED:
        return frozenset()
    if short in _MODULES and not in_one_layer:
        return _MODULES[short]
    rule = f"has {module!r}, which this reader cannot match to one whole part of the model"
    raise ConfigError(field, module, rule, f"known: {', '.join(_MODULES)}, as model.layers.*.NAME")
