"""What a group is for, by the words that frameworks describe it with.

A family is named by the axes that its members differ in, joined by dashes, as in Megatron's
``RankGenerator``: ``tp``, ``dp-cp``, ``etp-ep``. Sources: Megatron-LM ``parallel_state.py``
(``group_desc``), PyTorch ``DeviceMesh`` (``mesh_<dimension>``), vLLM and SGLang ``parallel_state.py``
(``GroupCoordinator``: ``tp:0``), DeepSpeed ``utils/groups.py``.
"""

from __future__ import annotations

import re
from functools import lru_cache

WORLD = "world"
WEIGHTS = "weights"
"""Groups that shard weights (FSDP, HSDP): part of dp."""

_MEGATRON = {
    "TENSOR_MODEL_PARALLEL_GROUP": "tp",
    "PIPELINE_MODEL_PARALLEL_GROUP": "pp",
    "CONTEXT_PARALLEL_GROUP": "cp",
    "DATA_PARALLEL_GROUP": "dp",
    "DATA_PARALLEL_GROUP_WITH_CP": "dp-cp",
    "MODEL_PARALLEL_GROUP": "tp-pp",
    "TENSOR_AND_CONTEXT_PARALLEL_GROUP": "tp-cp",
    "TENSOR_AND_DATA_PARALLEL_GROUP": "tp-dp",
    "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP": "tp-dp-cp",
    "EMBEDDING_GROUP": "embd",
    "POSITION_EMBEDDING_GROUP": "pos_embd",
    "EXPERT_MODEL_PARALLEL_GROUP": "ep",
    "EXPERT_TENSOR_PARALLEL_GROUP": "etp",
    "EXPERT_DATA_PARALLEL_GROUP": "edp",
    "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP": "etp-ep",
    "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP": "etp-ep-pp",
    "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP": "intra_dp_cp",
    "INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP": "inter_dp_cp",
    "INTRA_EXPERT_DATA_PARALLEL_GROUP": "intra_edp",
    "INTER_EXPERT_DATA_PARALLEL_GROUP": "inter_edp",
    "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP": "optimizer",
    "INTER_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP": "optimizer",
}
_WORDS = {
    "default_pg": WORLD, "world": WORLD, "mesh_default": WORLD,
    "tp": "tp", "model": "tp", "model_parallel": "tp", "tensor_parallel": "tp", "slice_parallel": "tp",
    "attn_tp": "tp", "attention_tp": "tp",
    "pp": "pp", "pipe": "pp", "pipe_parallel": "pp", "pipeline_parallel": "pp", "pipeline": "pp",
    "cp": "cp", "pcp": "cp", "attn_cp": "cp", "sp": "cp", "sequence_parallel": "cp", "context_parallel": "cp",
    "dp": "dp", "data": "dp", "data_parallel": "dp", "ddp": "dp", "batch": "dp",
    "dp_shard": WEIGHTS, "fsdp": WEIGHTS, "dp_replicate": WEIGHTS, "dp_shard_cp": WEIGHTS,
    "dp_shard_mod_ep": WEIGHTS, "dp_shard_in_ep": WEIGHTS, "efsdp": WEIGHTS, "hsdp": WEIGHTS,
    "shard": WEIGHTS, "replicate": WEIGHTS,
    "dp_cp": "dp-cp", "tp_cp": "tp-cp", "tp_dp": "tp-dp", "loss": "dp-cp",
    "ep": "ep", "moe_ep": "ep", "expert_parallel": "ep", "expert": "ep",
    "etp": "etp", "moe_tp": "etp", "edp": "edp", "expert_data_parallel": "edp", "moe_dp": "edp",
    "ep_tp": "etp-ep",
}  # fmt: skip
_EP_SIZE = re.compile(r"ep_size_\d+$")


@lru_cache(maxsize=4096)
def family_of(description: str) -> str | None:
    """The family that a description names, or None.

    >>> [family_of(text) for text in ("TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp", "ep:0", "undefined")]
    ['tp', 'tp', 'ep', None]
    """
    text = description.strip()
    known = _MEGATRON.get(text.removesuffix("_GLOO"))
    if known is not None:
        return known
    word = text.lower().rsplit(":", 1)[0] if re.fullmatch(r".*:\d+", text) else text.lower()
    word = word.removeprefix("mesh_").removesuffix("_group")
    return "ep" if _EP_SIZE.fullmatch(word) else _WORDS.get(word)


def is_megatron(description: str) -> bool:
    """Whether Megatron gave this description."""
    return description.removesuffix("_GLOO") in _MEGATRON


def mesh_dimension(description: str) -> str | None:
    """The dimension of a DeviceMesh that a description names, or None.

    >>> mesh_dimension("mesh_dp_shard"), mesh_dimension("default_pg")
    ('dp_shard', None)
    """
    word = description.strip().lower()
    return word.removeprefix("mesh_") if word.startswith("mesh_") and word != "mesh_default" else None
