#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gres=gpu:h100:8
#SBATCH --ntasks-per-node=1
TORCH_ARGS=(
    --nnodes $SLURM_NNODES
    --node_rank $SLURM_NODEID
    --nproc_per_node $SLURM_GPUS_ON_NODE
    --rdzv-id $SLURM_JOB_ID
    --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT
)
INFRA_ARGS=(
    --tensor-model-parallel-size 1
    --pipeline-model-parallel-size 4
    --expert-model-parallel-size 8
    --sequence-parallel
)
srun bash -c "torchrun ${TORCH_ARGS[*]} pretrain_gpt.py ${INFRA_ARGS[*]} ${MODEL_ARGS[*]}"
