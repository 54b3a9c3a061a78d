srun -N${NODES} --gpus-per-node=8 --ntasks-per-node=8 python pretrain_gpt.py --tensor-model-parallel-size 8
