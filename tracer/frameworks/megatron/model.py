"""Megatron's own size flags as a model: ``--hidden-size``, ``--num-layers``, ``--swiglu``, ``--num-experts``.

Sources: ``megatron/training/arguments.py`` (validate_args, core_transformer_config_from_args,
_vocab_size_with_padding), ``models/gpt/gpt_layer_specs.py`` (moe_layer_freq),
``transformer/moe/moe_utils.py`` (topk_routing_with_score_function); core 0.16.1 and d98e8a64.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.flags import Kind, model_flag
from tracer.frameworks.found_model import FoundModel
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread
from tracer.model.layers import QkNorm
from tracer.model.router_kind import RouterKind
from tracer.model.spec import MAX_LAYERS, ModelSpec

if TYPE_CHECKING:
    from tracer.frameworks.settings import Settings

_INT, _SWITCH = Kind.INT, Kind.SWITCH
MODEL_FLAGS = (
    model_flag("model", "--hf-model", "--hf-model-id", "--hf-model-path", "--hf-path", "--hf-checkpoint",
               "--model", "--recipe", "--factory"),
    model_flag("hidden_size", "--hidden-size", kind=_INT),
    model_flag("ffn_hidden_size", "--ffn-hidden-size", kind=_INT),
    model_flag("swiglu", "--swiglu", "--gated-linear-unit", "--quick-geglu", kind=_SWITCH, default=False),
    model_flag("squared_relu", "--squared-relu", kind=_SWITCH, default=False),
    model_flag("group_query_attention", "--group-query-attention", kind=_SWITCH, default=False),
    model_flag("num_query_groups", "--num-query-groups", kind=_INT, default=1),
    model_flag("kv_channels", "--kv-channels", kind=_INT),
    model_flag("multi_latent_attention", "--multi-latent-attention", kind=_SWITCH, default=False),
    model_flag("q_lora_rank", "--q-lora-rank", kind=_INT),
    model_flag("kv_lora_rank", "--kv-lora-rank", kind=_INT, default=32),
    model_flag("qk_head_dim", "--qk-head-dim", kind=_INT, default=128),
    model_flag("qk_pos_emb_head_dim", "--qk-pos-emb-head-dim", kind=_INT, default=64),
    model_flag("v_head_dim", "--v-head-dim", kind=_INT, default=128),
    model_flag("moe_router_topk", "--moe-router-topk", kind=_INT, default=2),
    model_flag("moe_ffn_hidden_size", "--moe-ffn-hidden-size", kind=_INT),
    model_flag("moe_layer_freq", "--moe-layer-freq"),
    model_flag("moe_shared_expert_intermediate_size", "--moe-shared-expert-intermediate-size", kind=_INT),
    model_flag("moe_shared_expert_gate", "--moe-shared-expert-gate", kind=_SWITCH, default=False),
    model_flag("moe_router_score_function", "--moe-router-score-function", default="softmax"),
    model_flag("moe_router_pre_softmax", "--moe-router-pre-softmax", kind=_SWITCH, default=False),
    model_flag("moe_router_topk_scaling_factor", "--moe-router-topk-scaling-factor"),
    model_flag("vocab_size", "--vocab-size", kind=_INT),
    model_flag("padded_vocab_size", "--padded-vocab-size", kind=_INT),
    model_flag("make_vocab_size_divisible_by", "--make-vocab-size-divisible-by", kind=_INT, default=128),
    model_flag("tokenizer_type", "--tokenizer-type"),
    model_flag("untie_embeddings", "--untie-embeddings-and-output-weights", kind=_SWITCH, default=False),
    model_flag("disable_bias_linear", "--disable-bias-linear", kind=_SWITCH, default=False),
    model_flag("add_qkv_bias", "--add-qkv-bias", kind=_SWITCH, default=False),
    model_flag("qk_layernorm", "--qk-layernorm", kind=_SWITCH, default=False),
    model_flag("normalization", "--normalization", default="LayerNorm"),
    model_flag("position_embedding_type", "--position-embedding-type", default="learned_absolute"),
    model_flag("max_position_embeddings", "--max-position-embeddings", kind=_INT),
    model_flag("use_rotary", "--use-rotary-position-embeddings", kind=_SWITCH, default=False),
    model_flag("mtp_num_layers", "--mtp-num-layers", kind=_INT),
    model_flag("bf16", "--bf16", kind=_SWITCH, default=False),
    model_flag("fp16", "--fp16", kind=_SWITCH, default=False),
)  # fmt: skip
_NEEDED = ("num_layers", "hidden_size", "num_attention_heads")
_OF_FIELDS = {
    "layers": "num_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
    "kv_heads": "num_query_groups", "head_dim": "kv_channels", "dense_hidden": "ffn_hidden_size",
    "experts": "num_experts", "top_k": "moe_router_topk", "expert_hidden": "moe_ffn_hidden_size",
    "shared_hidden": "moe_shared_expert_intermediate_size", "expert_groups": "moe_router_num_groups",
    "top_groups": "moe_router_group_topk", "routed_scale": "moe_router_topk_scaling_factor",
    "dense_layers": "moe_layer_freq", "vocab": "vocab_size", "qk_nope_head_dim": "qk_head_dim",
    "qk_rope_head_dim": "qk_pos_emb_head_dim",
}  # fmt: skip
_FREQ = re.compile(r"[\[\]()*+,\d\s]{1,400}")
_RUN = re.compile(r"\(?(\[[01,\s]*\])\)?(?:\*(\d{1,4}))?")


def model_of_sizes(settings: Settings) -> FoundModel:
    """The model that the size flags make; none where ``--hidden-size`` is not among them.

    Raises:
        ConfigError: naming the flag, for sizes that make no model.
    """
    dtype = _dtype(settings)
    if not settings.has("hidden_size"):
        return FoundModel(dtype=dtype, notes=_without_model(settings))
    unread = [flag for flag in MODEL_FLAGS if isinstance(settings.given.get(flag.dest), Unread)]
    missing = [settings.name(dest) for dest in _NEEDED if not settings.has(dest)]
    if missing or unread:
        return FoundModel(
            dtype=dtype, notes=(_incomplete(settings, missing, unread[0].dest if unread else ""),)
        )
    try:
        spec = ModelSpec(**_tables(settings))  # type: ignore[arg-type]
    except ConfigError as error:
        raise _of_flag(settings, error) from error
    return FoundModel(spec, dtype=dtype, notes=_notes(settings, spec))


def _dtype(settings: Settings) -> dict[str, str]:
    """``--bf16`` and ``--fp16``: parameters and activations alike."""
    word = "bf16" if settings.on("bf16") else "fp16" if settings.on("fp16") else ""
    keys = ("activations", "kv", "dispatch", "combine", "weights")
    return dict.fromkeys(keys, word) if word else {}


def _tables(settings: Settings) -> dict[str, object]:
    hidden, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    gated = settings.on("swiglu")
    found: dict[str, object] = {
        "layers": settings.size("num_layers"), "hidden": hidden, "heads": heads,
        "name": "model of the launch line", "source": "size flags of Megatron-LM",
        "vocab": _vocabulary(settings), "tie_embeddings": not settings.on("untie_embeddings"),
        "dense_hidden": _width(settings), "left_out": _left_out(settings),
        "gated": gated, "mtp_layers": settings.maybe("mtp_num_layers") or 0, **_small_parts(settings),
    }  # fmt: skip
    if settings.on("multi_latent_attention"):
        found |= {
            "kv_heads": heads, "kv_lora_rank": settings.size("kv_lora_rank"),
            "q_lora_rank": settings.maybe("q_lora_rank"), "qk_nope_head_dim": settings.size("qk_head_dim"),
            "qk_rope_head_dim": settings.size("qk_pos_emb_head_dim"),
            "v_head_dim": settings.size("v_head_dim"),
        }  # fmt: skip
    else:
        grouped = settings.on("group_query_attention")
        found |= {
            "kv_heads": settings.size("num_query_groups") if grouped else heads,
            "head_dim": settings.maybe("kv_channels"),
            "qk_norm": QkNorm.HEAD if settings.on("qk_layernorm") else QkNorm.NONE,
        }
    if settings.maybe("num_experts"):
        found |= _experts(settings)
    return found


def _experts(settings: Settings) -> dict[str, object]:
    shared = settings.maybe("moe_shared_expert_intermediate_size")
    sigmoid = settings.text("moe_router_score_function") == "sigmoid"
    before = settings.on("moe_router_pre_softmax")
    groups, top = settings.maybe("moe_router_num_groups"), settings.maybe("moe_router_group_topk")
    scale = settings.text("moe_router_topk_scaling_factor")
    return {
        "experts": settings.size("num_experts"),
        "top_k": settings.size("moe_router_topk"),
        "expert_hidden": settings.maybe("moe_ffn_hidden_size") or _width(settings),
        "dense_layers": _dense_layers(settings),
        "shared_experts": 1 if shared else 0,
        "shared_hidden": shared,
        "shared_gate": settings.on("moe_shared_expert_gate") and bool(shared),
        "router": RouterKind.SIGMOID_BIAS_TOPK
        if sigmoid
        else RouterKind.SOFTMAX_TOPK
        if before
        else RouterKind.TOPK_SOFTMAX,
        "renormalise": sigmoid,
        "routed_scale": _number(settings, scale) if scale else None,
        "expert_groups": groups if top else None,
        "top_groups": top if groups else None,
    }


def _width(settings: Settings) -> int:
    """``--ffn-hidden-size``, or Megatron's own: 4h, and two thirds of it in steps of 64 with a gate."""
    given = settings.maybe("ffn_hidden_size")
    if given is not None:
        return given
    hidden = settings.size("hidden_size")
    return max(int(4 * hidden * 2 / 3) // 64, 1) * 64 if settings.on("swiglu") else 4 * hidden


def _vocabulary(settings: Settings) -> int | None:
    """The vocabulary as padded: to a multiple of ``--make-vocab-size-divisible-by`` times TP."""
    padded = settings.maybe("padded_vocab_size")
    given = settings.maybe("vocab_size")
    if padded is not None or given is None:
        return padded
    # The null tokenizer has a token for the end of a document besides those of --vocab-size.
    size = given + (settings.text("tokenizer_type") == "NullTokenizer")
    multiple = settings.size("make_vocab_size_divisible_by") * settings.size("tensor_model_parallel_size")
    return -(-size // multiple) * multiple


def _dense_layers(settings: Settings) -> tuple[int, ...]:
    """Layers without experts, 1-based: of ``--moe-layer-freq 2``, or of ``([0]*3+[1]*58)``."""
    text = settings.text("moe_layer_freq") or "1"
    layers = min(settings.size("num_layers"), MAX_LAYERS)
    if text.isdecimal() and len(text) < 6 and int(text):
        return tuple(layer + 1 for layer in range(layers) if layer % int(text))
    pattern = _pattern(text)
    if len(pattern) != settings.size("num_layers"):
        raise ConfigError(
            settings.name("moe_layer_freq"),
            text,
            f"must be N (each Nth layer has experts), or a list of 0 and 1 for the {layers} layers",
            f"try --moe-layer-freq ([0]*1+[1]*{max(layers - 1, 1)})",
        )
    return tuple(layer for layer, has in enumerate(pattern, 1) if not has)


def _pattern(text: str) -> list[int]:
    """Zeros and ones of sums and products of lists; empty for any other text."""
    if not _FREQ.fullmatch(text):
        return []
    plain = text.replace(" ", "")
    if plain.startswith("(") and plain.endswith(")") and "+" in plain:
        plain = plain[1:-1]
    found: list[int] = []
    for part in plain.split("+"):
        run = _RUN.fullmatch(part)
        if run is None or len(found) > MAX_LAYERS:
            return []
        found += [int(bit) for bit in re.findall(r"[01]", run.group(1))][:MAX_LAYERS] * min(
            int(run.group(2) or 1), MAX_LAYERS
        )
    return found


def _number(settings: Settings, text: str) -> float:
    try:
        return float(text[:40])
    except ValueError:
        name = settings.name("moe_router_topk_scaling_factor")
        raise ConfigError(name, text, "must be a number", f"try {name} 2.5") from None


def _small_parts(settings: Settings) -> dict[str, object]:
    """Biases of linear layers and norms, and the table of learned positions."""
    biases = not settings.on("disable_bias_linear")
    return {
        "qkv_bias": biases or settings.on("add_qkv_bias"),
        "out_bias": biases,
        "ffn_bias": biases,
        "norm_bias": settings.text("normalization") != "RMSNorm",
        "positions": settings.maybe("max_position_embeddings") if _learned(settings) else None,
    }


def _learned(settings: Settings) -> bool:
    return settings.text("position_embedding_type") == "learned_absolute" and not settings.on("use_rotary")


def _left_out(settings: Settings) -> tuple[str, ...]:
    """Parts that Megatron makes of these flags and that the model here does not count."""
    positions = _learned(settings) and settings.maybe("max_position_embeddings") is None
    parts = {
        "the table of learned positions": positions,
        "the biases of the norms of queries and keys": settings.on("qk_layernorm")
        and settings.text("normalization") != "RMSNorm",
    }
    layers = settings.maybe("mtp_num_layers")
    return (
        *(part for part, there in parts.items() if there),
        *([f"{layers} multi-token-prediction layer(s)"] if layers else []),
    )


def _notes(settings: Settings, spec: ModelSpec) -> tuple[Note, ...]:
    shape = f"{spec.layers} layers, hidden {spec.hidden}, {spec.heads} heads"
    experts = f", {spec.experts} experts, top {spec.top_k}" if spec.experts else ""
    notes = [
        Note("model_of_sizes", f"the size flags make the model: {shape}{experts}", "add --model for another")
    ]
    if spec.kv_lora_rank and not settings.on("qk_layernorm"):
        message = "without --qk-layernorm the latents have no norms; those of the model are counted with them"
        notes.append(Note("latent_norms", message, "read them as small remainders"))
    parts = ", ".join(spec.left_out)
    if parts:
        notes.append(Note("model_left_out", f"no count includes {parts}", "read them as small remainders"))
    if spec.vocab is None:
        message = "the vocabulary is the tokenizer's, which is not read: embedding and head have no size"
        notes.append(Note("vocabulary_unknown", message, "add --vocab-size or --padded-vocab-size"))
    if not settings.on("bf16") and not settings.on("fp16"):
        message = (
            "neither --bf16 nor --fp16 is given: Megatron-LM then computes in FP32, the scenario in BF16"
        )
        notes.append(Note("precision_not_given", message, "add --bf16"))
    if settings.has("num_query_groups") and not settings.on("group_query_attention"):
        message = "--num-query-groups is not used by Megatron-LM without --group-query-attention"
        notes.append(Note("query_groups_unused", message, "add --group-query-attention"))
    return tuple(notes)


def _incomplete(settings: Settings, missing: list[str], unread: str) -> Note:
    if unread:
        value = settings.given[unread]
        names = value.missing if isinstance(value, Unread) else ()
        message = f"{settings.name(unread)} is {value}, which nothing in these lines sets: no model is made"
        sets = " ".join(f"--set {name}=N" for name in names[:3])
        return Note("model_unknown", message, f"add {sets or 'the number'}, or --model config.json")
    message = f"the size flags lack {', '.join(missing)}: no model is made of them"
    return Note("model_unknown", message, "add them, or --model config.json")


def _without_model(settings: Settings) -> tuple[Note, ...]:
    """Sizes of a model that stand alone are said, so that none is passed over in silence."""
    ignored = {"model", "bf16", "fp16", "tokenizer_type"}
    given = [
        flag.name
        for flag in MODEL_FLAGS
        if flag.dest not in ignored and settings.given.get(flag.dest) not in (None, flag.default)
    ]
    if settings.has("model") or not given:
        return ()
    lacking = f"{', '.join(given[:6])} {'is' if len(given) == 1 else 'are'} not modelled: the trip lacks"
    message = (
        f"{lacking} the model, whose --hidden-size, --num-layers and --num-attention-heads are not all given"
    )
    return (Note("not_modelled", message, "add them, or --model config.json"),)


def _of_flag(settings: Settings, error: ConfigError) -> ConfigError:
    """A rule of the model, in the name of the flag that breaks it."""
    dest = _OF_FIELDS.get(error.field.removeprefix("model."))
    if dest is None:
        return error
    name = settings.name(dest)
    fix = f"try {name} {error.fix[4:]}" if error.fix.startswith("try ") else error.fix
    return ConfigError(name, error.got, error.rule, fix)
