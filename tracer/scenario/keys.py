"""Every key of a scenario file: its type, default, words, meaning and an example, for documents and help.

Types, defaults and words come from the classes that read the keys; only meanings and examples stand here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tracer.mesh.axes import DENSE_AXES
from tracer.mesh.cluster import Cluster
from tracer.mesh.hardware import GpuFigures
from tracer.model.dtype import ALLOWED, Dtypes
from tracer.model.spec import ModelSpec
from tracer.scenario.placement import Placement
from tracer.scenario.plan import Plan
from tracer.scenario.token import Phase, Token

MEANINGS: dict[str, dict[str, tuple[str, str]]] = {
    "": {
        "schema": ("The version of this format.", "schema = 1"),
        "name": ("What pictures and logs call the scenario.", 'name = "my mesh"'),
        "source": ("Where the layout comes from; shown beside it.", 'source = "our launch script"'),
        "phase": ("Whether the token is read (prefill) or generated (decode).", 'phase = "decode"'),
        "seed": ("What drawn picks start from; the same seed draws the same experts.", "seed = 7"),
        "picks": ("The experts that the token picks, by layer; layers without any are drawn.",
                  "picks.1 = [11, 27]"),
    },
    "mesh": {
        "tp": ("Ranks along tensor parallelism.", "tp = 2"),
        "cp": ("Ranks along context parallelism.", "cp = 2"),
        "dp": ("Replicas along data parallelism.", "dp = 2"),
        "pp": ("Pipeline stages.", "pp = 2"),
        "ep": ("Ranks along expert parallelism, over the ranks of one stage.", "ep = 2"),
        "etp": ("Ranks that slice one expert (expert tensor parallelism). Default under contract tp: tp.",
                "etp = 1"),
        "edp": ("Replicas of an expert. Default: what etp and ep leave over.", "edp = 4"),
        "order": ("Dense axes from the fastest to the slowest.", 'order = "tp-cp-dp-pp"'),
        "expert_order": ("Expert axes from the fastest to the slowest.", 'expert_order = "etp-ep-edp"'),
        "strict": ("`megatron` also checks what Megatron checks: that both orders give the same pp groups.",
                   'strict = "megatron"'),
        "sp": ("What happens to rows outside attention and FFN: Megatron's sequence parallelism, a split "
               "before dispatch only, or none.", 'sp = "off"'),
        "kv_exchange": ("What CP ranks exchange in attention.", 'kv_exchange = "all_gather"'),
        "state_exchange": ("How layers with a state work over CP: hand the state on, or deal heads.",
                           'state_exchange = "heads"'),
        "window_exchange": ("Whether K/V of a layer with a window goes all round CP, or only where needed.",
                            'window_exchange = "needed"'),
        "dispatch": ("How rows reach experts. Default: high_throughput in prefill, low_latency in decode.",
                     'dispatch = "low_latency"'),
        "contract": ("How a MoE block is served: experts move no weights (ep, tp, ag_rs), or weights come to "
                     "the tokens (dwdp).", 'contract = "ep"'),
        "tp_algo": ("Whether TP collectives are drawn as direct messages or as a ring.", 'tp_algo = "ring"'),
        "dense_tp": ("TP of dense feed-forward parts, where it is not the mesh's: 1.", "dense_tp = 1"),
        "shared_tp": ("How TP runs a shared expert: whole on each rank, sliced with collectives of its own, "
                      "or sliced and summed with the routed experts.", 'shared_tp = "own"'),
        "shared_routed": ("Serve shared experts as routed ones that every token picks.",
                          "shared_routed = true"),
        "shared_overlap": ("Gather a shared expert's rows before dispatch and sum them after combine.",
                           'shared_overlap = true\nshared_tp = "own"'),
        "routing_metadata": ("Count the exchanges of counts and probabilities that an all-to-all needs.",
                             'routing_metadata = true\ndispatch = "low_latency"'),
        "weight_shard": ("What data parallelism shards instead of copying.", 'weight_shard = "fsdp"'),
        "weight_shard_size": ("Ranks of a shard group under hsdp.",
                              'weight_shard_size = 2\nweight_shard = "hsdp"'),
        "weight_keep": ("Keep gathered weights for the backward pass.",
                        'weight_keep = true\nweight_shard = "fsdp"'),
        "weight_prefetch": ("Gather a layer's weights while the layer before it runs.",
                            'weight_prefetch = false\nweight_shard = "fsdp"'),
        "embedding": ("Whether TP ranks have the whole embedding or a slice of the vocabulary.",
                      'embedding = "vocab_parallel"'),
        "landing": ("How a prompt is cut over CP ranks.", 'landing = "contiguous"'),
        "stage_layers": ("Layers of each stage, where they are not split evenly.", "stage_layers = [3, 5]"),
        "decode_attention": ("Whether in decode the query travels or K/V does.",
                             'decode_attention = "pass_kv"'),
        "cp_inner": ("Ranks that exchange heads inside hierarchical CP.",
                     'cp_inner = 2\nkv_exchange = "hierarchical"'),
        "dcp": ("Ranks of a TP group that share the tokens of one K/V head (decode context parallelism).",
                "dcp = 1"),
        "dcp_interleave": ("Consecutive tokens that one DCP rank keeps.", "dcp_interleave = 1"),
        "chunks": ("Virtual stages per stage.", "chunks = 2"),
        "chunk_order": ("How chunks are dealt to stages: round and round, or there and back.",
                        'chunk_order = "interleaved"'),
        "chunk_layers": ("Layers of each chunk, in the order a token meets them.",
                         "chunk_layers = [2, 2, 2, 2]\nchunks = 2"),
    },
    "cluster": {
        "nodes": ("Nodes. Default: as many as the ranks need.", "nodes = 4"),
        "gpus_per_node": ("GPUs per node; with hardware, its own.", "gpus_per_node = 8"),
        "nodes_per_island": ("Nodes per NVLink domain; with hardware, its own.", "nodes_per_island = 1"),
        "hardware": ("A GPU that ships with tokentrip: its node, links, memory and rates.",
                     'hardware = "h100"'),
        "placement": ("[node, local index] of every rank. Default: rank after rank.",
                      "placement = [[0, 0], [0, 1], ...]"),
        "nvlink_bytes_per_s": ("NVLink rate of one GPU in one direction.", "nvlink_bytes_per_s = 450e9"),
        "nvlink_latency_s": ("Latency of one NVLink message.", "nvlink_latency_s = 1e-6"),
        "ib_bytes_per_s": ("InfiniBand rate of one GPU in one direction.", "ib_bytes_per_s = 50e9"),
        "ib_latency_s": ("Latency of one InfiniBand message.", "ib_latency_s = 2e-6"),
        "hbm_bytes": ("Memory of one GPU.", "hbm_bytes = 80e9"),
        "hbm_bytes_per_s": ("Memory rate of one GPU.", "hbm_bytes_per_s = 3.35e12"),
        "bf16_flops": ("Dense BF16 operations per second of one GPU.", "bf16_flops = 989e12"),
        "fp8_flops": ("Dense FP8 operations per second of one GPU.", "fp8_flops = 1979e12"),
        "fp4_flops": ("Dense FP4 operations per second of one GPU.", "fp4_flops = 10e15"),
    },
    "placement": {
        "kind": ("How experts take their slots. Default: linear; with slots, table.", 'kind = "round_robin"'),
        "remainder": ("What happens to experts that do not divide over ep: refused, or one more on the first "
                      "ranks (vLLM).", 'remainder = "first"'),
        "slots": ("The expert in each slot, EP rank after EP rank; an expert may stand twice.",
                  "slots = [0, 1, 2, ...]"),
        "slots_by_layer": ("Slots of single layers, by layer number.", "slots_by_layer.1 = [0, 1, 2, ...]"),
        "redundant": ("Redundant experts, added as SGLang and vLLM start out.", "redundant = 32"),
        "redundant_at": ("Where they go: behind all others, or one per rank.",
                         'redundant_at = "each_rank"\nredundant = 32'),
    },
    "dtype": {
        "activations": ("Rows that TP, CP and PP move.", 'activations = "bf16"'),
        "kv": ("The K/V cache.", 'kv = "fp8"'),
        "dispatch": ("Rows that go to experts.", 'dispatch = "fp8"'),
        "combine": ("Rows that come back.", 'combine = "bf16"'),
        "logits": ("Logits that TP gathers.", 'logits = "fp32"'),
        "weights": ("Weights of parts whose format the model does not state.", 'weights = "bf16"'),
        "tp_gather": ("Rows that TP gathers before a split matmul. Default: activations.",
                      'tp_gather = "fp8"'),
    },
    "token": {
        "prompt": ("Tokens of each replica's prompt. Default: 16 per rank of a replica.", "prompt = 64"),
        "replica": ("The replica whose token is followed. Default: 0, or that of gpu.", "replica = 1"),
        "position": ("The position that is followed. Default: 0; in decode, the prompt's length.",
                     "position = 5"),
        "gpu": ("Follow the first token that lands on this GPU.", "gpu = 3"),
        "prompt_logprobs": ("Send every position through the LM head.", "prompt_logprobs = true"),
        "draft_head": ("A draft head (EAGLE, MTP) reads every final row: nothing of the last layer is dead.",
                       "draft_head = true"),
        "first_cp": ("The CP rank of the first token that is generated.", "first_cp = 1"),
        "slot": ("The token's place among those that its CP rank decodes in a step.",
                 'slot = 0\nbatch = 2\nphase = "decode"'),
        "batch": ("Tokens that each CP rank decodes in a step. Default: tp.",
                  'batch = 2\nphase = "decode"'),
        "text": ("What the token says.", 'text = "Paris"'),
    },
    "model": {
        "preset": ("A model that ships, in place of all other keys.", 'preset = "deepseek-v3"'),
        "config": ("A config.json beside the file, in place of all other keys.", 'config = "config.json"'),
        "layers": ("Layers.", "layers = 8"),
        "name": ("What the model is called.", 'name = "my model"'),
        "source": ("Where the sizes come from.", 'source = "its config.json"'),
        "hidden": ("Width of a row.", "hidden = 4096"),
        "vocab": ("Entries of the vocabulary.", "vocab = 128000"),
        "tie_embeddings": ("Whether the LM head is the embedding.", "tie_embeddings = true"),
        "heads": ("Query heads.", "heads = 32"),
        "kv_heads": ("K/V heads. Default: heads.", "kv_heads = 8"),
        "head_dim": ("Width of a head. Default: hidden / heads.", "head_dim = 128"),
        "v_head_dim": ("Width of a value head. Default: head_dim.", "v_head_dim = 128"),
        "kv_lora_rank": ("Width of the K/V latent (MLA).", "kv_lora_rank = 512"),
        "q_lora_rank": ("Width of the query latent (MLA).", "q_lora_rank = 1536"),
        "qk_nope_head_dim": ("Width of a head's part without rotation (MLA).", "qk_nope_head_dim = 128"),
        "qk_rope_head_dim": ("Width of a head's rotated part (MLA).", "qk_rope_head_dim = 64"),
        "dense_layers": ("How many first layers are dense, or the numbers of the dense layers.",
                         "dense_layers = 3"),
        "dense_hidden": ("Inner width of a dense feed-forward part.", "dense_hidden = 14336"),
        "experts": ("Routed experts per MoE layer.", "experts = 32"),
        "top_k": ("Experts that a token picks per layer.", "top_k = 2"),
        "expert_hidden": ("Inner width of an expert.", "expert_hidden = 2048"),
        "shared_experts": ("Experts that every token uses.", "shared_experts = 1"),
        "shared_hidden": ("Width of all shared experts. Default: shared_experts x expert_hidden.",
                          "shared_hidden = 2048"),
        "shared_gate": ("Whether a shared expert's output has a gate.", "shared_gate = true"),
        "expert_groups": ("Groups that experts are sorted into.", "expert_groups = 8"),
        "top_groups": ("Groups that a token's experts may come from.", "top_groups = 4"),
        "router": ("How scores become picks and weights.", 'router = "softmax_topk"'),
        "routed_scale": ("What the routed experts' weights are multiplied by.", "routed_scale = 2.5"),
        "renormalise": ("Whether the picked weights are made to sum to 1.", "renormalise = true"),
        "weights": ("How weights are stored. Default: dtype.weights.", 'weights = "bf16"'),
        "attention_weights": ("How attention is stored. Default: weights.", 'attention_weights = "bf16"'),
        "dense_weights": ("How dense feed-forward parts are stored. Default: weights.",
                          'dense_weights = "bf16"'),
        "shared_weights": ("How shared experts are stored. Default: weights.", 'shared_weights = "bf16"'),
        "expert_weights": ("How routed experts are stored. Default: weights.",
                           'expert_weights = "fp8_block128"'),
        "qk_norm": ("Norms of queries and keys.", 'qk_norm = "head"'),
        "qkv_bias": ("Whether q, k and v have biases.", "qkv_bias = true"),
        "out_bias": ("Whether attention's output has a bias.", "out_bias = true"),
        "gated": ("Whether feed-forward parts have a gate (SwiGLU); false for plain ones (GELU).",
                  "gated = false"),
        "ffn_bias": ("Whether feed-forward parts have biases.", "ffn_bias = true"),
        "norm_bias": ("Whether norms have biases.", "norm_bias = true"),
        "final_norm": ("Whether a norm stands before the LM head.", "final_norm = false"),
        "head_bias": ("Whether the LM head has a bias.", "head_bias = true"),
        "positions": ("Entries of a learned position table.", "positions = 1024"),
        "layer_kinds": ("The kind of each layer, where layers are not alike; `tokentrip model` prints them.",
                        "[[model.layer_kinds]]"),
        "extras": ("Weights of one family that no other key describes.", "[[model.extras]]"),
        "stored": ("Exceptions to how weights are stored: part, matrix, format, layers.",
                   "[[model.stored]]"),
        "vision_parameters": ("Parameters of a vision encoder that is counted.", "vision_parameters = 0"),
        "mtp_layers": ("Multi-token-prediction layers.", "mtp_layers = 1"),
        "left_out": ("Parts of the real model that no count includes.", 'left_out = ["a vision encoder"]'),
    },
}  # fmt: skip
"""Table, then key: what it means and an example."""

_CLASSES: dict[str, tuple[type, ...]] = {
    "mesh": (Plan,), "cluster": (Cluster, GpuFigures), "placement": (Placement,), "token": (Token,),
    "model": (ModelSpec,),
}  # fmt: skip
_LINKS = Cluster(world_size=1)
_UNITS = {"_bytes_per_s": "bytes per second", "_latency_s": "seconds", "hbm_bytes": "bytes", "_flops": "1/s"}
_BY_HAND: dict[str, tuple[str, object]] = {
    "schema": ("whole number", 1), "name": ("text", None), "source": ("text", None),
    "seed": ("whole number", 0), "picks": ("table", None),
    "mesh.order": ("text", "tp-cp-dp-pp"), "mesh.strict": ("text", None),
    "mesh.expert_order": ("text", "etp-ep-edp"), "mesh.edp": ("whole number", None),
    "cluster.placement": ("list", None), "placement.slots_by_layer": ("table", None),
    "placement.redundant": ("whole number", 0), "placement.redundant_at": ("end or each_rank", "end"),
    "model.preset": ("text", None), "model.config": ("text", None), "model.layers": ("whole number", None),
    "cluster.nvlink_bytes_per_s": ("number", _LINKS.nvlink.bytes_per_s),
    "cluster.ib_bytes_per_s": ("number", _LINKS.ib.bytes_per_s),
    "cluster.nvlink_latency_s": ("number", _LINKS.nvlink.latency_s),
    "cluster.ib_latency_s": ("number", _LINKS.ib.latency_s),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScenarioKey:
    """One key: ``table`` is empty for the keys at the top; ``default`` is None where it is left out."""

    table: str
    key: str
    type: str
    default: object
    unit: str
    meaning: str
    example: str

    @property
    def path(self) -> str:
        """The key as ``--set`` and an address name it."""
        return f"{self.table}.{self.key}" if self.table else self.key

    def to_dict(self) -> dict[str, object]:
        """JSON values; ``tracer/data/schemas/keys.schema.json`` describes them."""
        return {
            "key": self.path,
            "type": self.type,
            "default": list(self.default) if isinstance(self.default, tuple) else self.default,
            "unit": self.unit,
            "meaning": self.meaning,
            "example": self.example,
        }


def scenario_keys() -> Iterator[ScenarioKey]:
    """Every key that a scenario file may have, table by table."""
    for table, rows in MEANINGS.items():
        for key, (meaning, example) in rows.items():
            path = f"{table}.{key}" if table else key
            kind, default = _type_of(table, key, path)
            unit = next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")
            yield ScenarioKey(table, key, kind, default, unit, meaning, example)


def _type_of(table: str, key: str, path: str) -> tuple[str, object]:
    if path in _BY_HAND:
        return _BY_HAND[path]
    if path == "phase":
        return " or ".join(Phase), str(Phase.PREFILL)
    if table == "mesh" and key in (*DENSE_AXES, "ep", "etp"):
        return "whole number", 1
    if table == "dtype":
        return ", ".join(ALLOWED[key]), _plain(getattr(Dtypes(), key))
    if key.endswith("_weights"):
        return "as weights", None
    for owner in _CLASSES[table]:
        for each in fields(owner):
            if each.name == key:
                default = None if each.default is MISSING else each.default
                return _type_words(_hints(owner)[key]), _plain(default)
    raise LookupError(path)


def keys_markdown() -> str:
    """A table of Markdown per table of the file, for the documentation."""
    found: dict[str, list[ScenarioKey]] = {}
    for each in scenario_keys():
        found.setdefault(each.table, []).append(each)
    parts = []
    for table, keys in found.items():
        parts.append(f"## {f'[{table}]' if table else 'At the top'}\n")
        parts.append("| key | type | default | what it says | example |\n| --- | --- | --- | --- | --- |")
        parts += [_markdown_row(each) for each in keys]
        parts.append("")
    return "\n".join(parts)


def _markdown_row(each: ScenarioKey) -> str:
    default = "" if each.default is None or each.default == () else f"`{default_text(each.default)}`"
    kind = f"{each.type}, {each.unit}" if each.unit else each.type
    example = "<br>".join(f"`{line}`" for line in each.example.splitlines())
    return f"| `{each.key}` | {kind} | {default} | {each.meaning} | {example} |"


def default_text(default: object) -> str:
    """A default as a scenario file writes it.

    >>> default_text(False), default_text("ring"), default_text(4.5e11)
    ('false', '"ring"', '4.5e+11')
    """
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        return f"{default:g}"
    return f'"{default}"' if isinstance(default, str) else str(default)


@cache
def _hints(owner: type) -> dict[str, Any]:
    return get_type_hints(owner)


def _plain(default: object) -> object:
    return str(default) if isinstance(default, StrEnum) else default


def _type_words(hint: Any) -> str:
    if isinstance(hint, UnionType):
        words = [_type_words(each) for each in get_args(hint) if each is not type(None)]
        return " or ".join(dict.fromkeys(words))
    if get_origin(hint) is tuple:
        return "list"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return ", ".join(hint)
    return {int: "whole number", float: "number", bool: "true or false", str: "text"}[hint]
