APP=$1
GPUS_PER_NODE=$2
NUM_NODES=$3
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE 
    --nnodes $NUM_NODES 
    --node_rank $NODE_RANK
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py --expert-model-parallel-size 8
