"""Megatron's flags that shape the mesh. There is no flag for data parallelism: it is what is left over."""

from tracer.frameworks.flags import Flag, Kind
from tracer.frameworks.megatron.model import MODEL_FLAGS

FLAGS = (
    Flag("tensor_model_parallel_size", ("--tensor-model-parallel-size",), default=1),
    Flag("pipeline_model_parallel_size", ("--pipeline-model-parallel-size",), default=1),
    Flag("context_parallel_size", ("--context-parallel-size",), default=1),
    Flag("expert_model_parallel_size", ("--expert-model-parallel-size",), default=1),
    # None means the TP size: the default that makes EP8 with TP2 need 16 GPUs.
    Flag("expert_tensor_parallel_size", ("--expert-tensor-parallel-size",)),
    Flag("sequence_parallel", ("--sequence-parallel",), Kind.SWITCH, False),
    Flag("use_tp_pp_dp_mapping", ("--use-tp-pp-dp-mapping",), Kind.SWITCH, False),
    # The keyword of initialize_model_parallel(); the launcher only offers --use-tp-pp-dp-mapping.
    Flag("order", ("--order",), Kind.TEXT),
    Flag("num_distributed_optimizer_instances", ("--num-distributed-optimizer-instances",), default=1),
    Flag("hierarchical_context_parallel_sizes", ("--hierarchical-context-parallel-sizes",), Kind.INTS),
    Flag("hybrid_context_parallel", ("--hybrid-context-parallel",), Kind.SWITCH, False),
    Flag("cp_comm_type", ("--cp-comm-type",), Kind.TEXT, "p2p"),
    Flag(
        "moe_token_dispatcher_type",
        ("--moe-token-dispatcher-type",),
        Kind.TEXT,
        "allgather",
        choices=("allgather", "alltoall", "flex", "alltoall_seq"),
    ),
    Flag(
        "moe_flex_dispatcher_backend",
        ("--moe-flex-dispatcher-backend",),
        Kind.TEXT,
        "deepep",
        choices=("deepep", "hybridep", "ncclep"),
        lacks="the routes of that backend: rows go as DeepEP sends them",
    ),
    Flag("num_experts", ("--num-experts",)),
    Flag("moe_router_num_groups", ("--moe-router-num-groups",)),
    Flag("moe_router_group_topk", ("--moe-router-group-topk",)),
    Flag("num_layers_per_virtual_pipeline_stage", ("--num-layers-per-virtual-pipeline-stage",)),
    Flag(
        "virtual_pipeline_model_parallel_size",
        ("--num-virtual-stages-per-pipeline-rank", "--virtual-pipeline-model-parallel-size"),
    ),
    Flag("decoder_first_pipeline_num_layers", ("--decoder-first-pipeline-num-layers",)),
    Flag("decoder_last_pipeline_num_layers", ("--decoder-last-pipeline-num-layers",)),
    Flag(
        "account_for_embedding_in_pipeline_split",
        ("--account-for-embedding-in-pipeline-split",),
        Kind.SWITCH,
        False,
    ),
    Flag("account_for_loss_in_pipeline_split", ("--account-for-loss-in-pipeline-split",), Kind.SWITCH, False),
    Flag("pipeline_model_parallel_layout", ("--pipeline-model-parallel-layout",), Kind.TEXT),
    Flag("moe_shared_expert_overlap", ("--moe-shared-expert-overlap",), Kind.SWITCH, False),
    Flag("use_distributed_optimizer", ("--use-distributed-optimizer",), Kind.SWITCH, False),
    Flag("use_megatron_fsdp", ("--use-megatron-fsdp", "--use-custom-fsdp"), Kind.SWITCH, False),
    Flag("use_torch_fsdp2", ("--use-torch-fsdp2",), Kind.SWITCH, False),
    Flag(
        "data_parallel_sharding_strategy",
        ("--data-parallel-sharding-strategy",),
        Kind.TEXT,
        "no_shard",
        choices=("no_shard", "optim", "optim_grads", "optim_grads_params"),
    ),
    Flag("num_layers", ("--num-layers",)),
    Flag("num_attention_heads", ("--num-attention-heads",)),
    Flag("seq_length", ("--seq-length",)),
    Flag("model_parallel_size", ("--model-parallel-size",)),
    Flag("tensor_parallel_num_weight_shards", ("--tensor-parallel-num-weight-shards",), default=1),
    Flag("config_file", ("--yaml-cfg",), Kind.TEXT, shapes=False),
    *MODEL_FLAGS,
)
