GPUS_PER_NODE=8
NNODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
OMP_NUM_THREADS=4 python -m torch.distributed.launch $DISTRIBUTED_ARGS \
       pretrain_gpt_synthetic.py $GPT_ARGS \
       --tensor-model-parallel-size 8 \
       --pipeline-model-parallel-size 1 \
       --DDP-impl torch
