nsys profile -o x -t cuda,nvtx --force-overwrite true torchrun --nproc_per_node 4 pretrain_gpt.py --tensor-model-parallel-size 2
