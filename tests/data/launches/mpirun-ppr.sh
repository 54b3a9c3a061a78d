mpirun -np 32 --map-by ppr:8:node -x PATH python pretrain_gpt.py --tensor-model-parallel-size 8
